package agentserver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// runs runs the phone's agent over a network and returns when ready is closed.
func (p *phone) runs(network roundTripper, ready <-chan struct{}) {
	p.world.t.Helper()
	client := *agent.NewClient()
	client.Transport = network
	p.options.Client = &client
	p.start()
	ctx, cancel := context.WithCancel(p.world.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.agent.Run(ctx) }()
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		p.world.t.Error("it did not come to that in time")
	}
	cancel()
	<-done
}

// The stream is opened after the first check-in was answered. A request that
// overtakes it costs one more request, not five seconds without wake-ups.
func TestStream_RefusalIsMended(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	base := agent.NewClient().Transport
	var mu sync.Mutex
	var calls []string
	var refused time.Time
	opened := make(chan struct{})
	p.runs(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/wake") {
			response, err := base.RoundTrip(r)
			calls = append(calls, r.URL.Path)
			return response, err
		}
		calls = append(calls, "wake")
		if refused.IsZero() { // a request with a higher number came first
			d, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID())
			if err != nil {
				return nil, err
			}
			if _, _, err := w.db.Contact(t.Context(), d.ID, d.Key, d.LastSequence+5); err != nil {
				return nil, err
			}
		}
		response, err := base.RoundTrip(r)
		switch {
		case err != nil:
		case response.StatusCode == http.StatusConflict:
			refused = time.Now()
		case response.StatusCode == http.StatusOK && !refused.IsZero():
			if late := time.Since(refused); late > 2*time.Second {
				t.Errorf("the stream came back after %s", late)
			}
			close(opened)
		}
		return response, err
	}, opened)
	mu.Lock()
	defer mu.Unlock()
	if len(calls) == 0 || calls[0] != protocol.Base+"/checkin" {
		t.Errorf("requests: %q", calls)
	}
}

// That there are no wake-ups is said once, not at each attempt.
func TestStream_WarnsOnce(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	base := agent.NewClient().Transport
	var log bytes.Buffer
	p.options.Log, p.options.Pace = slog.New(slog.NewTextHandler(&log, nil)), 1000
	tried, enough := 0, make(chan struct{})
	p.runs(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/wake") {
			return base.RoundTrip(r)
		}
		if tried++; tried == 5 {
			close(enough)
		}
		return nil, errors.New("a foreign certificate")
	}, enough)
	if got := strings.Count(log.String(), "wake stream interrupted"); got != 1 || !strings.Contains(log.String(), "a foreign certificate") {
		t.Errorf("after %d attempts the log has %d warnings: %s", tried, got, log.String())
	}
}
