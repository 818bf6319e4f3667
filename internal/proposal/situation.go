package proposal

import (
	"context"

	"github.com/musterhq/muster/internal/fault"
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
func (s *Service) refusal(came Claimed, p Proposal) *fault.Error {
	switch came {
	case NotPending:
		return notPending(p)
	case Gone:
		return fault.New(fault.NotFound, "the policy does not exist any more")
	case Stale:
		return stale(p)
	case Unconnected:
		return notConnected()
	case NotApproved:
		return s.approvalRequired(p)
	case NotConfirmed:
		return confirmationRequired(p)
	case NameTaken:
		return nameTaken()
	}
	return nil
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
