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
	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// CLI runs one administration command, as the muster program does, and decodes
// the JSON that it prints into v.
func (l *Env) CLI(v any, args ...string) {
	l.TB.Helper()
	if err := l.TryCLI(v, args...); err != nil {
		l.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
}

// TryCLI is CLI of a command that may fail.
func (l *Env) TryCLI(v any, args ...string) error {
	l.TB.Helper()
	out, err := l.command(append(args, "-o", "json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		l.TB.Fatalf("muster %s printed %q: %v", strings.Join(args, " "), out, err)
	}
	return nil
}

// Table is what an administration command prints for people.
func (l *Env) Table(args ...string) string {
	l.TB.Helper()
	out, err := l.command(args)
	if err != nil {
		l.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func (l *Env) command(args []string) ([]byte, error) {
	l.TB.Helper()
	parser, err := kong.New(&cli.Commands{}, kong.Exit(func(int) {}), cli.Durations())
	if err != nil {
		l.TB.Fatal(err)
	}
	chosen, err := parser.Parse(append(args, "--database", l.Database))
	if err != nil {
		l.TB.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	var out bytes.Buffer
	err = chosen.Run(&cli.Env{Context: l.TB.Context(), Out: &out, Now: l.Now, Open: service.OpenAdmin(l.Now, l.keyFile), Signer: l.signer})
	return out.Bytes(), err
}

// signer has the keys of a file; empty: of the service's.
func (l *Env) signer(store config.Store, keyFile string) (activity.Signer, error) {
	return service.OpenSigner(store, cmp.Or(keyFile, l.keyFile))
}

// NewAgentSite makes a company that is connected to no platform, with a policy
// for agents made by command line.
func (l *Env) NewAgentSite(slug string, settings ...string) *Tenant {
	l.TB.Helper()
	s := &Tenant{Env: l, Company: l.Company(slug, Everything())}
	s.Policy = l.AgentPolicy(s.Company, "Kiosk", settings...)
	return s
}

// AgentPolicy makes an AGENT policy by command line; settings are NAME=VALUE.
func (l *Env) AgentPolicy(c company.Company, displayName string, settings ...string) policy.Policy {
	l.TB.Helper()
	args := []string{"policy", "create", "--company", c.Slug, "--name", displayName, "--type", "AGENT"}
	for _, set := range settings {
		args = append(args, "--set", set)
	}
	var made struct{ PathName string }
	l.CLI(&made, args...)
	id := made.PathName[strings.LastIndexByte(made.PathName, '/')+1:]
	p, err := l.Admin().Policies.Current(l.TB.Context(), c.ID, id)
	if err != nil {
		l.TB.Fatal(err)
	}
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
	token string
	to    atomic.Pointer[string] // host:port of the replica that it reaches; nil: none
}

// AgentDevice enrolls a device with a code of the tenant's policy; change may alter it
// before.
func (s *Tenant) AgentDevice(r *Replica, change ...func(*simulated.State)) *AgentDevice {
	s.TB.Helper()
	token, server := AgentToken(s.TB, s.Client(r, access.All).QRCode(s.Policy, map[string]any{}))
	state := simulated.Default(fmt.Sprintf("SN-%d", s.serial.Add(1)))
	for _, c := range change {
		c(&state)
	}
	p := &AgentDevice{env: s.Env, token: token, Device: simulated.New(state, s.Now)}
	dir := s.TB.TempDir()
	kept := logfile.Open(filepath.Join(dir, agent.LogFile))
	p.Options = agent.Options{Dir: dir, Version: "test", Device: p.Device, Now: s.Now, Log: slog.New(slog.NewTextHandler(kept, nil)), Kept: kept,
		Client: &http.Client{Transport: reach{&p.to}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	p.Reach(r)
	enrolled, err := agent.Enroll(s.TB.Context(), agent.Enrollment{Options: p.Options, Server: server, Token: token, Role: protocol.Manager})
	if err != nil {
		s.TB.Fatal(err)
	}
	known, err := s.DB().AgentDevice(s.TB.Context(), enrolled.DeviceID)
	if err != nil {
		s.TB.Fatal(err)
	}
	p.AssetID = known.AssetID
	s.TB.Cleanup(p.Kill)
	p.Start()
	return p
}

// Reach is a transport that leads every request to a host:port; nil: to none.
func Reach(host *atomic.Pointer[string]) http.RoundTripper { return reach{host} }

// reach leads every request to the replica that the phone is to reach.
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

// Reach leads the phone to a replica; nil cuts it off.
func (p *AgentDevice) Reach(r *Replica) {
	if r == nil {
		p.to.Store(nil)
		return
	}
	p.ReachURL(r.PublicURL())
}

// ReachURL leads the phone to a service.
func (p *AgentDevice) ReachURL(address string) {
	p.env.TB.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	p.to.Store(&u.Host)
}

// Start starts the agent's process, again after Kill.
func (p *AgentDevice) Start() {
	p.env.TB.Helper()
	a, err := agent.New(p.Options)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	p.Agent = a
}

// Kill ends the agent as a crash does: nothing more is written.
func (p *AgentDevice) Kill() {
	if p.Agent != nil {
		_ = p.Agent.Close()
		p.Agent = nil
	}
}

// CheckIn has the agent check in and do what there is to do.
func (p *AgentDevice) CheckIn() error {
	_, err := p.Agent.Once(p.env.TB.Context())
	return err
}

// MustCheckIn is CheckIn that must succeed.
func (p *AgentDevice) MustCheckIn() {
	p.env.TB.Helper()
	if err := p.CheckIn(); err != nil {
		p.env.TB.Fatal(err)
	}
}

// Run runs the agent until the test ends, or stop is called, or the service
// lets it go.
func (p *AgentDevice) Run() (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.env.TB.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Agent.Run(ctx) }()
	ended := func() error {
		cancel()
		err, ok := <-done
		if ok {
			close(done)
		}
		return err
	}
	p.env.TB.Cleanup(func() { _ = ended() })
	return ended
}

// CrashAt kills the agent at the first time that it comes to a step, checking
// in until then, and starts it again. It reports whether the step came.
func (p *AgentDevice) CrashAt(step string) (crashed bool) {
	p.env.TB.Helper()
	p.Kill()
	p.Options.Crash = func(at string) {
		if at == step && !crashed {
			crashed = true
			panic(errCrash)
		}
	}
	p.Start()
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(errCrash) {
				panic(r)
			}
		}()
		_ = p.CheckIn() // whether the service is there does not matter
	}()
	p.Kill()
	p.Options.Crash = nil
	p.Start()
	return crashed
}

var errCrash = errors.New("crash")

// patienceOfCheckIns bounds CheckInUntil.
const patienceOfCheckIns = 50

// FallSilent lets the time pass after which devices that were to erase themselves
// are taken to have done so.
func (l *Env) FallSilent() {
	l.TB.Helper()
	l.Advance(16 * time.Minute)
	silentSince := l.Now().Add(-15 * time.Minute)
	gone, err := l.DB().Erased(l.TB.Context(), silentSince, 100)
	for _, d := range gone {
		_, ended := l.DB().EndAgent(l.TB.Context(), d, agentdevice.Ending{How: agentdevice.Erased, At: l.Now(), SilentSince: silentSince})
		err = errors.Join(err, ended)
	}
	if err != nil {
		l.TB.Fatal(err)
	}
}

// CheckInUntil has the agent check in until check returns nil. When the agent
// has ended, it falls silent.
func (p *AgentDevice) CheckInUntil(what string, check func() error) {
	p.env.TB.Helper()
	err := check()
	for range patienceOfCheckIns {
		if err == nil {
			return
		}
		if failed := p.CheckIn(); errors.Is(failed, agent.ErrEnded) {
			if err = check(); err != nil {
				p.env.FallSilent()
				err = check()
			}
			break
		}
		poll.Pause(10 * time.Millisecond) // the service works on what it got
		err = check()
	}
	if err != nil {
		p.env.TB.Fatalf("%s: %v", what, err)
	}
}
