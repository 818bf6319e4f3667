package mail_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/poll"
)

// A service with a mail server sends what waits, with addresses of its own.
func TestService_SendsMail(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.authorization()
	replica := d.Start(func(c *config.Service, _ *service.Options) {
		c.SMTPURL, c.MailFrom = "smtp://"+d.server.address, "Muster <muster@acme.test>"
	})
	poll.Until(t, "the mail", func() error {
		if n := len(d.server.all()); n != 1 {
			return fmt.Errorf("%d mails", n)
		}
		return nil
	})
	if _, body := d.read(d.server.all()[0]); !strings.Contains(body, replica.PublicURL()+"/access/controls/") {
		t.Errorf("the mail is %q", body)
	}
}

// With a mail server, who is invited in the portal has the link by mail, and no other mail
// until they accepted.
func TestService_MailsInvitation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mails := func(c *config.Service, _ *service.Options) {
		c.SMTPURL, c.MailFrom = "smtp://"+d.server.address, "Muster <muster@acme.test>"
	}
	d.Start(mails).PortalClient(t, d.ada).Post("/users", "email", "new@acme.test", "name", "Nina", "role", "admin", "scope", "all").Want(t,
		http.StatusOK)
	d.Advance(2 * time.Minute) // the first replica's turn is over
	replica := d.Start(mails)
	poll.Until(t, "the invitation", func() error {
		for _, m := range d.server.all() {
			if strings.Contains(m.to, "new@acme.test") {
				return nil
			}
		}
		return errors.New("no mail")
	})
	for _, m := range d.server.all() {
		if _, body := d.read(m); strings.Contains(m.to, "new@acme.test") && !strings.Contains(body, replica.PublicURL()+"/invitation#") {
			t.Errorf("who was invited has the mail %q", body)
		}
	}
}

// The doctor says whether the mail server can be used, without the password, and sends nothing.
func TestDoctor_Mail(t *testing.T) {
	t.Parallel()
	fine, refusing, busy := newServer(t), newServer(t), newServer(t)
	refusing.answers["AUTH"], busy.answers["EHLO"], busy.answers["HELO"] = "535 no", "421 not today", "421 not today"
	for name, c := range map[string]struct {
		url, from string
		status    ops.Severity
		detail    string
	}{
		"off":            {"", "", ops.Fine, "off: "},
		"fine":           {"smtp://" + fine.address, "Muster <muster@acme.test>", ops.Fine, "takes mail from muster@acme.test"},
		"wrong password": {"smtp://ada:topsecret@" + refusing.address, "muster@acme.test", ops.Failed, "refuses the user or the password"},
		"busy":           {"smtp://" + busy.address, "muster@acme.test", ops.Failed, busy.address},
		"not there":      {"smtp://127.0.0.1:1", "muster@acme.test", ops.Failed, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := ops.Diagnose(t.Context(), config.Service{SMTPURL: c.url, MailFrom: c.from, Listen: "127.0.0.1:0"}, time.Now)
			i := slices.IndexFunc(found, func(f ops.Finding) bool { return f.Check == "mail" })
			if i < 0 {
				t.Fatalf("the doctor does not look at mail: %+v", found)
			}
			f := found[i]
			if f.Status != c.status || !strings.Contains(f.Detail, c.detail) || (f.Remedy != "") != (c.status == ops.Failed) {
				t.Errorf("the doctor says %+v", f)
			}
			if strings.Contains(fmt.Sprint(found), "topsecret") {
				t.Errorf("the doctor tells the password: %+v", found)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(fine.all()); n != 0 {
			t.Errorf("the doctor sent %d mails", n)
		}
	})
}
