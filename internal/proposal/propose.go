package proposal

import (
	"context"
	"fmt"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// draftChanges drafts new values of settings of an existing policy.
func (s *Service) draftChanges(ctx context.Context, call operation.Call, a ChangeArgs) (Proposal, error) {
	changes := asChanges(a.Changes)
	p, err := policy.Find(ctx, s.Policies, call.Principal, a.PolicyID)
	if err != nil {
		return Proposal{}, err
	}
	if err := editable(p); err != nil {
		return Proposal{}, err
	}
	document, moves, err := changed(p, changes)
	if err != nil {
		return Proposal{}, err
	}
	if len(moves) == 0 {
		return Proposal{}, fault.New(fault.Refused, "nothing would change: the policy has these values already")
	}
	made := s.draft(call, UpdateSettings, p, moves)
	made.Request = Request{Changes: changes}
	made.Title = "Change settings of " + p.Name
	made.Form = fmt.Sprintf("In the policy %q, which %s, %s%s.", p.Name, devicesHere, settings(moves), warnings(moves))
	made.Next = Next{PolicyID: p.ID, Name: p.Name, Document: document}
	return made, nil
}

// draftCopy drafts a new policy: a copy of a policy's apps, settings and
// restrictions, with changes of settings on top.
func (s *Service) draftCopy(ctx context.Context, call operation.Call, a CopyArgs) (Proposal, error) {
	changes := asChanges(a.Changes)
	if err := policy.MayCreate(call.Principal); err != nil {
		return Proposal{}, err
	}
	source, err := policy.Find(ctx, s.Policies, call.Principal, a.FromPolicyID)
	if err != nil {
		return Proposal{}, err
	}
	if err := editable(source); err != nil {
		return Proposal{}, err
	}
	newName, wrong := policy.CleanName(a.DisplayName)
	if wrong != "" {
		return Proposal{}, fault.InvalidField("displayName", wrong)
	}
	document, moves, err := changed(source, changes)
	if err != nil {
		return Proposal{}, err
	}
	if err := s.connected(ctx, source.CompanyID); err != nil {
		return Proposal{}, err
	}
	if err := s.nameFree(ctx, source.CompanyID, newName, ""); err != nil {
		return Proposal{}, err
	}
	made := s.draft(call, CreatePolicy, source, moves)
	made.Request = Request{Changes: changes, DisplayName: newName}
	made.TargetName = newName
	made.Title = fmt.Sprintf("Create %s as a copy of %s", newName, source.Name)
	made.Form = summarizeCopy(source, newName, moves)
	made.Next = Next{PolicyID: resource.NewID(), Name: newName, Document: document}
	made.Renames = true
	return made, nil
}

// draftRollback drafts the return of a policy to an earlier revision: its
// document and its name. Description, labels and group stay (contract 4.3).
func (s *Service) draftRollback(ctx context.Context, call operation.Call, a RollbackArgs) (Proposal, error) {
	revision := a.Revision
	p, err := policy.Find(ctx, s.Policies, call.Principal, a.PolicyID)
	if err != nil {
		return Proposal{}, err
	}
	target, err := s.Policies.Revision(ctx, p.CompanyID, p.ID, revision)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "the policy has no revision %d: take the number from the list of its revisions", revision)
	}
	if err != nil {
		return Proposal{}, err
	}
	if err := editable(p); err != nil {
		return Proposal{}, err
	}
	d, err := policy.Compare(p.Type, policy.Revision{Name: p.Name, Document: p.Document},
		policy.Revision{Name: target.Name, Document: target.Document})
	if err != nil {
		return Proposal{}, err
	}
	if d.Empty() {
		return Proposal{}, fault.New(fault.Refused, "nothing would change: the policy is as it was at revision %d", revision)
	}
	made := s.draft(call, RollBack, p, d.Moves)
	if made.Renames = p.Name != target.Name; made.Renames {
		if target.NameRefused {
			return Proposal{}, fault.New(fault.Refused, "the policy was named %s at revision %d, which is refused now: save the settings "+
				"of that revision under another name in the portal", target.Name, revision)
		}
		if err := s.nameFree(ctx, p.CompanyID, target.Name, p.ID); err != nil {
			return Proposal{}, err
		}
	}
	made.Request = Request{Revision: revision}
	made.Title = "Return " + p.Name + " to revision " + strconv.Itoa(revision)
	made.Form = summarizeRollback(p, revision, d)
	if d.Name != nil {
		made.Fields = append([]Field{{Label: "Name", Value: d.Name[1], PreviousValue: d.Name[0]}}, made.Fields...)
	}
	made.Next = Next{PolicyID: p.ID, Name: target.Name, Document: target.Document}
	return made, nil
}

