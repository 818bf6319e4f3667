package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Connection is how a device gets to its service and knows it. It is kept with
// the device's identity.
type Connection struct {
	// Pins are the keys of certificates that the service may show
	// (protocol.Pin); none: its certificate must be one that the world trusts.
	Pins []string `json:"pins,omitempty"`
	// NameServers find the service's address where Android reports none.
	NameServers []string `json:"nameServers,omitempty"`
}

// Dialer connects to an address.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// NewClient returns the HTTP client of an agent: HTTP/1.1, so that the wake
// stream is a plain response; no redirects, because a redirect could lead a
// signed request elsewhere; no time limit over all, because the stream is long.
func NewClient() *http.Client { return Connection{}.Client(nil, nil, nil) }

// Client returns the HTTP client for a connection. A nil dial is Go's own. Without pins
// certificates are judged by now, nil the machine's clock; with pins by passed, a time
// that has surely passed (SignedTime), nil 1970.
func (c Connection) Client(dial Dialer, now, passed func() time.Time) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = false
	transport.TLSNextProto = nil
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.IdleConnTimeout = 5 * time.Minute
	transport.TLSClientConfig = c.tls(now, passed)
	if dial != nil {
		transport.DialContext = dial
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tls judges certificates by the pins, if there are any, and by nothing else:
// then neither a certificate authority nor a wrong clock can put another in the
// service's place, and the service needs no public certificate.
func (c Connection) tls(now, passed func() time.Time) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Time: now}
	if len(c.Pins) == 0 {
		return config
	}
	config.InsecureSkipVerify = true // the check below takes its place; there is no way around it
	config.VerifyConnection = func(s tls.ConnectionState) error {
		at := time.Unix(0, 0)
		if passed != nil {
			at = passed()
		}
		return c.judge(s, at)
	}
	return config
}

// judge accepts the pinned key itself, or a certificate for this very host that
// a pinned authority has signed. What the authority has signed is judged by the first
// moment after passed at which all certificates may be valid: the device's clock has no
// part in it, so that a wrong one neither locks the device out nor lets an expired
// certificate in.
func (c Connection) judge(s tls.ConnectionState, passed time.Time) error {
	leaf := s.PeerCertificates[0]
	if slices.Contains(c.Pins, protocol.Pin(leaf)) {
		return nil
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	at := passed
	for _, certificate := range s.PeerCertificates {
		if certificate.NotBefore.After(at) {
			at = certificate.NotBefore
		}
	}
	for _, certificate := range s.PeerCertificates[1:] {
		if certificate.IsCA && slices.Contains(c.Pins, protocol.Pin(certificate)) {
			roots.AddCert(certificate)
		}
		between.AddCert(certificate)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: s.ServerName, CurrentTime: at}); err != nil {
		return fmt.Errorf("the service's certificate is not the one that this device was given: %w", err)
	}
	return nil
}

// SignedTime returns a time that has surely passed: the latest that the service of an
// enrolled device has signed, as far as it is in the state directory, which is at most a
// day before; until there is one, when the agent was built.
func SignedTime(dir string, built time.Time) func() time.Time {
	return func() time.Time {
		id, err := store{dir}.identity()
		if latest := time.UnixMilli(id.Latest); err == nil && latest.After(built) {
			return latest
		}
		return built
	}
}

// LoadConnection returns the connection of an enrolled device.
func LoadConnection(dir string) (Connection, error) {
	id, err := store{dir}.identity()
	return id.Connection, err
}

// Status is what a device knows of its own enrollment.
type Status struct {
	DeviceID string
	Server   string
	Role     protocol.Role
	Policy   protocol.PolicyRef
	Open     int // commands that the service has no final word about
}

// ReadStatus reads it from a state directory. It changes nothing there, so that it
// may be asked beside an agent that runs.
func ReadStatus(dir string) (Status, error) {
	s := store{dir}
	id, err := s.identity()
	if err != nil {
		return Status{}, err
	}
	var now applied
	if err := s.load(appliedFile, &now); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
		return Status{}, err
	}
	journal, err := LoadJournal(s.path(journalFile))
	if err != nil {
		return Status{}, err
	}
	open := 0
	for _, stage := range []Stage{Received, Started, Done} {
		open += len(journal.Entries(stage))
	}
	return Status{DeviceID: id.DeviceID, Server: id.Server, Role: id.Role, Policy: now.Policy, Open: open}, nil
}

// LogFile is the name of the agent's log in the state directory. It goes with the
// enrollment.
const LogFile = "log"

// logPath is where a command's log is uploaded.
const logPath = "/log/"

// uploadLog sends what was logged lately to the service, for one command. The service
// keeps it once, also if the answer is lost and it is sent again.
func (a *Agent) uploadLog(ctx context.Context, commandID string) (string, error) {
	if a.options.Kept == nil {
		return "", fmt.Errorf("%w: this agent keeps no log", ErrUnsupported)
	}
	text, err := a.options.Kept.Text()
	if err != nil {
		return "", err
	}
	text = text[:min(len(text), protocol.MaxLog)]
	var answer struct{}
	_, err = a.link.exchange(ctx, http.MethodPost, logPath+url.PathEscape(commandID), text, &answer)
	if refused, ok := errors.AsType[*refusal](err); ok && (refused.Answer.Code == protocol.NotFound ||
		refused.Answer.Code == protocol.Malformed) {
		return "", fmt.Errorf("the service does not take the log: %s", refused.Answer.Code) // now or later
	}
	return "log uploaded", err
}

// contentType is that of a request's body.
func contentType(path string) string {
	if strings.HasPrefix(path, logPath) {
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}
