package proposal

import (
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
)

// review is what the descriptions of the three propose operations end with.
const review = " Nothing changes until the proposal is applied: show its summary and its whole change list to the user, and get explicit " +
	"approval, before you call apply_policy_proposal. A proposal can be applied until its expiresAt."

// Define declares the reading, making and applying of proposals (contract 4.3).
func Define(r *operation.Registry, s *Service) {
	operation.DefineExplained(r, operation.Operation{
		Name: "get_policy_proposal", Title: "Read policy proposal", Method: "GET", Path: "/policy-proposals/{proposalId}",
		Description: "Reads one policy proposal that you made, with its exact change list and its status. " +
			"EXECUTING means that it is being applied: read it again until that ends.",
		Needs: access.PoliciesRead, Dialect: operation.Policies, Effect: operation.Reading,
		Faults: []fault.Code{fault.NotFound},
	}, s.read, s.foreseeRead)
	proposals(r, s)
	operation.DefineExplained(r, writing(operation.Operation{
		Name: "apply_policy_proposal", Title: "Apply policy proposal", Path: "/policy-proposals/{proposalId}/apply",
		Description: "Applies one policy proposal that you made: exactly its reviewed change list is saved and sent to the policy's " +
			"devices, and a new revision is saved. Call it only after the user has seen the list and approved it. With " +
			"requiresConfirmation, ask the user to type the policy's name and pass exactly what was typed. If the policy was saved " +
			"since, it fails with stale_proposal: propose again and review the new list. After internal_error read the proposal before " +
			"anything else. Where the company asks for it, a person approves the change first: on confirmation_required with an " +
			"approvalUrl, show that address to the user; the name that the user types does not replace it. rollback_policy restores the " +
			"settings, not what devices erased.",
		BodyOptional: true,
		Disruptive:   true,
		Faults:       []fault.Code{fault.NotFound, fault.NotPending, fault.StaleProposal, fault.Refused, fault.ConfirmationRequired},
	}), s.apply, s.foreseeApply)
}

func proposals(r *operation.Registry, s *Service) {
	proposing(r, s, operation.Operation{
		Name: "update_policy_settings", Title: "Propose policy settings", Path: "/policies/{policyId}/changes",
		Description: "Proposes new values for settings of one policy; get_policy_settings lists the settings and their allowed values. " +
			"Only policies with editable true can be changed, and a list that would change nothing is refused." + review,
	}, s.draftChanges)
	proposing(r, s, operation.Operation{
		Name: "create_policy", Title: "Propose new policy", Path: "/policies",
		Description: "Proposes a new policy as a copy of an existing one, with its apps, settings and restrictions and, if changes are " +
			"given, with these settings changed. No device uses the new policy until devices are moved to it with " +
			"change_device_policy." + review,
	}, s.draftCopy)
	proposing(r, s, operation.Operation{
		Name: "rollback_policy", Title: "Propose policy rollback", Path: "/policies/{policyId}/rollbacks",
		Description: "Proposes to return one policy to an earlier revision from list_policy_revisions: its apps, settings, " +
			"restrictions and name. Description, labels and group stay as they are." + review,
	}, s.draftRollback)
}

// proposing declares an operation that keeps what draft returns.
func proposing[A any](r *operation.Registry, s *Service, o operation.Operation,
	draft func(context.Context, operation.Call, A) (Proposal, error)) {
	o.Created, o.Faults = true, []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused}
	operation.DefineExplained(r, writing(o), func(ctx context.Context, call operation.Call, a A) (View, error) {
		p, err := propose(ctx, s, call, a, draft)
		return s.viewWithApproval(p), err
	}, func(ctx context.Context, call operation.Call, a A) (operation.Forecast, error) {
		made, err := draft(ctx, call, a)
		return s.foreseePropose(ctx, made, err)
	})
}

// writing completes the declaration of what changes policies.
func writing(o operation.Operation) operation.Operation {
	o.Method, o.Needs, o.Gate = "POST", access.PoliciesWrite|access.PoliciesRead, access.PolicyChanges
	o.Budget, o.Dialect, o.Effect = operation.AfterValidation, operation.Policies, operation.Writing
	return o
}

func (s *Service) read(ctx context.Context, call operation.Call, a ReadArgs) (View, error) {
	p, err := s.Read(ctx, call.Principal, a.ProposalID)
	return s.viewWithApproval(p), err
}

func (s *Service) apply(ctx context.Context, call operation.Call, a ApplyArgs) (View, error) {
	p, err := s.Apply(ctx, call, a.ProposalID, a.Confirmation)
	if err != nil {
		return View{}, err
	}
	return s.applied(p), nil
}

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
	return slice.Map(args, func(a ChangeArg) policy.Change { return policy.Change(a) })
}

func asArgs(changes []policy.Change) []ChangeArg {
	return slice.Map(changes, func(c policy.Change) ChangeArg { return ChangeArg(c) })
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
