package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
)

// UserMail sets which mail a user gets.
type UserMail struct {
	oneUser
	Event []string `name:"event" placeholder:"TYPE" help:"Send mail about this alone, such as control.loosening or device.silent; repeat for more."`
	Mute  bool     `name:"mute" help:"Send no mail but invitations."`
}

// Validate wants known events, or none.
func (c *UserMail) Validate() error {
	if c.Mute && len(c.Event) > 0 {
		return errors.New("--mute and --event exclude each other")
	}
	for _, e := range c.Event {
		if !slices.Contains(attention.Events(), event.Type(e)) {
			return fmt.Errorf("--event %q is not known: give one of %s", e, strings.Join(event.Names(attention.Events()), ", "))
		}
	}
	return nil
}

// mailView is the command's JSON.
type mailView struct {
	ID     string       `json:"id"`
	Email  string       `json:"email"`
	Muted  bool         `json:"muted"`
	Events []event.Type `json:"events"`
}

// Run sets the choice, or without a flag shows it.
func (c *UserMail) Run(env *Env) error {
	work := c.run
	if !c.Mute && len(c.Event) == 0 {
		work = c.reading
	}
	return work(env, on((*Admin).user, c.User, func(ctx context.Context, admin *Admin, owner company.Company, id string) (answer, error) {
		u, err := admin.Users.UserByID(ctx, owner.ID, id)
		if err != nil {
			return answer{}, missing(err, owner.Slug, "user", c.User)
		}
		choice, err := c.choice(ctx, admin, owner.ID, id)
		view := mailView{u.ID, u.Email, choice.Muted, choice.Chosen(u.Rights.Has(account.ManageCompany))}
		return answer{view, func(w io.Writer) {
			if view.Muted {
				fmt.Fprintf(w, "%s gets no mail.\n", u.Email)
				return
			}
			fmt.Fprintf(w, "%s gets mail about what the user can decide or may see of: %s.\n", u.Email,
				strings.Join(event.Names(view.Events), ", "))
		}}, err
	}))
}

func (c *UserMail) choice(ctx context.Context, admin *Admin, companyID, userID string) (attention.Choice, error) {
	if !c.Mute && len(c.Event) == 0 {
		return admin.Mail.MailChoice(ctx, companyID, userID)
	}
	choice := attention.Choice{Muted: c.Mute}
	for _, e := range c.Event {
		choice.Events = append(choice.Events, event.Type(e))
	}
	return choice, admin.Mail.SetMailChoice(ctx, companyID, userID, choice)
}
