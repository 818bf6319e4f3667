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
	"slices"
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
func NewClient() *http.Client { return Connection{}.Client(nil, nil) }

// Client returns the HTTP client for a connection. A nil dial is Go's own; now
// is the time by which certificates are judged, nil the machine's.
func (c Connection) Client(dial Dialer, now func() time.Time) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = false
	transport.TLSNextProto = nil
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.IdleConnTimeout = 5 * time.Minute
	transport.TLSClientConfig = c.tls(now)
	if dial != nil {
		transport.DialContext = dial
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tls judges certificates by the pins, if there are any, and by nothing else:
// then neither a certificate authority nor a wrong clock can put another in the
// service's place, and the service needs no public certificate.
func (c Connection) tls(now func() time.Time) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Time: now}
	if len(c.Pins) == 0 {
		return config
	}
	config.InsecureSkipVerify = true // the check below takes its place; there is no way around it
	config.VerifyConnection = func(s tls.ConnectionState) error {
		var at time.Time // x509 takes the machine's
		if now != nil {
			at = now()
		}
		return c.judge(s, at)
	}
	return config
}

// judge accepts the pinned key itself, or a certificate for this very host that
// a pinned authority has signed.
func (c Connection) judge(s tls.ConnectionState, now time.Time) error {
	leaf := s.PeerCertificates[0]
	if slices.Contains(c.Pins, protocol.Pin(leaf)) {
		return nil
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, certificate := range s.PeerCertificates[1:] {
		if certificate.IsCA && slices.Contains(c.Pins, protocol.Pin(certificate)) {
			roots.AddCert(certificate)
		}
		between.AddCert(certificate)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: s.ServerName, CurrentTime: now}); err != nil {
		return fmt.Errorf("the service's certificate is not the one that this device was given: %w", err)
	}
	return nil
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
