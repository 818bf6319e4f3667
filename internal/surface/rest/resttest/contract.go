// Package resttest holds the contract's tables as data and compares a registry
// with them: what is declared, and every refusal of every endpoint as it goes
// over the wire. Tests call it with the small registry of a package, or with
// that of the whole service.
package resttest

// Endpoint is a row of contract 4, with the tool that mirrors it
// (contract 4.5) and what it needs (contract 5.2, 5.4).
type Endpoint struct {
	Method, Path string // path arguments are {}
	Tool         string
	Permissions  string // joined by a blank
	Gate         string
	Family       Family
	Success      int
	Body         string // member names; those with a star are required; "-" for no body
}

// Family names the endpoints that speak of errors alike.
type Family string

// The families: contract 7.2 (two), 7.3, 7.4, and 7.5.
const (
	FirstFour    Family = "lock, lost-mode, found, message"
	Commands     Family = "other commands"
	Policies     Family = "policies"
	Provisioning Family = "provisioning"
	Reads        Family = "reads"
)

const (
	command     = "DEVICES_COMMAND DEVICES_READ"
	destructive = "DEVICES_COMMAND_DESTRUCTIVE DEVICES_READ"
	writing     = "POLICIES_READ POLICIES_WRITE"
	changes     = "policyChanges"
)

// Endpoints is contract 4, row by row.
var Endpoints = []Endpoint{
	{"GET", "/assets", "list_assets", "DEVICES_READ", "", Reads, 200, "-"},
	{"GET", "/assets/count", "count_assets", "DEVICES_READ", "", Reads, 200, "-"},
	{"GET", "/assets/{}", "get_asset", "DEVICES_READ", "", Reads, 200, "-"},
	{"PATCH", "/assets/{}", "update_asset", command, "deviceCommands", Commands, 200, "identification tags customData"},
	{"GET", "/assets/{}/commands", "list_device_commands", "DEVICES_READ", "", Reads, 200, "-"},
	{"GET", "/assets/{}/logs", "list_logs", "DEVICES_READ", "", Reads, 200, "-"},
	{"GET", "/assets/{}/logs/{}", "get_log", "DEVICES_READ", "", Reads, 200, "-"},
	{"GET", "/policies", "list_policies", "POLICIES_READ", "", Reads, 200, "-"},

	{"POST", "/assets/{}/commands/lock", "lock_device", command, "deviceCommands", FirstFour, 200, "-"},
	{"POST", "/assets/{}/commands/lost-mode", "start_lost_mode", command, "deviceCommands", FirstFour, 200,
		"message* phoneNumber email streetAddress organization"},
	{"POST", "/assets/{}/commands/found", "stop_lost_mode", command, "deviceCommands", FirstFour, 200, "-"},
	{"POST", "/assets/{}/commands/message", "send_message", command, "deviceCommands", FirstFour, 200, "title* body*"},

	{"POST", "/assets/{}/commands/status-report", "request_status_report", command, "deviceCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/location-update", "request_location_update", command, "deviceCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/sync-policy", "sync_policy", command, "deviceCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/reboot", "reboot_device", command, "deviceCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/shutdown", "shutdown_device", command, "deviceCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/launch-app", "launch_app", command, "deviceCommands", Commands, 200, "packageName*"},
	{"POST", "/assets/{}/commands/clear-app-data", "clear_app_data", command, "deviceCommands", Commands, 200, "packageNames*"},
	{"POST", "/assets/{}/commands/change-policy", "change_device_policy", command + " POLICIES_READ", "deviceCommands",
		Commands, 200, "policyId*"},
	{"POST", "/assets/{}/commands/wipe", "wipe_device", destructive, "destructiveCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/reset-screen-lock", "reset_screen_lock", destructive, "destructiveCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/change-screen-lock-password", "change_screen_lock_password", destructive, "destructiveCommands", Commands,
		200, "newPassword*"},
	{"POST", "/assets/{}/commands/relinquish-ownership", "relinquish_ownership", destructive, "destructiveCommands", Commands, 200, "-"},
	{"POST", "/assets/{}/commands/upload-log", "upload_log", command, "deviceCommands", Commands, 200, "-"},

	{"GET", "/policies/{}/settings", "get_policy_settings", "POLICIES_READ", "", Policies, 200, "-"},
	{"GET", "/policies/{}/revisions", "list_policy_revisions", "POLICIES_READ", "", Policies, 200, "-"},
	{"GET", "/policy-proposals/{}", "get_policy_proposal", "POLICIES_READ", "", Policies, 200, "-"},
	{"POST", "/policies/{}/changes", "update_policy_settings", writing, changes, Policies, 201, "changes*"},
	{"POST", "/policies", "create_policy", writing, changes, Policies, 201, "fromPolicyId* displayName* changes"},
	{"POST", "/policies/{}/rollbacks", "rollback_policy", writing, changes, Policies, 201, "revision*"},
	{"POST", "/policy-proposals/{}/apply", "apply_policy_proposal", writing, changes, Policies, 200, "confirmation"},

	{"POST", "/policies/{}/provisioning-qr-codes", "create_provisioning_qr_code", "POLICIES_READ PROVISIONING",
		"provisioning", Provisioning, 201,
		"personalUsage wifiSsid wifiPassword wifiSecurity wifiHidden"},
}

