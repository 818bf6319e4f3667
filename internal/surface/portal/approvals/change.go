package approvals

import (
	"cmp"
	"strconv"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
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
	m := matter{Subject: r.Subject(), title: r.Title, section: frame.ProposalsPath, here: here, path: here, topics: "proposal:" + r.ID,
		back: frame.ProposalPath(r.ID), backTo: "Proposal", note: r.Note, closed: closedChange(r),
		promise: "The caller can then apply exactly this change until it expires.",
		approve: action{signature.Approve, here + "/approve", "Approve with a passkey", "",
			"Approved. The caller can apply it until it expires."},
		decline: action{signature.Decline, here + "/decline", "Decline with a passkey", "outline", "Declined. It can never be applied."}}
	m.tone, m.standing = frame.Standing(r.Proposal, r.Stale || r.Gone)
	if r.Status == proposal.Pending && r.Approval.State != proposal.Declined && !r.Stale && !r.Gone {
		m.until = r.ExpiresAt
	}
	if m.steps, err = s.changeSteps(v, r); err != nil {
		return matter{}, err
	}
	if r.Status == proposal.Succeeded { // devices apply it one after another
		m.topics += " assets"
	}
	document, _ := m.Document(signature.Head{}, nil).(signature.Change)
	m.answers = changeAnswers(v, r, document)
	m.body = changeBody(r, document)
	return m, nil
}

// changeAnswers are what a person asks first about a change.
func changeAnswers(v *frame.Visit, r proposal.Review, d signature.Change) []answer {
	what := frame.Count(len(d.Changes), "setting", "settings") + " of the policy " + frame.Plain(d.Policy.Name)
	happens := answer{question: "What happens", text: "Changes " + what + "."}
	switch {
	case r.Creates():
		happens.text = "Makes the new policy " + frame.Plain(d.Policy.Name) + ", with " + frame.Count(len(d.Changes), "change",
			"changes") + " from its source."
	case r.Capability == proposal.RollBack:
		happens.text = "Rolls the policy " + frame.Plain(d.Policy.Name) + " back: " + frame.Count(len(d.Changes), "setting changes",
			"settings change") + "."
	}
	devices := answer{question: "Devices", text: frame.Count(d.Devices, "device has", "devices have") + " this policy",
		link: frame.DevicesPath + "?policy=" + r.PolicyID}
	if r.Creates() || d.Devices == 0 {
		devices.text, devices.link = "No device", ""
	}
	if !v.May(account.ViewDevices) {
		devices.link = ""
	}
	return []answer{happens, devices,
		{question: "Asked by", text: frame.Maker(r.Maker)},
		undoChange(r, d),
		{question: "Impact", text: frame.Word(d.Impact), more: whyText(r), grave: d.Impact == string(proposal.High)}}
}

// whyText says what makes the impact high.
func whyText(r proposal.Review) string {
	text := ""
	for _, why := range r.Why {
		text += frame.Sentence(why) + " "
	}
	return text
}

// undoChange says whether a change can be undone.
func undoChange(r proposal.Review, d signature.Change) answer {
	a := answer{question: "Can be undone", text: "Yes, by rolling the policy back."}
	if r.Creates() {
		a.text = "Yes: the policy can be deleted while no device has it."
	}
	if len(d.Warnings) > 0 {
		a.text, a.grave = "Not everything: see the warnings at the changes.", true
	}
	for _, m := range d.Changes {
		if lost := policy.Lost(m.Setting, m.To); lost != "" && m.From != m.To {
			a.text, a.more, a.grave = "Not everything.", a.more+frame.Sentence(lost)+" ", true
		}
	}
	return a
}

// closedChange says why nothing can be decided any more, or yet; empty: it can.
func closedChange(r proposal.Review) string {
	switch {
	case r.Approval.State == proposal.Declined:
		return because(frame.Plain(r.Approval.By)+" declined it at "+frame.Exact(r.Approval.At)+". It can never be applied.",
			r.Approval.Reason)
	case r.Status == proposal.Expired:
		return frame.Sentence(cmp.Or(r.Outcome, "it has expired: it was not approved and applied in time")) + " Nothing was changed."
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
		return frame.Plain(r.Approval.By) + " approved it already, at " + frame.Exact(r.Approval.At) + ". The caller can apply it."
	}
	return ""
}

// because adds a person's reason to a sentence.
func because(sentence, reason string) string {
	return frame.Either(reason == "", sentence, sentence+" The reason: "+frame.Plain(reason))
}

