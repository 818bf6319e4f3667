package approvals

import (
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

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
