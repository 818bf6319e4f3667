package mail_test

import (
	"crypto/tls"
	"errors"
	"mime"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service/mail"
)

// client is one of a server. remote has it taken for one on another machine, named as the
// server's certificate is.
func (s *server) client(remote bool) mail.Client {
	c := mail.Client{Config: config.Mail{Host: s.address, Name: "127.0.0.1", Loopback: !remote, TLS: s.implicit,
		// a test's server
		From: netmail.Address{Name: "Muster", Address: "muster@acme.test"}}, TLS: &tls.Config{InsecureSkipVerify: true},
		Timeout: 5 * time.Second}
	return c
}

func TestClient_Send(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*server)
		remote  bool
		taken   int
		refused bool // a *RecipientError
		lasting bool
		says    string
	}{
		"loopback without TLS": {func(*server) {}, false, 1, false, false, ""},
		"STARTTLS":             {func(s *server) { s.starttls = true }, true, 1, false, false, ""},
		"no STARTTLS":          {func(*server) {}, true, 0, false, false, "STARTTLS"},
		"TLS":                  {func(s *server) { s.implicit = true }, true, 1, false, false, ""},
		"unknown recipient":    {func(s *server) { s.answers["RCPT"] = "550 no such user" }, false, 0, true, true, "550"},
		"mailbox busy":         {func(s *server) { s.answers["RCPT"] = "450 busy" }, false, 0, true, false, "450"},
		"content refused":      {func(s *server) { s.answers["DATA"] = "554 no" }, false, 0, true, true, "554"},
		"sender refused":       {func(s *server) { s.answers["MAIL"] = "553 not you" }, false, 0, false, false, "sender"},
		"service closes":       {func(s *server) { s.answers["RCPT"] = "421 closing" }, false, 0, false, false, "421"},
		"STARTTLS refused": {func(s *server) { s.starttls, s.answers["STARTTLS"] = true, "454 not now" }, true, 0,
			false, false, "454"},
		"greeting that is no SMTP answer": {func(s *server) { s.answers["EHLO"], s.answers["HELO"] = "what?", "what?" }, false,
			0, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, c.change)
			err := s.client(c.remote).Send(t.Context(), "bea@acme.test", []byte("Subject: x\r\n\r\n.\r\nhello\r\n"))
			if got := s.all(); len(got) != c.taken {
				t.Errorf("the server took %d mails: %v", len(got), err)
			} else if len(got) == 1 && (!strings.Contains(got[0].text, "hello") || !strings.Contains(got[0].to, "bea@acme.test")) {
				t.Errorf("the server took %q", got)
			}
			if (err == nil) != (c.taken == 1) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one about %q", err, c.says)
			}
			refused, is := errors.AsType[*mail.RecipientError](err)
			if is != c.refused || is && refused.Permanent != c.lasting {
				t.Errorf("the refusal is %+v of %v", refused, err)
			}
			if n, _ := s.secrets(); c.remote && err == nil && !s.implicit && n != 1 {
				t.Error("the conversation was not encrypted")
			}
		})
	}
}

// A server that does not answer, at any step, holds a sender for the timeout alone.
func TestClient_Stalls(t *testing.T) {
	t.Parallel()
	for _, stall := range []string{"EHLO", "MAIL", "RCPT", "DATA"} {
		t.Run(stall, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, func(s *server) { s.stall = stall })
			c := s.client(false)
			c.Timeout = 200 * time.Millisecond
			begun := time.Now()
			if err := c.Send(t.Context(), "bea@acme.test", []byte("x")); err == nil || time.Since(begun) > 5*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are taken by the system, and never answered
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	c := mail.Client{Config: config.Mail{Host: silent.Addr().String(), Name: "127.0.0.1", Loopback: true}, Timeout: 100 * time.Millisecond}
	if err := c.Check(t.Context()); err == nil {
		t.Error("a silent server is fine")
	}
}

// The password goes over an encrypted conversation, and a certificate that is not the
// server's is refused.
func TestClient_Password(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *server) { s.starttls = true })
	c := s.client(true)
	c.Config.User, c.Config.Password = "muster", "secret"
	err := c.Check(t.Context())
	if n, password := s.secrets(); err != nil || password == "" || n != 1 {
		t.Errorf("%v, %q, %d", err, password, n)
	}
	c.TLS = nil
	if err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger's certificate: %v", err)
	}
}

// The check of the settings finds a server that takes no mail from the sender.
func TestCheck_Sender(t *testing.T) {
	t.Parallel()
	if err := newServer(t, func(*server) {}).client(false).Check(t.Context()); err != nil {
		t.Error(err)
	}
	refuses := newServer(t, func(s *server) { s.answers["MAIL"] = "553 not you" })
	if err := refuses.client(false).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "refuses the sender") {
		t.Errorf("error = %v, want the refusal of the sender", err)
	}
}

// A name that is an encoded word is shown as it was typed, and not decoded: it could turn the direction of the subject.
func TestMessage_EncodedWord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const evil = "=?utf-8?q?=E2=80=AEtxet?="
	for _, u := range []*account.User{&d.bea, &d.ada} {
		changed, err := d.DB().UpdateUser(d.Context(), d.Company.ID, u.ID, func(u *account.User) error { u.Name = evil; return nil })
		d.ok(err)
		*u = changed
	}
	d.authorization()
	got := d.round(d.sender)
	if len(got) != 1 {
		t.Fatalf("%d mails, want 1", len(got))
	}
	header, _ := d.read(got[0])
	for _, name := range []string{"Subject", "To"} {
		read, err := new(mime.WordDecoder).DecodeHeader(header.Get(name))
		if d.ok(err); !strings.Contains(read, "= ?utf-8?q?=E2=80=AEtxet?=") {
			t.Errorf("%s is %q, want the name as it was typed", name, read)
		}
	}
}
