package approvals

import (
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// loosening finds the change of a control that waits for a second administrator.
func (s *Section) loosening(v *frame.Visit) (matter, error) {
	l, of, err := s.Store.LooseningSubject(v.Context(), v.Company.ID, v.PathValue("id"))
	if fault.CodeOf(err) == fault.NotFound {
		return matter{path: frame.ControlsPath}, fault.New(fault.NotFound, "this change does not wait any more: it took effect, or was canceled")
	}
	if err != nil {
		return matter{}, err
	}
	m := matter{Subject: of, title: "Confirm a change", summary: "It loosens a control of " + v.Company.Name + " and takes effect at once.",
		promise: "Your passkey allows this one change.", section: frame.AccessPath, path: frame.ControlsPath, back: frame.ControlsPath, backTo: "Limits and stop",
		approve: action{signature.Approve, frame.ControlsPath + "/" + l.ID + "/confirm", "Confirm with a passkey", "", "Confirmed: the change has taken effect."}}
	if refused := l.MayTakeEffect(v.Company.Settings); refused != nil {
		m.closed = frame.Sentence(fault.From(refused).Detail)
	}
	m.body = looseningBody(v, l)
	return m, nil
}
