package proposal

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// ChangeArg gives one setting a value.
type ChangeArg struct {
	Setting string `json:"setting" rule:"required enum=VENDOR_STORE_MODE|DEFAULT_PERMISSION_POLICY|APP_AUTO_UPDATE_POLICY|UNTRUSTED_APPS_POLICY|VENDOR_PROTECT|SCREEN_CAPTURE|CAMERA|FACTORY_RESET|UNINSTALL_APPS|ACCOUNT_MODIFICATION|ADD_USER|REMOVE_USER|DEVELOPER_SETTINGS|USB_DATA_ACCESS|LOCATION_MODE|LOCATION_SHARING|OUTGOING_CALLS|SMS|BLUETOOTH|DATA_ROAMING|NETWORK_RESET|VPN_CONFIGURATION|CONFIGURE_WIFI|WIFI_DIRECT|TETHERING|WIFI_STATE|AIRPLANE_MODE|MINIMUM_WIFI_SECURITY|AUTO_DATE_TIME|ENCRYPTION_POLICY|APPLICATION_REPORT_LEVEL|REPORT_DEVICE_SETTINGS|REPORT_DISPLAY_INFO|REPORT_HARDWARE_STATUS|REPORT_MEMORY_INFO|REPORT_NETWORK_INFO|REPORT_POWER_EVENTS|REPORT_SOFTWARE_INFO|REPORT_SYSTEM_PROPERTIES" doc:"Id of the setting." example:"CAMERA"`
	Value   string `json:"value" rule:"required minchars=1" doc:"One of the setting's allowedValues, in any case." example:"BLOCK"`
}

// Rules implements operation.Ruler.
func (a ChangeArg) Rules(r *operation.Rules) {
	s, known := policy.Lookup(a.Setting)
	text := "must be one of the setting's allowed values; NOT_SET and CUSTOM are none"
	if known {
		text = "must be one of " + strings.Join(s.Allowed, ", ") + " for " + s.ID
	}
	_, allowed := s.Normal(a.Value)
	r.Must("value", text, !known || allowed)
}

// once states that no setting is listed twice.
func once(r *operation.Rules, changes []ChangeArg) {
	repeated := ""
	for i, c := range changes {
		if slices.ContainsFunc(changes[:i], func(earlier ChangeArg) bool { return earlier.Setting == c.Setting }) {
			repeated = c.Setting
		}
	}
	text := "must list each setting at most once"
	if repeated != "" {
		text += ": " + repeated + " is listed twice"
	}
	r.Must("changes", text, repeated == "")
}

func asChanges(args []ChangeArg) []policy.Change {
	changes := make([]policy.Change, len(args))
	for i, a := range args {
		changes[i] = policy.Change(a)
	}
	return changes
}

func asArgs(changes []policy.Change) []ChangeArg {
	args := make([]ChangeArg, len(changes))
	for i, c := range changes {
		args[i] = ChangeArg(c)
	}
	return args
}

// ChangeArgs are the arguments of update_policy_settings.
type ChangeArgs struct {
	policy.Target
	Changes []ChangeArg `json:"changes" rule:"required maxitems=39" doc:"The settings to change, each at most once."`
}

// Rules implements operation.Ruler.
func (a ChangeArgs) Rules(r *operation.Rules) { once(r, a.Changes) }

// CopyArgs are the arguments of create_policy.
type CopyArgs struct {
	FromPolicyID string      `json:"fromPolicyId" rule:"required notblank" doc:"pathName of the policy to copy, from list_policies." example:"5h9j3f7p1s6z4g8a2e0k7m9q3v"`
	DisplayName  string      `json:"displayName" rule:"required notblank" doc:"Name of the new policy, at most 50 characters, not the name of another policy of the company." example:"Warehouse Berlin"`
	Changes      []ChangeArg `json:"changes" rule:"maxitems=39" doc:"Settings to change in the copy, each at most once. Omit to duplicate."`
}

// Rules implements operation.Ruler.
func (a CopyArgs) Rules(r *operation.Rules) {
	once(r, a.Changes)
	_, wrong := policy.CleanName(a.DisplayName)
	r.Must("displayName", "must be at most 50 visible characters and spaces",
		wrong == "" || strings.TrimSpace(a.DisplayName) == "")
}

// RollbackArgs are the arguments of rollback_policy.
type RollbackArgs struct {
	policy.Target
	Revision int `json:"revision" rule:"required min=1 max=2147483647" doc:"Revision number from list_policy_revisions."`
}

// ReadArgs are the arguments of get_policy_proposal.
type ReadArgs struct {
	ProposalID string `path:"proposalId" doc:"Id of the proposal, from the call that made it." example:"prp_5h9j3f7p1s6z4g8a2e0k7m9q3v"`
}

// ApplyArgs are the arguments of apply_policy_proposal.
type ApplyArgs struct {
	ReadArgs
	Confirmation string `json:"confirmation" doc:"With requiresConfirmation: the policy's name exactly as the person who approves typed it." example:"Warehouse"`
}
