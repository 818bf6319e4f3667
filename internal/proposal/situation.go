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

// Situation is all that the decision to apply a proposal depends on: see Decide.
type Situation struct {
	Proposal // with the devices that use its policy now
	// Gone: the policy was deleted. PolicyVersion is the one that it is at.
	PolicyGone    bool
	PolicyVersion int
	// Unconnected: the company, which a copy needs for its policy, has no enterprise.
	Unconnected bool
	// Unapproved: a person must approve it, and has not, or not what it now is.
	Unapproved bool
	Confirmed  bool // the policy's name was typed
	NameTaken  bool // another policy has the new name
}

// Decide says what a call to apply the proposal comes to, in the order of
// contract 4.3: Begun, if nothing refuses it.
func (s Situation) Decide() Claimed {
	switch {
	case s.Status != Pending:
		return NotPending
	case s.PolicyGone:
		return Gone
	case s.PolicyVersion != s.BaseVersion:
		return Stale
	case s.Unconnected:
		return Unconnected
	case s.Unapproved:
		return NotApproved
	case s.NeedsConfirmation() && !s.Confirmed:
		return NotConfirmed
	case s.NameTaken:
		return NameTaken
	}
	return Begun
}

// refusal is what a call is answered that comes to something else than Begun.
func (s *Service) refusal(verdict Claimed, p Proposal) *fault.Error {
	switch verdict {
	case NotPending:
		return notPending(p)
	case Gone:
		return fault.New(fault.NotFound, "the policy does not exist any more")
	case Stale:
		return fault.New(fault.StaleProposal,
			"the policy was saved again after version %d, which the proposal was made from: read it, propose again and review the new list",
			p.BaseVersion)
	case Unconnected:
		return notConnected()
	case NotApproved:
		return s.approvalRequired(p)
	case NotConfirmed:
		return confirmationRequired(p)
	case NameTaken:
		return nameTaken()
	default:
		return nil
	}
}

// situation reads what applying a proposal depends on, but for the approval and the
// name: they count only as they are when the proposal is claimed.
func (s *Service) situation(ctx context.Context, p Proposal, confirmed bool) (Situation, error) {
	now := Situation{Proposal: p, Confirmed: confirmed}
	found, err := s.Policies.Policy(ctx, p.CompanyID, p.PolicyID)
	if fault.CodeOf(err) == fault.NotFound {
		now.PolicyGone = true
		return now, nil
	}
	now.PolicyGone, now.PolicyVersion = found.Deleted, found.Version
	if err == nil && p.Creates() && !found.Deleted && found.Version == p.BaseVersion {
		err = s.connected(ctx, p.CompanyID)
		if now.Unconnected = fault.CodeOf(err) == fault.Refused; now.Unconnected {
			err = nil
		}
	}
	return now, err
}

// ForeseeApply says what Apply would do now, by the same decision, as far as it does
// not depend on the vendor. It changes nothing.
func (s *Service) ForeseeApply(ctx context.Context, p access.Principal, id, confirmation string) (operation.Forecast, error) {
	found, err := s.own(ctx, p, id, s.Store.PeekProposal)
	if err == nil && found.Creates() {
		err = policy.MayCreate(p)
	}
	if err != nil {
		return operation.Forecast{}, err
	}
	now, err := s.situation(ctx, found, policy.Confirms(confirmation, found.TargetName))
	if err != nil {
		return operation.Forecast{}, err
	}
	now.Unapproved = found.Unapproved()
	if found.Renames && found.Status == Pending {
		err := s.nameFree(ctx, found.CompanyID, found.Next.Name, found.Next.PolicyID)
		if now.NameTaken = fault.CodeOf(err) == fault.Refused; err != nil && !now.NameTaken {
			return operation.Forecast{}, err
		}
	}
	f := found.forecast()
	if a := s.viewWithApproval(found).Approval; a != nil {
		f.Approval = &operation.Approval{Required: true, State: string(a.State), URL: &a.URL, By: a.By, At: a.At, Reason: a.Reason}
	}
	if refused := s.refusal(now.Decide(), found); refused != nil {
		return f, refused
	}
	return f, nil
}

// forecast describes what applying the proposal does.
func (p Proposal) forecast() operation.Forecast {
	f := operation.Forecast{Devices: p.Devices, Effects: []string{p.Summary}, Impact: string(p.Impact),
		RequiresConfirmation: p.NeedsConfirmation()}
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
func (s *Service) foreseePropose(ctx context.Context, made Proposal, err error) (operation.Forecast, error) {
	if err == nil {
		err = s.knows(made)
	}
	if made.ID != "" {
		counted, failed := s.counted(ctx, made)
		if failed != nil {
			return operation.Forecast{}, failed
		}
		made = counted
	}
	if err == nil {
		err = s.Store.MayWait(ctx, made)
	}
	if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused || made.ID == "" {
		return operation.Forecast{}, err
	}
	f := made.forecast()
	f.Irreversible = false
	f.Effects = append([]string{"Nothing changes until the proposal is applied."}, f.Effects...)
	return f, err
}

func (s *Service) foreseeRead(ctx context.Context, call operation.Call, a ReadArgs) (operation.Forecast, error) {
	_, err := s.own(ctx, call.Principal, a.ProposalID, s.Store.PeekProposal)
	return operation.Forecast{Effects: []string{}}, err
}

func (s *Service) foreseeApply(ctx context.Context, call operation.Call, a ApplyArgs) (operation.Forecast, error) {
	return s.ForeseeApply(ctx, call.Principal, a.ProposalID, a.Confirmation)
}
