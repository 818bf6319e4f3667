package proposal

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// ForeseeApply says what Apply would do now, by the same decision, as far as it does
// not depend on the vendor. It changes nothing.
func (s *Service) ForeseeApply(ctx context.Context, p access.Principal, id, confirmation string) (operation.Forecast, error) {
	found, err := s.own(ctx, p, id, s.Store.PeekProposal)
	if err != nil {
		return operation.Forecast{}, err
	}
	now, err := s.situation(ctx, found, confirms(confirmation, found.TargetName))
	if err != nil {
		return operation.Forecast{}, err
	}
	if now.Unapproved = found.Unapproved(); found.Status == Pending && found.NeedsApproval() && !now.Unapproved {
		void, err := s.Store.PeekApproval(ctx, found, Claim{ID: found.ID, Check: s.checksSent(found)})
		if now.Unapproved = void != nil; err != nil {
			return operation.Forecast{}, err
		}
	}
	if found.Renames && found.Status == Pending {
		err := s.nameFree(ctx, found.CompanyID, found.Next.Name, found.Next.PolicyID)
		if now.NameTaken = fault.CodeOf(err) == fault.Refused; err != nil && !now.NameTaken {
			return operation.Forecast{}, err
		}
	}
	f := found.forecast()
	if a := s.view(found).Approval; a != nil {
		f.Approval = &operation.Approval{Required: true, State: string(a.State), URL: &a.URL, By: a.By, At: a.At}
		if now.Unapproved && a.State == Approved { // of something else than what it now is
			f.Approval.State, f.Approval.By, f.Approval.At = string(Waiting), nil, nil
		}
	}
	if refused := s.refusal(now.Decide(), found); refused != nil {
		return f, refused
	}
	return f, nil
}

// forecast describes what applying the proposal does.
func (p Proposal) forecast() operation.Forecast {
	f := operation.Forecast{Devices: p.Devices, Effects: []string{p.Summary}, Impact: string(p.Impact), RequiresConfirmation: p.NeedsConfirmation()}
	if p.Creates() {
		f.Devices = 0
	}
	for _, field := range p.Fields {
		f.Effects = append(f.Effects, fmt.Sprintf("%s: %s, now %s.", field.Label, field.Value, field.PreviousValue))
		if lost := policy.Lost(field.Label, field.Value); lost != "" && field.Value != field.PreviousValue && f.Devices > 0 {
			f.Effects, f.Irreversible = append(f.Effects, "For good: "+lost), true
		}
	}
	return f
}

// foreseePropose says what proposing would do: it is drafted and not kept.
func (s *Service) foreseePropose(made Proposal, err error) (operation.Forecast, error) {
	if err == nil {
		err = s.knows(made)
	}
	if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused || made.ID == "" {
		return operation.Forecast{}, err
	}
	f := made.At(made.Devices).forecast()
	f.Irreversible = false
	f.Effects = append([]string{"Nothing changes until the proposal is applied."}, f.Effects...)
	return f, err
}

func (s *Service) foreseeRead(ctx context.Context, call operation.Call, a ReadArgs) (operation.Forecast, error) {
	_, err := s.own(ctx, call.Principal, a.ProposalID, s.Store.PeekProposal)
	return operation.Forecast{Effects: []string{}}, err
}

func (s *Service) foreseeChange(ctx context.Context, call operation.Call, a ChangeArgs) (operation.Forecast, error) {
	return s.foreseePropose(s.draftChanges(ctx, call, a.PolicyID, asChanges(a.Changes)))
}

func (s *Service) foreseeCopy(ctx context.Context, call operation.Call, a CopyArgs) (operation.Forecast, error) {
	return s.foreseePropose(s.draftCopy(ctx, call, a.FromPolicyID, a.DisplayName, asChanges(a.Changes)))
}

func (s *Service) foreseeRollBack(ctx context.Context, call operation.Call, a RollbackArgs) (operation.Forecast, error) {
	return s.foreseePropose(s.draftRollback(ctx, call, a.PolicyID, a.Revision))
}

func (s *Service) foreseeApply(ctx context.Context, call operation.Call, a ApplyArgs) (operation.Forecast, error) {
	return s.ForeseeApply(ctx, call.Principal, a.ProposalID, a.Confirmation)
}