// changeSteps is what has happened to a proposal, until devices have applied it.
func (s *Section) changeSteps(v *frame.Visit, r proposal.Review) ([]step, error) {
	steps := []step{{at: r.CreatedAt, text: "Proposed by " + frame.Maker(r.Maker), tone: frame.Idle}}
	switch r.Approval.State {
	case proposal.Approved:
		steps = append(steps, step{at: r.Approval.At, text: "Approved by " + frame.Plain(r.Approval.By), tone: frame.OK})
	case proposal.Declined:
		return append(steps, step{at: r.Approval.At, text: "Declined by " + frame.Plain(r.Approval.By), more: r.Approval.Reason,
			tone: frame.Idle}), nil
	case proposal.Waiting:
	}
	switch {
	case r.Status == proposal.Expired && r.Outcome == "":
		return append(steps, step{at: r.ExpiresAt, text: "Expired", tone: frame.Idle}), nil
	case r.Status == proposal.Failed:
		return append(steps, step{text: "Failed", more: r.Outcome, tone: frame.Bad}), nil
	case r.Status != proposal.Succeeded:
		return steps, nil
	}
	id := r.Next.PolicyID
	saved, err := s.Reviewer.Service.Policies.Revision(v.Context(), r.CompanyID, id, r.Version)
	if fault.CodeOf(err) == fault.NotFound {
		return steps, nil
	}
	if err != nil {
		return nil, err
	}
	applied, devices, err := s.Store.PolicyProgress(v.Context(), r.CompanyID, id, r.Version)
	steps = append(steps, step{at: saved.SavedAt, text: "Applied as version " + strconv.Itoa(r.Version),
		link: frame.PolicyPath(id) + "/revisions", tone: frame.OK})
	if devices > 0 {
		steps = append(steps, progress(applied, devices, id))
	}
	return steps, err
}

// progress is how many devices have applied a version.
func progress(applied, devices int, policyID string) step {
	return step{text: strconv.Itoa(applied) + " of " + frame.Count(devices, "device has", "devices have") + " applied it",
		link: frame.PolicyPath(policyID) + "/devices", tone: frame.Either(applied == devices, frame.OK, frame.Warn)}
}

// loosening finds the change of a control that waits for a second administrator.
func (s *Section) loosening(v *frame.Visit) (matter, error) {
	l, of, err := s.Store.LooseningSubject(v.Context(), v.Company.ID, v.PathValue("id"))
	m := matter{section: frame.AccessPath, path: frame.ControlsPath, back: frame.ControlsPath, backTo: "Limits and stop"}
	if fault.CodeOf(err) == fault.NotFound {
		return m, fault.New(fault.NotFound, "this change does not wait any more: it took effect, or was canceled")
	}
	if err != nil {
		return matter{}, err
	}
	waits := frame.ControlsPath + "/" + l.ID
	m.Subject, m.title, m.here, m.topics = of, "Confirm: "+l.Wanted(), waits+"/confirm", "loosening:"+l.ID
	m.tone, m.standing, m.until, m.cancel = frame.Warn, "Needs a second administrator", l.EffectiveAt, waits+"/cancel"
	m.promise = "Your passkey allows this one change, which takes effect at once."
	m.approve = action{signature.Approve, m.here, "Confirm with a passkey", "", "Confirmed: the change has taken effect."}
	when, last := "At once if it is confirmed, or by itself at "+frame.Exact(l.EffectiveAt), "Takes effect by itself"
	if refused := l.MayTakeEffect(v.Company.Settings); refused != nil {
		m.closed = frame.Sentence(fault.From(refused).Detail)
		when = "By itself when the stop has ended, not before " + frame.Exact(l.EffectiveAt)
		last = "Takes effect by itself if the stop has ended"
	}
	m.answers = []answer{
		{question: "What happens", text: l.Control.Title() + ": " + l.Control.ValueText(l.Before) + " → " + l.Control.ValueText(l.After),
			more: "This loosens a control of " + frame.Plain(v.Company.Name) + ".", grave: true},
		{question: "Asked by", text: frame.Plain(l.AskedBy.Name)},
		{question: "When", text: when + ", unless it is canceled before."},
		{question: "Can be undone", text: "Yes: an administrator can tighten it again, at once."}}
	m.steps = []step{{at: l.AskedAt, text: "Asked for by " + frame.Plain(l.AskedBy.Name), tone: frame.Idle},
		{at: l.EffectiveAt, text: last, tone: frame.Warn}}
	return m, nil
}
