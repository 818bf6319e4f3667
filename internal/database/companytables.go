package database

// ofCompany are the tables with rows of companies, their primary keys, and the condition on
// the rows of one company, whose id is its argument. They are exported in this order and deleted in the other, each before
// what it refers to. A test compares them with the tables that there are.
var ofCompany = []struct { //nolint:gochecknoglobals // a table that is never written to
	table, key, where string
	last              bool // with the company itself
}{
	{"companies", "id", `id = ?`, true},
	{"company_deletions", "company_id", ofCompanyID, true},
	{"control_versions", "company_id", ofCompanyID, true},
	{"retentions", "company_id", ofCompanyID, false},
	{"company_domains", "domain", ofCompanyID, false},
	{"gate_switches", "company_id, gate", ofCompanyID, false},
	{"loosenings", "id", ofCompanyID, false},
	{"lost_enterprises", "company_id", ofCompanyID, false},
	{"disconnections", "enterprise", ofCompanyID, false},
	{"signups", "state", ofCompanyID, false},
	{"identity_providers", "company_id", ofCompanyID, false},
	{"identity_domains", "domain", ofCompanyID, false},
	{"users", "id", ofCompanyID, false},
	{"identities", "company_id, issuer, subject", ofCompanyID, false},
	{"passkeys", "id", ofUsers, false},
	{"recovery_codes", "user_id, hash", ofUsers, false},
	{"sessions", "id", ofUsers, false},
	{"signin_steps", "hash", ofCompanyID, false},
	{"saved_views", "id", ofCompanyID, false},
	{"mail_users", "user_id", ofCompanyID, false},
	{"mail_letters", "id", ofCompanyID, false},
	{"mail_told", "user_id, item_id", ofCompanyID, false},
	{"api_keys", "id", ofCompanyID, false},
	{"key_devices", "key_id, asset_id, epoch", `key_id IN (SELECT k.id FROM api_keys k WHERE k.company_id = ?)`, false},
	{"oauth_connections", "id", ofCompanyID, false},
	{"oauth_grants", "id", `connection_id IN (SELECT o.id FROM oauth_connections o WHERE o.company_id = ?)`, false},
	{"oauth_tokens", "hash",
		`grant_id IN (SELECT g.id FROM oauth_grants g JOIN oauth_connections o ON o.id = g.connection_id WHERE o.company_id = ?)`, false},
	{"oauth_codes", "hash", ofCompanyID, false},
	{"policies", "id", ofCompanyID, false},
	{"policy_revisions", "policy_id, revision", ofPolicy, false},
	{"policy_pushes", "policy_id, vendor_version", ofPolicy, false},
	{"push_retries", "policy_id", ofPolicy, false},
	{"proposals", "id", ofCompanyID, false},
	{"patch_counts", "company_id, policy_id, month", ofCompanyID, false},
	{"enrollment_codes", "id", ofCompanyID, false},
	{"enrollment_uses", "code_id, asset_id, epoch", `code_id IN (SELECT c.id FROM enrollment_codes c WHERE c.company_id = ?)`, false},
	{"enrollment_requests", "id", ofCompanyID, false},
	{"assets", "id", ofCompanyID, false},
	{"asset_contacts", "asset_id", ofCompanyID, false},
	{"asset_counts", "company_id, status, policy_id", ofCompanyID, false},
	{"asset_places", "asset_id, reported_at", ofAssets, false},
	{"asset_apps", "asset_id", ofAssets, false},
	{"asset_edits", "asset_id", ofCompanyID, false},
	{"asset_terms", "company_id, term, asset_id", ofCompanyID, false},
	{"installed_apps", "asset_id, package", ofCompanyID, false},
	{"device_names", "company_id, name", ofCompanyID, false},
	{"messages", "company_id, id", ofCompanyID, false},
	{"commands", "id", ofCompanyID, false},
	{"command_polls", "command_id", ofCommand, false},
	{"command_cancels", "command_id", ofCommand, false},
	{"device_logs", "command_id", ofCompanyID, false},
	{"destructive_uses", "company_id, asset_id, epoch", ofCompanyID, false},
	{"authorizations", "id", ofCompanyID, false},
	{"signed_documents", "id", ofCompanyID, false},
	{"event_heads", "company_id", ofCompanyID, false},
	{"events", "id", ofCompanyID, false},
	{"webhooks", "id", ofCompanyID, false},
	{"webhook_held", "webhook_id, held", ofWebhook, false},
	{"webhook_attempts", "webhook_id, n", ofWebhook, false},
	{"jobs", "id", ofCompanyID, false},
	{"job_devices", "job_id, n", `job_id IN (SELECT j.id FROM jobs j WHERE j.company_id = ?)`, false},
	{"agent_pauses", "company_id", ofCompanyID, false},
	{"agent_tokens", "hash", ofCompanyID, false},
	{"companion_tokens", "hash", ofCompanyID, false},
	{"agent_devices", "id", ofCompanyID, false},
	{"agent_deliveries", "command_id", ofAgent, false},
	{"agent_updates", "device_id, version", ofAgent, false},
	{"activity_heads", "company_id", ofCompanyID, false},
	{"activity", "company_id, at, id", ofCompanyID, false},
}

// The conditions that several tables have.
const (
	ofCompanyID = `company_id = ?`
	ofUsers     = `user_id IN (SELECT u.id FROM users u WHERE u.company_id = ?)`
	ofPolicy    = `policy_id IN (SELECT p.id FROM policies p WHERE p.company_id = ?)`
	ofAssets    = `asset_id IN (SELECT a.id FROM assets a WHERE a.company_id = ?)`
	ofCommand   = `command_id IN (SELECT c.id FROM commands c WHERE c.company_id = ?)`
	ofWebhook   = `webhook_id IN (SELECT w.id FROM webhooks w WHERE w.company_id = ?)`
	ofAgent     = `device_id IN (SELECT d.id FROM agent_devices d WHERE d.company_id = ?)`
)

// ofService are the tables whose rows are of no company, or do not say of which: what of
// them came from a company that is deleted runs out (docs/how-to/data-and-retention.md).
var ofService = []string{ //nolint:gochecknoglobals // a table that is never written to
	"agent_release_parts", "agent_releases", "agent_rollouts", "budgets", "claims", "foreign_enterprises", "leases",
	"oauth_clients", "operator_acts", "platform_outages", "platform_quotas", "service_keys",
}
