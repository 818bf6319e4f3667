package servertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// CLI runs one administration command, as the muster program does, and decodes
// the JSON that it prints into v.
func (e *Env) CLI(v any, args ...string) {
	e.TB.Helper()
	if err := e.TryCLI(v, args...); err != nil {
		e.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
}

// TryCLI is CLI for a command that may fail: it returns the command's error.
func (e *Env) TryCLI(v any, args ...string) error {
	e.TB.Helper()
	out, err := e.command(append(args, "-o", "json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		e.TB.Fatalf("muster %s printed %q: %v", strings.Join(args, " "), out, err)
	}
	return nil
}

// Table is what an administration command prints for people.
func (e *Env) Table(args ...string) string {
	e.TB.Helper()
	out, err := e.command(args)
	if err != nil {
		e.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func (e *Env) command(args []string) ([]byte, error) {
	e.TB.Helper()
	parser, err := kong.New(&cli.Commands{}, kong.Exit(func(int) {}), cli.Durations())
	need(e.TB, err)
	chosen, err := parser.Parse(append(args, "--database", e.Database))
	if err != nil {
		e.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	var out bytes.Buffer
	err = chosen.Run(&cli.Env{Context: e.TB.Context(), Out: &out, Now: e.Now, Open: service.OpenAdmin(e.Now, e.keyFile), Signer: e.signer})
	return out.Bytes(), err
}

// signer returns the signer with the keys of keyFile; empty: of the service's key file.
func (e *Env) signer(store config.Store, keyFile string) (activity.Signer, error) {
	return service.OpenSigner(store, cmp.Or(keyFile, e.keyFile))
}

// NewAgentSite makes a company that is connected to no platform, with a policy
// for agents that the command line makes. settings are NAME=VALUE.
func (e *Env) NewAgentSite(slug string, settings ...string) *Tenant {
	e.TB.Helper()
	s := &Tenant{Env: e, Company: e.Company(slug, Everything())}
	s.Policy = e.AgentPolicy(s.Company, "Kiosk", settings...)
	return s
}

// AgentPolicy makes an AGENT policy by command line; settings are NAME=VALUE.
func (e *Env) AgentPolicy(c company.Company, displayName string, settings ...string) policy.Policy {
	e.TB.Helper()
	args := []string{"policy", "create", "--company", c.Slug, "--name", displayName, "--type", "AGENT"}
	for _, set := range settings {
		args = append(args, "--set", set)
	}
	var made struct{ PathName string }
	e.CLI(&made, args...)
	id := made.PathName[strings.LastIndexByte(made.PathName, '/')+1:]
	p, err := e.Admin().Policies.Current(e.TB.Context(), c.ID, id)
	need(e.TB, err)
	return p
}

// AgentToken reads the enrollment token and the service's address from the text
// of a QR code.
func AgentToken(tb testing.TB, code string) (token, server string) {
	tb.Helper()
	var payload struct {
		Extras map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	if err := json.Unmarshal([]byte(code), &payload); err != nil {
		tb.Fatalf("the code's text %q: %v", code, err)
	}
	for key, value := range payload.Extras {
		switch {
		case strings.HasSuffix(key, ".ENROLLMENT_TOKEN"):
			token = value
		case strings.HasSuffix(key, ".SERVER_URL"):
			server = value
		}
	}
	if token == "" || server == "" {
		tb.Fatalf("no token or server in %q", code)
	}
	return token, server
}

// AgentDevice is a simulated device with the real agent.
type AgentDevice struct {
	AssetID string
	Device  *simulated.Device
	Options agent.Options
	Agent   *agent.Agent // nil while it is not running

	env   *Env
	token string                 // with which it enrolled
	to    atomic.Pointer[string] // host:port of the replica that it reaches; nil: none
}

// AgentDevice enrolls a new device at a replica with a code of the tenant's policy, and starts its agent. Each change alters
// the device's state before that. The end of the test kills the agent.
func (t *Tenant) AgentDevice(r *Replica, change ...func(*simulated.State)) *AgentDevice {
	t.TB.Helper()
	token, server := AgentToken(t.TB, t.Client(r, access.All).QRCode(t.Policy, map[string]any{}))
	state := simulated.Default(fmt.Sprintf("SN-%d", t.serial.Add(1)))
	for _, c := range change {
		c(&state)
	}
	p := &AgentDevice{env: t.Env, token: token, Device: simulated.New(state, t.Now)}
	dir := t.TB.TempDir()
	kept := logfile.Open(filepath.Join(dir, agent.LogFile))
	p.Options = agent.Options{Dir: dir, Version: "test", Device: p.Device, Now: t.Now, Log: slog.New(slog.NewTextHandler(kept, nil)),
		Kept: kept,
		Client: &http.Client{Transport: reach{&p.to}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	p.Reach(r)
	enrolled, err := agent.Enroll(t.TB.Context(), agent.Enrollment{Options: p.Options, Server: server, Token: token,
		Role: protocol.Manager})
	need(t.TB, err)
	known, err := t.DB().AgentDevice(t.TB.Context(), enrolled.DeviceID)
	need(t.TB, err)
	p.AssetID = known.AssetID
	t.TB.Cleanup(p.Kill)
	p.Start()
	return p
}

// Reach returns a transport that sends every request to the host:port in host; while it holds nil, requests fail.
func Reach(host *atomic.Pointer[string]) http.RoundTripper { return reach{host} }

// reach is the transport of Reach.
type reach struct{ to *atomic.Pointer[string] }

// RoundTrip implements http.RoundTripper.
func (t reach) RoundTrip(r *http.Request) (*http.Response, error) {
	host := t.to.Load()
	if host == nil {
		return nil, errors.New("no network")
	}
	there := r.Clone(r.Context())
	there.URL.Host = *host
	return http.DefaultTransport.RoundTrip(there)
}

// Reach sends the device's requests to a replica from now on; nil: they fail.
func (d *AgentDevice) Reach(r *Replica) {
	if r == nil {
		d.to.Store(nil)
		return
	}
	d.ReachURL(r.PublicURL())
}

// ReachURL sends the device's requests to the host and port of a service's URL from now on.
func (d *AgentDevice) ReachURL(address string) {
	d.env.TB.Helper()
	u, err := url.Parse(address)
	need(d.env.TB, err)
	d.to.Store(&u.Host)
}

// Start opens the agent, as a new process does. AgentDevice has done so; it is for after Kill.
func (d *AgentDevice) Start() {
	d.env.TB.Helper()
	a, err := agent.New(d.Options)
	need(d.env.TB, err)
	d.Agent = a
}

// Kill closes the agent. Start opens it again, with the files that it left.
func (d *AgentDevice) Kill() {
	if d.Agent != nil {
		_ = d.Agent.Close()
		d.Agent = nil
	}
}

// CheckIn has the agent check in once and carry out its commands.
func (d *AgentDevice) CheckIn() error {
	_, err := d.Agent.Once(d.env.TB.Context())
	return err
}

// MustCheckIn is CheckIn that must succeed.
func (d *AgentDevice) MustCheckIn() {
	d.env.TB.Helper()
	need(d.env.TB, d.CheckIn())
}

// Run runs the agent in the background until stop is called, the test ends, or the service ends the enrollment. stop waits
// for the agent's end and returns its error; a second call returns nil.
func (d *AgentDevice) Run() (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.env.TB.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Agent.Run(ctx) }()
	ended := func() error {
		cancel()
		err, ok := <-done
		if ok {
			close(done)
		}
		return err
	}
	d.env.TB.Cleanup(func() { _ = ended() })
	return ended
}

// CrashAt lets the agent check in once, crashes it when it first reaches the step (agent.Options.Crash), and starts it
// again. It reports whether the agent reached the step.
func (d *AgentDevice) CrashAt(step string) (crashed bool) {
	d.env.TB.Helper()
	d.Kill()
	d.Options.Crash = func(at string) {
		if at == step && !crashed {
			crashed = true
			panic(errCrash)
		}
	}
	d.Start()
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(errCrash) {
				panic(r)
			}
		}()
		_ = d.CheckIn() // the test may have no service
	}()
	d.Kill()
	d.Options.Crash = nil
	d.Start()
	return crashed
}

var errCrash = errors.New("crash")

// patienceOfCheckIns is how many check-ins CheckInUntil makes at most.
const patienceOfCheckIns = 50

// FallSilent advances the clock by more than the 15 minutes after which the service takes a silent device that was to erase
// itself as erased, and ends these devices as the service does.
func (e *Env) FallSilent() {
	e.TB.Helper()
	e.Advance(16 * time.Minute)
	silentSince := e.Now().Add(-15 * time.Minute)
	gone, err := e.DB().Erased(e.TB.Context(), silentSince, 100)
	for _, d := range gone {
		_, ended := e.DB().EndAgent(e.TB.Context(), d, agentdevice.Ending{How: agentdevice.Erased, At: e.Now(), SilentSince: silentSince})
		err = errors.Join(err, ended)
	}
	need(e.TB, err)
}

// CheckInUntil has the agent check in until check returns nil, and fails the test with what and the last error if it does
// not. If the agent ends, the clock passes as in FallSilent before the last check.
func (d *AgentDevice) CheckInUntil(what string, check func() error) {
	d.env.TB.Helper()
	err := check()
	for range patienceOfCheckIns {
		if err == nil {
			return
		}
		if failed := d.CheckIn(); errors.Is(failed, agent.ErrEnded) {
			if err = check(); err != nil {
				d.env.FallSilent()
				err = check()
			}
			break
		}
		poll.Pause(10 * time.Millisecond) // the service may still work on what the agent reported
		err = check()
	}
	if err != nil {
		d.env.TB.Fatalf("%s: %v", what, err)
	}
}
