package config

import (
	"errors"
	"net"
	"net/mail"
	"net/url"
)

// Mail is where mail is handed in, and as whom. The zero value sends none.
type Mail struct {
	Host     string // HOST:PORT
	Name     string // the host, as its certificate has it
	TLS      bool   // from the first byte; else with STARTTLS, unless Loopback
	Loopback bool
	User     string // empty: without a password
	Password string
	From     mail.Address
}

// On reports whether mail is sent.
func (m Mail) On() bool { return m.Host != "" }

// Mail reads SMTPURL and MailFrom. An error does not repeat the URL, which may hold a
// password.
func (c Service) Mail() (m Mail, err error) {
	if c.SMTPURL == "" {
		return m, nil
	}
	u, err := url.Parse(c.SMTPURL)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" || u.Fragment != "" {
		return m, errors.New("MUSTER_SMTP_URL must be smtp://HOST:PORT or smtps://HOST:PORT, with USER:PASSWORD@ before the host where " +
			"the server wants them: percent-encode their special characters")
	}
	m.Name, m.TLS = u.Hostname(), u.Scheme == "smtps"
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "465", false: "587"}[m.TLS]
	}
	m.Host = net.JoinHostPort(m.Name, port)
	m.Loopback = m.Name == "localhost" || net.ParseIP(m.Name).IsLoopback()
	if u.User != nil {
		m.User = u.User.Username()
		m.Password, _ = u.User.Password()
	}
	from, err := mail.ParseAddress(c.MailFrom)
	if err != nil {
		return Mail{}, errors.New("MUSTER_MAIL_FROM must be an address such as muster@example.com: MUSTER_SMTP_URL needs a sender")
	}
	m.From = *from
	return m, nil
}