// repeated finds what an earlier call with the same idempotency reference
// made, when the process ended before that call was answered.
func (s *Service) repeated(ctx context.Context, call operation.Call) (Proposal, bool, error) {
	if call.IdempotencyRef == "" {
		return Proposal{}, false, nil
	}
	p, err := s.Store.ProposalByRef(ctx, call.Principal.CompanyID, call.IdempotencyRef)
	if fault.CodeOf(err) == fault.NotFound {
		return Proposal{}, false, nil
	}
	return p, err == nil && p.ownedBy(call.Principal), err
}

// changed is what changes make of a policy's document.
func changed(p policy.Policy, changes []policy.Change) ([]byte, []policy.Move, error) {
	normal, faults := policy.NormalChanges(changes)
	if len(faults) > 0 {
		return nil, nil, fault.Invalid("the changes cannot be proposed as they are", faults...)
	}
	return policy.Apply(p.Type, p.Document, normal)
}

func fields(moves []policy.Move) []Field {
	return slice.Map(moves, func(m policy.Move) Field { return Field{Label: m.Setting.Label, Value: m.To, PreviousValue: m.From} })
}

// connected is fault.Refused while the company has no enterprise.
func (s *Service) connected(ctx context.Context, companyID string) error {
	c, err := s.Companies.CompanyByID(ctx, companyID)
	if err == nil && !c.Connected() {
		return notConnected()
	}
	return err
}

func notConnected() *fault.Error {
	return fault.New(fault.Refused, "the company is not connected to the device-management program: connect it first")
}

// nameFree is fault.Refused if another policy than own has the name.
func (s *Service) nameFree(ctx context.Context, companyID, wanted, own string) error {
	switch _, err := s.Policies.PolicyNamed(ctx, companyID, wanted, own); {
	case fault.CodeOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	}
	return nameTaken()
}

func nameTaken() *fault.Error {
	return fault.New(fault.Refused, "there is a policy of that name already, or of one that looks the same: choose another name")
}

// draft is a proposal about a policy as it now is, which moves settings.
func (s *Service) draft(call operation.Call, c Capability, p policy.Policy, moves []policy.Move) Proposal {
	caller := call.Principal
	return Proposal{
		ID: resource.NewProposalID(), CompanyID: p.CompanyID, CompanySlug: p.CompanySlug, Capability: c, Status: Pending, Impact: Normal,
		Devices:  p.DeviceCount,
		PolicyID: p.ID, TargetName: p.Name, BaseVersion: p.Version,
		Owner:      access.Actor{Kind: caller.Kind, ID: caller.ID, UserID: caller.UserID, Name: caller.Name},
		ProposeRef: call.IdempotencyRef, Note: call.Note,
		Rule: caller.Settings.Controls.ApplyApproval, Warnings: policy.Warnings(moves), Fields: fields(moves),
	}
}

// knows checks what would be applied.
func (s *Service) knows(made Proposal) error {
	if err := policy.CheckDocument(s.Checker, policy.Platform, made.Next.Document); err != nil {
		return fault.New(fault.Refused, "the platform would not know the policy that results: %s", err).Because(err)
	}
	return nil
}

// propose drafts a proposal, checks what would be applied, and keeps it. A
// repeated call has the proposal of the first.
func propose[A any](ctx context.Context, s *Service, call operation.Call, a A,
	draft func(context.Context, operation.Call, A) (Proposal, error)) (Proposal, error) {
	if earlier, ok, err := s.repeated(ctx, call); ok || err != nil {
		return earlier, err
	}
	made, err := draft(ctx, call, a)
	if err == nil {
		err = s.knows(made)
	}
	if err != nil {
		return Proposal{}, err
	}
	if made, err = s.counted(ctx, made); err != nil {
		return Proposal{}, err
	}
	return s.Store.Propose(ctx, made, lifetime(made.Rule, made.Owner))
}

// counted is a draft with the impact that it has now.
func (s *Service) counted(ctx context.Context, made Proposal) (_ Proposal, err error) {
	if made.Rule.On() {
		made.Moving, err = s.Store.MovesTo(ctx, made.Next.PolicyID)
	}
	return made.At(made.Devices), err
}
