package people

import (
	"slices"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// chooseMail keeps which mail the person gets. With no event ticked there is none; those of
// the role are kept as no choice, so that they follow the role.
func (s *Account) chooseMail(v *frame.Visit) error {
	ticked := slices.DeleteFunc(attention.Events(), func(e event.Type) bool { return !slices.Contains(v.Form["event"], string(e)) })
	choice := attention.Choice{Muted: len(ticked) == 0}
	if !slices.Equal(ticked, choice.Chosen(v.May(account.ManageCompany))) {
		choice.Events = ticked
	}
	return v.Finish(frame.AccountPath, s.Mail.SetMailChoice(v.Context(), v.Company.ID, v.User.ID, choice), "Saved which mail you get.")
}
