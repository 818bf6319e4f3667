package main

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/simulated"
)

// noted are the tools of a device that were run.
type noted []string

// Run implements shell.Runner.
func (n *noted) Run(_ context.Context, tool string, args ...string) (string, error) {
	*n = append(*n, strings.Join(append([]string{tool}, args...), " "))
	return "", nil
}

// The agent's service goes on to ask for a device that lost its identity. With an intact identity it would not ask.
func TestHandOver_OnlyWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	secret := base64.StdEncoding.EncodeToString(raw)
	for identity, asks := range map[string]bool{
		`{"server":"https://muster.example","deviceId":"d","key":"` + secret + `","commandKeys":[{"id":"k1"}]}`: false, `{`: true,
	} {
		c := common{State: t.TempDir()}
		for name, text := range map[string]string{"identity.json": identity,
			"enrolling.json": `{"server":"https://muster.example","token":"t","key":"` + secret + `","role":"manager"}`} {
			if err := os.WriteFile(filepath.Join(c.State, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ran := noted{}
		got, err := c.handOver(t.Context(), &shell.Device{Tools: &ran, Root: c.State, Now: time.Now})
		if want := map[bool]int{true: 2}[asks]; err != nil || got != asks || len(ran) != want {
			t.Errorf("with the identity %s: handed over %t, error %v, ran %q; want %t and %d tools", identity, got, err, ran, asks, want)
		}
	}
}

// The push service that enroll was given is the one that run listens to.
func TestPush_IsRemembered(t *testing.T) {
	t.Parallel()
	c := common{State: t.TempDir(), Driver: "simulated"}
	listensTo := func(given, want string) {
		t.Helper()
		c.Push = given
		_, push, err := c.device()
		got, _ := push.(simulated.Push)
		if err != nil || got.Emulator != want || (push == nil) != (want == "") {
			t.Errorf("--push=%q: listens to %+v, want %q, error %v", given, push, want, err)
		}
	}
	listensTo("", "")
	listensTo("http://127.0.0.1:1", "http://127.0.0.1:1")
	listensTo("", "http://127.0.0.1:1")
	listensTo("http://127.0.0.1:2", "http://127.0.0.1:2")
	listensTo("", "http://127.0.0.1:2")
}

// refuser is a service that is busy at first, and then refuses the token.
type refuser struct{ asked []time.Time }

// RoundTrip implements http.RoundTripper.
func (s *refuser) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Now())
	status, header, code := http.StatusTooManyRequests, http.Header{"Retry-After": {"100"}}, protocol.RateLimited
	if len(s.asked) > 2 {
		status, header, code = http.StatusUnauthorized, http.Header{}, protocol.BadToken
	}
	return &http.Response{StatusCode: status, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"error": "` + string(code) + `"}`))}, nil
}

// A device that enrolls asks again when the service said so, and not before.
func TestRedeem_WaitsAsTheServiceAsks(t *testing.T) {
	t.Parallel()
	device, err := simulated.Open(t.TempDir(), simulated.Default("S1"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &refuser{}
		env := &environment{ctx: t.Context(), out: io.Discard, err: io.Discard, log: slog.New(slog.DiscardHandler)}
		_, err := redeem(env, agent.Enrollment{Server: "https://muster.example", Token: "token", Role: protocol.Manager,
			Options: agent.Options{Dir: dir, Device: device, Client: &http.Client{Transport: s}, Now: time.Now}}, nil)
		if err == nil || !strings.Contains(err.Error(), string(protocol.BadToken)) || len(s.asked) != 3 {
			t.Fatalf("asked %d times: %v", len(s.asked), err)
		}
		for n := range 2 {
			if waited := s.asked[n+1].Sub(s.asked[n]); waited < 80*time.Second || waited > 120*time.Second {
				t.Errorf("asked again after %s, want about 100s", waited)
			}
		}
	})
}
