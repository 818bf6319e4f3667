// Package mail sends mail: about what waits for a person's decision, and invitations. What
// is to be sent is the state in the database; one replica sends.
package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/validate"
)

// callTime bounds one conversation with the server.
const callTime = 30 * time.Second

// Client hands mail to a server, a conversation each.
type Client struct {
	Config config.Mail
	// TLS is nil in production: the system's authorities are trusted.
	TLS *tls.Config
	// Timeout of a conversation; 0: 30 seconds.
	Timeout time.Duration
}

// RecipientError is a server's refusal of this mail, after which other mail may go.
type RecipientError struct {
	Permanent bool // the server's code is 5xx: it is not tried again
	Err       error
}

// Error implements error.
func (e *RecipientError) Error() string { return e.Err.Error() }

// Unwrap returns the server's answer.
func (e *RecipientError) Unwrap() error { return e.Err }

// Check opens a conversation as for mail, with its encryption, password and sender, and ends it.
func (c Client) Check(ctx context.Context) error {
	return c.talk(ctx, func(s *smtp.Client) error {
		if err := c.sender(s); err != nil {
			return err
		}
		return s.Reset()
	})
}

func (c Client) sender(s *smtp.Client) error {
	if err := s.Mail(c.Config.From.Address); err != nil {
		return fmt.Errorf("the server refuses the sender: %w", err)
	}
	return nil
}

// Send hands one message in. A *RecipientError says that the server refuses it; any other
// error, that the server is not to be had. nil: the server has taken it.
func (c Client) Send(ctx context.Context, to string, message []byte) error {
	return c.talk(ctx, func(s *smtp.Client) error {
		if err := c.sender(s); err != nil {
			return err
		}
		if err := s.Rcpt(to); err != nil {
			return refusal(err)
		}
		body, err := s.Data()
		if err != nil {
			return refusal(err)
		}
		if _, err := body.Write(message); err != nil {
			return err
		}
		return refusal(body.Close())
	})
}

// refusal makes an answer of the server to one mail a *RecipientError. 421 means that the
// server closes.
func refusal(err error) error {
	answer, ok := errors.AsType[*textproto.Error](err)
	if !ok || answer.Code == 421 {
		return err
	}
	return &RecipientError{Permanent: answer.Code >= 500, Err: err}
}

func (c Client) talk(ctx context.Context, work func(*smtp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, callTime))
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a stalled server holds nothing up
	defer stop()
	defer func() { _ = conn.Close() }()
	s, err := smtp.NewClient(conn, c.Config.Name)
	if err != nil {
		return err
	}
	if err := c.greet(s); err != nil {
		return err
	}
	if err := work(s); err != nil {
		return err
	}
	_ = s.Quit() // the mail is taken already
	return nil
}

func (c Client) dial(ctx context.Context) (net.Conn, error) {
	if c.Config.TLS {
		return (&tls.Dialer{Config: c.tls()}).DialContext(ctx, "tcp", c.Config.Host)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", c.Config.Host)
}

func (c Client) tls() *tls.Config {
	if c.TLS == nil {
		return &tls.Config{ServerName: c.Config.Name, MinVersion: tls.VersionTLS12}
	}
	own := c.TLS.Clone()
	own.ServerName = c.Config.Name
	return own
}

// greet encrypts the conversation, unless it never leaves the machine, and signs in.
func (c Client) greet(s *smtp.Client) error {
	host := "localhost"
	if _, domain, found := strings.Cut(c.Config.From.Address, "@"); found {
		host = domain
	}
	if err := s.Hello(host); err != nil {
		return err
	}
	if offered, _ := s.Extension("STARTTLS"); !c.Config.TLS && !c.Config.Loopback {
		if !offered {
			return errors.New("the server offers no STARTTLS: use smtps://, or a server that does; nothing was sent")
		}
		if err := s.StartTLS(c.tls()); err != nil {
			return err
		}
	}
	if c.Config.User == "" {
		return nil
	}
	if err := s.Auth(smtp.PlainAuth("", c.Config.User, c.Config.Password, c.Config.Name)); err != nil {
		return fmt.Errorf("the server refuses the user or the password: %w", err)
	}
	return nil
}

// maxSubject and maxName bound what a header has of names, in characters.
const (
	maxSubject = 150
	maxName    = 100
)

// maxLine is how long a line of a header with encoded words may be, in bytes (RFC 2047).
const maxLine = 76

// plain cleans a text that is not trusted for a header, in which it means nothing but itself: "=?" would begin an encoded
// word (RFC 2047), which programs decode, in names against the RFC also within quotes.
func plain(text string, limit int) string {
	return strings.ReplaceAll(validate.Clean(text, limit), "=?", "= ?")
}

// message is one mail as plain text. The subject and the name are not trusted: they are
// cleaned of line breaks and of encoded words, and encoded. The key says what it is about: a mail that is sent
// again after a kill has the same key, and so the same Message-ID.
func message(from mail.Address, name, to, subject, text, key string, now time.Time) []byte {
	var b bytes.Buffer
	header := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	folded := func(name, value string) { b.WriteString(fold(name+": "+value) + "\r\n") }
	folded("From", from.String())
	folded("To", (&mail.Address{Name: plain(name, maxName), Address: validate.Clean(to, 320)}).String())
	folded("Subject", mime.QEncoding.Encode("utf-8", plain(subject, maxSubject)))
	header("Date", now.UTC().Format(time.RFC1123Z))
	_, domain, _ := strings.Cut(from.Address, "@")
	id := sha256.Sum256([]byte(key))
	header("Message-ID", "<"+hex.EncodeToString(id[:16])+"@"+domain+">")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	header("Auto-Submitted", "auto-generated")
	b.WriteString("\r\n")
	body := quotedprintable.NewWriter(&b)
	_, _ = body.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	_ = body.Close() // a buffer takes everything
	return b.Bytes()
}

// fold breaks a header at spaces into lines of maxLine bytes. A single longer word has a line
// of its own. Readers take the line breaks out again (RFC 5322).
func fold(header string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(header, " ") {
		switch {
		case i == 0:
		case word != "" && used+1+len(word) > maxLine:
			b.WriteString("\r\n ")
			used = 1
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}
