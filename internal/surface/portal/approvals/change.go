package approvals

import (
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// change finds the proposal that a visit is about.
func (s *Section) change(v *frame.Visit) (matter, error) {
	r, err := s.Reviewer.Look(v.Context(), v.Principal, v.PathValue("id"))
	if err != nil {
		return matter{}, err
	}
	here := frame.ApprovalPath(r.ID)
	m := matter{Subject: r.Subject(), title: "Approve a change", summary: r.Summary, section: frame.ProposalsPath, path: here,
		back: frame.ProposalPath(r.ID), backTo: r.Title, note: r.Note, closed: closedChange(r),
		promise: "Nothing else can be applied with it.",
		approve: action{signature.Approve, here + "/approve", "Approve with a passkey", "", "Approved. The caller can apply it until it expires."},
		decline: action{signature.Decline, here + "/decline", "Decline with a passkey", "outline", "Declined. It can never be applied."}}
	document, _ := m.Document(signature.Head{}, nil).(signature.Change)
	m.body = changeBody(v, r, document, m.closed == "")
	return m, nil
}

// closedChange says why nothing can be decided any more, or yet; empty: it can.
func closedChange(r proposal.Review) string {
	switch {
	case r.Approval.State == proposal.Declined:
		return because(frame.Plain(r.Approval.By)+" declined it. It can never be applied.", r.Approval.Reason)
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
	case !r.NeedsApproval():
		return "No approval is needed: who proposed it can apply it."
	case !r.Unapproved():
		return frame.Plain(r.Approval.By) + " approved it already. The caller can apply it."
	}
	return ""
}

// because adds a person's reason to a sentence.
func because(sentence, reason string) string {
	if reason == "" {
		return sentence
	}
	return sentence + " The reason: " + frame.Plain(reason)
}

func impact(i string) string {
	if i == string(proposal.High) {
		return "High"
	}
	return "Normal"
}
