package agent

import (
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

// NewClient returns the HTTP client of an agent: HTTP/1.1, so that the wake
// stream is a plain response; no redirects, because a redirect could lead a
// signed request elsewhere; no time limit over all, because the stream is long.
func NewClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = false
	transport.TLSNextProto = nil
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.IdleConnTimeout = 5 * time.Minute
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Status is what a device knows of its own enrolment.
type Status struct {
	DeviceID string
	Server   string
	Role     agentproto.Role
	Policy   agentproto.PolicyRef
	Open     int // commands that the service has no final word about
}

// Status returns it.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := 0
	for _, stage := range []Stage{Received, Started, Done} {
		open += len(a.journal.Entries(stage))
	}
	a.link.mu.Lock()
	defer a.link.mu.Unlock()
	return Status{DeviceID: a.link.id.DeviceID, Server: a.link.id.Server, Role: a.link.id.Role, Policy: a.applied.Policy, Open: open}
}
