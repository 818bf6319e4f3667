package devices

import (
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// maxLate is how many commands the page of those still open lists.
const maxLate = 200

// late lists the commands that were sent long enough ago to be wondered about,
// the newest first.
func (s *Section) late(v *frame.Visit) error {
	open, err := s.Open.UnfinishedList(v.Context(), v.Company.ID, v.Principal.Policies, v.Now.Add(-frame.LateFor), v.Now.Add(-frame.OverdueAfter), maxLate)
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Fragment(lateRows(v, open))
	}
	return v.Show("Open commands", frame.DevicesPath, latePage(v, open))
}