// Answer is how a refusal looks: its status and the members of its body, in
// no order; none means an empty body. A blank is before the members that all
// problem details have.
type Answer struct {
	Status  int
	Members string
}

const (
	small   = "error message status"
	problem = "type title status detail instance"
)

// Answers is contract 7.1 to 7.5: for
// each family, each code that it may answer.
var Answers = map[Family]map[string]Answer{
	FirstFour: {
		"malformed":         {400, problem},
		"invalid_arguments": {400, problem + " errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem},
		"not_found":         {404, ""},
		"unsupported":       {409, problem},
		"refused":           {422, problem},
		"rate_limited":      {429, small},
		"internal_error":    {500, problem},
		"provider_error":    {502, problem + " retryable"},
		"unavailable":       {503, problem + " retryable"},
	},
	Commands: {
		"malformed":         {400, problem + " code"},
		"invalid_arguments": {400, problem + " code errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code"},
		"not_found":         {404, problem + " code"},
		"unsupported":       {409, problem + " code"},
		"refused":           {422, problem + " code"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
		"provider_error":    {502, problem + " code retryable"},
		"unavailable":       {503, problem + " code retryable"},
	},
	Policies: {
		"malformed":             {400, problem + " code retryable"},
		"invalid_arguments":     {400, problem + " code retryable errors"},
		"unauthorized":          {401, small},
		"forbidden":             {403, problem + " code retryable"},
		"not_found":             {404, problem + " code retryable"},
		"unsupported":           {409, problem + " code retryable"},
		"not_pending":           {409, problem + " code retryable"},
		"stale_proposal":        {409, problem + " code retryable"},
		"refused":               {422, problem + " code retryable"},
		"confirmation_required": {422, problem + " code retryable"},
		"rate_limited":          {429, problem + " code retryable"},
		"internal_error":        {500, problem + " code retryable"},
	},
	Provisioning: {
		"malformed":         {400, problem},
		"invalid_arguments": {400, problem + " code retryable errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code retryable"},
		"not_found":         {404, problem + " code retryable"},
		"unsupported":       {409, problem + " code retryable"},
		"refused":           {422, problem + " code retryable"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
		"provider_error":    {502, problem + " code retryable"},
	},
	Reads: {
		"cursor_expired":    {410, problem + " code retryable"},
		"unavailable":       {503, problem + " code retryable"},
		"malformed":         {400, problem + " code retryable"},
		"invalid_arguments": {400, problem + " code retryable errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code retryable"},
		"not_found":         {404, problem + " code retryable"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
	},
}

// Explain is contract 4.10. It is not among the Endpoints, because it needs no
// permission and refuses nothing that another endpoint does not.
var Explain = Endpoint{"POST", "/explain", "explain_operation", "", "", Reads, 200, "operation* arguments"}

// Events is contract 4.12. Like Explain, it needs no permission: callers get what they may see.
var Events = Endpoint{"GET", "/events", "list_events", "", "", Reads, 200, "-"}
