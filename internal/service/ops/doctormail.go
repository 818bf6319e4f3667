package ops

import (
	"context"

	"github.com/musterhq/muster/internal/service/mail"
)

// mail opens a conversation with the mail server, and sends nothing.
func (d *doctor) mail(ctx context.Context) {
	const check = "mail"
	settings, err := d.settings.Mail()
	switch {
	case err != nil: // reported as a setting
		return
	case !settings.On():
		d.note(check, Fine, "off: approvals that wait and invitations are shown in the portal alone (MUSTER_SMTP_URL)", "")
		return
	}
	if err := (mail.Client{Config: settings}).Check(ctx); err != nil {
		d.note(check, Failed, settings.Host+": "+err.Error(), "correct MUSTER_SMTP_URL, or the server; mail that is due is tried again")
		return
	}
	d.note(check, Fine, settings.Host+" takes mail from "+settings.From.Address, "")
}
