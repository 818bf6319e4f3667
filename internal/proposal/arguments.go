package proposal

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// ChangeArg gives one setting a value.
type ChangeArg struct {
	Setting string `json:"setting" rule:"required" doc:"Id of the setting." example:"CAMERA"`
	Value   string `json:"value" rule:"required minchars=1" doc:"One of the setting's allowedValues, in any case." example:"BLOCK"`
}

// Rules implements operation.Ruler.
func (a ChangeArg) Rules(r *operation.Rules) {
	r.OneOf("setting", policy.SettingIDs)
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
	r.AtMost("changes", func() int { return len(policy.SettingIDs()) })
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
	Changes []ChangeArg `json:"changes" rule:"required" doc:"The settings to change, each at most once."`
}

// Rules implements operation.Ruler.
func (a ChangeArgs) Rules(r *operation.Rules) { once(r, a.Changes) }

// CopyArgs are the arguments of create_policy.
type CopyArgs struct {
	FromPolicyID string      `json:"fromPolicyId" rule:"required notblank" doc:"pathName of the policy to copy, from list_policies." example:"5h9j3f7p1s6z4g8a2e0k7m9q3v"`
	DisplayName  string      `json:"displayName" rule:"required notblank" doc:"Name of the new policy, at most 50 characters, not the name of another policy of the company." example:"Warehouse Berlin"`
	Changes      []ChangeArg `json:"changes" doc:"Settings to change in the copy, each at most once. Omit to duplicate."`
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
