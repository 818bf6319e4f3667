// Package approvals is the portal's page on which a person approves or declines what
// an API key or an AI client wants to change in a policy, with a passkey.
package approvals

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section serves the page.
type Section struct {
	Reviewer proposal.Reviewer
	// Decider returns a user as one who may decide, with all of their passkeys.
	Decider  func(ctx context.Context, companyID, userID string) (access.Approver, error)
	Passkeys account.Passkeys
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	const edit = account.ViewPolicies | account.EditPolicies
	decide := func(d signature.Decision) frame.Handler {
		return func(v *frame.Visit) error { return s.decide(v, d) }
	}
	return []frame.Route{
		{Pattern: "GET " + frame.ApprovalsPath + "/{id}", Needs: edit, Serve: s.show},
		{Pattern: "POST " + frame.ApprovalsPath + "/{id}/approve", Needs: edit, Serve: decide(signature.Approve)},
		{Pattern: "POST " + frame.ApprovalsPath + "/{id}/decline", Needs: edit, Serve: decide(signature.Decline)},
	}
}

// asked is what the page shows.
type asked struct {
	proposal.Review
	// Closed says why there is nothing to decide; Barred why this person may not.
	Closed, Barred string
	// NoPasskey: the person has none, and can add one. From is when the person is old
	// enough to decide; zero: is, or age is not what is missing.
	NoPasskey bool
	From      time.Time

	Approve, Decline account.Challenge
}

func (s *Section) show(v *frame.Visit) error {
	review, err := s.Reviewer.Look(v.Context(), v.Principal, v.PathValue("id"))
	if err != nil {
		return err
	}
	a := asked{Review: review, Closed: closed(review)}
	if a.Closed == "" {
		if err := s.admit(v, &a); err != nil {
			return err
		}
	}
	if a.Closed == "" && a.Barred == "" {
		if a.Approve, err = s.begin(v, a, signature.Approve); err == nil {
			a.Decline, err = s.begin(v, a, signature.Decline)
		}
		if err != nil {
			return err
		}
	}
	return v.Show("Approve a change", frame.ProposalsPath, page(v, a))
}

// closed says why nothing can be decided any more, or yet; empty: it can.
func closed(r proposal.Review) string {
	switch {
	case r.Approval.State == proposal.Declined:
		return r.Approval.By + " declined it. It can never be applied."
	case r.Status == proposal.Expired:
		return "It has expired: it was not approved and applied in time. Nothing was changed."
	case r.Status == proposal.Succeeded:
		return "It was applied already."
	case r.Status != proposal.Pending:
		return "It has ended, or is being applied: there is nothing to decide any more."
	case r.Gone:
		return "The policy was deleted: this can never be applied."
	case r.Stale:
		return "The policy was saved since: this can never be applied. The caller has to propose it again."
	case r.Approval.State == proposal.Approved:
		return r.Approval.By + " approved it already. The caller can apply it."
	case !r.NeedsApproval():
		return "No approval is needed: who proposed it can apply it."
	}
	return ""
}

// admit finds out whether the person may decide, and if not why, and until when.
func (s *Section) admit(v *frame.Visit, a *asked) error {
	if !s.Passkeys.Available() {
		a.Barred = "Passkeys do not work at this address of Muster, which has no host name. The operator has to give it one."
		return nil
	}
	who, err := s.Decider(v.Context(), v.Company.ID, v.User.ID)
	if err != nil {
		return err
	}
	controls := v.Company.Settings.Controls
	refused := who.May(a.Matter(), controls, v.Now)
	if refused == nil {
		return nil
	}
	if fault.CodeOf(refused) != fault.Refused {
		return refused
	}
	a.Barred = frame.Sentence(fault.From(refused).Detail)
	a.NoPasskey = len(who.Passkeys) == 0
	if from := who.OldEnoughAt(a.Matter(), controls); from.After(v.Now) && who.May(a.Matter(), controls, from) == nil {
		a.From = from
	}
	return nil
}

// begin asks for a signature of the change as it is shown.
func (s *Section) begin(v *frame.Visit, a asked, d signature.Decision) (account.Challenge, error) {
	document, err := signature.Canonical(a.Change(signature.Head{Approver: signature.Person{ID: v.User.ID, Name: v.User.Name}, Decision: d, At: signature.Time(v.Now)}))
	if err != nil {
		return account.Challenge{}, err
	}
	return s.Passkeys.BeginSigning(v.Context(), v.User, document)
}

// decide takes the signed decision.
func (s *Section) decide(v *frame.Visit, want signature.Decision) error {
	id := v.PathValue("id")
	here := frame.ApprovalPath(id)
	signed, key, err := v.Signed(s.Passkeys)
	if err == nil {
		_, err = s.Reviewer.Decide(v.Context(), v.Principal,
			proposal.Decision{ID: id, PasskeyID: key.ID, Want: want, Signed: signed}, v.Form.Get("confirmation"))
	}
	switch {
	case err != nil:
		return v.Refused(here, err, fault.Refused, fault.NotPending, fault.ConfirmationRequired, fault.Unauthorized, fault.Unsupported)
	case want == signature.Decline:
		return v.Redirect(here, frame.Done("Declined. It can never be applied."))
	}
	return v.Redirect(here, frame.Done("Approved. The caller can apply it until it expires."))
}
