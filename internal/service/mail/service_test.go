package mail_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
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
