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
	case err != nil: // run has reported it with the settings
		return
	case !settings.On():
		d.note(check, Fine, "off: only the portal shows invitations and waiting approvals; set MUSTER_SMTP_URL to send mail", "")
		return
	}
	if err := (mail.Client{Config: settings}).Check(ctx); err != nil {
		d.note(check, Failed, settings.Host+": "+err.Error(),
			"correct MUSTER_SMTP_URL or the mail server; the service tries again to send mail that is due")
		return
	}
	d.note(check, Fine, settings.Host+" takes mail from "+settings.From.Address, "")
}
