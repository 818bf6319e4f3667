package people

import (
	"slices"

	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// chooseMail keeps which mail the person gets. With no event ticked there is none.
func (s *Account) chooseMail(v *frame.Visit) error {
	choice := attention.Choice{Events: slices.DeleteFunc(attention.Events(), func(e attention.Event) bool {
		return !slices.Contains(v.Form["event"], string(e))
	})}
	choice.Muted = len(choice.Events) == 0
	if err := s.Mail.SetMailChoice(v.Context(), v.Company.ID, v.User.ID, choice); err != nil {
		return err
	}
	return v.Redirect(frame.AccountPath, frame.Done("Saved which mail you get."))
}

func eventLabel(e attention.Event) string {
	return map[attention.Event]string{attention.ProposalWaiting: "Changes of policies to approve", attention.AuthorizationWaiting: "Commands to authorize",
		attention.ControlLoosening: "Controls that another administrator asks to loosen"}[e]
}
