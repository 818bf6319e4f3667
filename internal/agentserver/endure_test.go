package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/shell/shelltest"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

func readState(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A location or a report that the journal calls done reaches the service, however
// the process ended before it was reported.
func TestReports_SurviveAKill(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []command.Type{command.LocationUpdate, command.StatusReport} {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		before := p.asset().Device.StatusReport
		p.send(kind, nil)
		killed := false
		p.options.Now = func() time.Time { return time.Now().Add(time.Second) } // the next report has another time
		client := *agent.NewClient()
		base := client.Transport
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if killed {
				return nil, errors.New("no network")
			}
			response, err := base.RoundTrip(r)
			killed = true // after the answer with the command: it is carried out, and not yet reported
			return response, err
		})
		p.options.Client = &client
		p.start()
		if err := p.checkIn(); err == nil {
			t.Fatalf("%s was reported before the kill", kind)
		}
		p.options.Client = agent.NewClient()
		p.start()
		p.mustCheckIn()
		if c := p.latest(); c.State != command.Succeeded {
			t.Errorf("%s ended %s %q", kind, c.State, c.Outcome)
		}
		if a := p.asset(); kind == command.LocationUpdate && a.Device.Location == nil || kind == command.StatusReport &&
			string(a.Device.StatusReport) == string(before) {
			t.Errorf("%s reads SUCCESS, and the asset has %v, %s", kind, a.Device.Location, a.Device.StatusReport)
		}
	}
}

// slow is a device whose restart takes longer than the agent's next step.
type slow struct {
	*simulated.Device
	restarted, down bool
}

// Do implements agent.Device.
func (d *slow) Do(ctx context.Context, a agent.Action) (string, error) {
	if d.restarted && !d.down {
		return "", fmt.Errorf("%s was begun while the machine went down", a.Type)
	}
	if a.Type == agent.Restart {
		d.restarted = true
		return "restarting", nil
	}
	return d.Device.Do(ctx, a)
}

// What is sent together with a restart waits until the machine is up again, or
// until a minute has shown that it does not restart.
func TestPowerCommand_NothingRunsUntilTheRestart(t *testing.T) {
	w := newWorld(t)
	for _, restarts := range []bool{true, false} {
		p := w.enroll(protocol.Ed25519)
		now := time.Now()
		p.options.Now = func() time.Time { return now }
		device := &slow{Device: p.device}
		p.options.Device = device
		p.start()
		p.mustCheckIn()
		p.send(command.Reboot, nil)
		p.send(command.NotificationMessage, command.MessageBody{Title: "a", Body: "b"})
		p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
		for range 3 {
			p.mustCheckIn()
		}
		if s := p.device.State(); len(s.Shown) != 0 || s.OpenApp != "" || p.latest().State.Final() {
			t.Fatalf("on the way down: shown %v, opened %q, %s", s.Shown, s.OpenApp, p.latest().State)
		}
		device.down = true
		if restarts {
			_, _ = p.device.Do(t.Context(), agent.Action{Type: agent.Restart})
			p.start()
		} else {
			now = now.Add(61 * time.Second)
		}
		for range 2 {
			p.mustCheckIn()
		}
		if s := p.device.State(); len(s.Shown) != 1 || s.OpenApp == "" || p.latest().State != command.Succeeded {
			t.Errorf("restarted %v: shown %v, opened %q, %s", restarts, s.Shown, s.OpenApp, p.latest().State)
		}
	}
}

// A device whose clock is ten minutes fast is not corrected by the service: what the
// service hands out is not expired for it.
func TestDeadline_FastClock(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.options.Now = func() time.Time { return time.Now().Add(9*time.Minute + 55*time.Second) }
	p.start()
	p.mustCheckIn()
	w.commands.Now = func() time.Time { return time.Now().Add(-8 * time.Second) } // the command waited for that long
	p.send(command.Reboot, nil)
	for range 2 {
		p.mustCheckIn()
	}
	if c := p.latest(); c.State != command.Succeeded {
		t.Errorf("the restart ended %s %q", c.State, c.Outcome)
	}
}

// Damaged files: the record of the policy is made again; an identity that cannot
// be trusted is not used.
func TestDamagedState(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"", "{", `{"policy":{"id":"x"},"checksum":"00000000"}`} {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		if err := os.WriteFile(filepath.Join(p.options.Dir, "applied.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p.start()
		p.mustCheckIn()
		var now struct{ Policy protocol.PolicyRef }
		readState(t, filepath.Join(p.options.Dir, "applied.json"), &now)
		if now.Policy.ID != w.policy.ID || !strings.Contains(string(p.asset().Device.StatusReport), "record of the applied policy") {
			t.Errorf("after %q in applied.json: policy %q, report %s", text, now.Policy.ID, p.asset().Device.StatusReport)
		}
	}
	p := w.enroll(protocol.Ed25519)
	path := filepath.Join(p.options.Dir, "identity.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 7 {
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x04
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := agent.New(p.options)
		if err == nil {
			if a.DeviceID() != p.agent.DeviceID() {
				t.Errorf("byte %d flipped: the agent runs as %q", at, a.DeviceID())
			}
			_ = a.Close()
		}
		if at < len(whole)-25 && err == nil {
			t.Errorf("byte %d flipped and nothing was noticed: %s", at, damaged)
		}
	}
	before, _, _ := strings.Cut(string(whole), `,"checksum"`)
	if err := os.WriteFile(path, []byte(before+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start() // an agent of before wrote no checksum
	p.mustCheckIn()
}

// What the policy set is taken back although the record of it was damaged: by a
// release before the next check-in, and by another policy.
func TestDamagedState_NothingStaysSet(t *testing.T) {
	w := newWorld(t)
	damaged := func() *phone {
		p := w.enroll(protocol.Ed25519)
		p.mustCheckIn()
		if got := p.device.State().Settings["CAMERA"]; got != "BLOCK" {
			t.Fatalf("the policy is not applied: camera %q", got)
		}
		if err := os.WriteFile(filepath.Join(p.options.Dir, "applied.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.start()
		return p
	}
	released := damaged()
	if err := released.agent.Unenroll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := released.device.State().Settings; len(got) != 0 {
		t.Errorf("after the release: %v", got)
	}
	moved, free := damaged(), w.newPolicy("Free", policy.Change{Setting: "SMS", Value: "BLOCK"})
	moved.send(command.ChangePolicy, command.PolicyRef(free.ID))
	moved.mustCheckIn()
	moved.mustCheckIn()
	if got := moved.device.State().Settings; got["CAMERA"] != "" || got["SMS"] != "BLOCK" {
		t.Errorf("after another policy: %v", got)
	}
}

// unmoved is Android that answers the order to erase itself as it always does, and
// does nothing.
type unmoved struct {
	shelltest.Runner
	calls []string
}

// Run implements shell.Runner.
func (d *unmoved) Run(ctx context.Context, tool string, args ...string) (string, error) {
	if tool == "am" && slices.Contains(args, "android.intent.action.FACTORY_RESET") ||
		tool == "reboot" && slices.Contains(args, "recovery") {
		d.calls = append(d.calls, tool)
		return "Broadcasting: Intent { act=android.intent.action.FACTORY_RESET }\nBroadcast completed: result=0\n", nil
	}
	return d.Runner.Run(ctx, tool, args...)
}

// That Android took the order to erase itself is no proof. The command stays open,
// the device keeps its identity, the order is given again, after a while another
// way; and only silence makes it a success.
func TestWipe_AndroidIsErasedWhenItIsSilent(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	now := time.Now()
	p.options.Now = func() time.Time { return now }
	state := simulated.Default("SN-unmoved")
	tools := &unmoved{Runner: shelltest.Runner{Machine: &shelltest.Machine{State: &state, UID: 1000}}}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "cache/recovery"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.options.Device = linesDevice{&shell.Device{Tools: tools, Root: root, UID: 1000, Now: p.options.Now}, p.device}
	p.start()
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	p.mustCheckIn()
	for i, restart := range []bool{false, true, false} {
		if restart {
			p.start()
		}
		p.mustCheckIn()
		if c := p.latest(); c.State.Final() || p.asset().Status == asset.Deleted ||
			!slices.Equal(tools.calls, slices.Repeat([]string{"am"}, i+2)) {
			t.Fatalf("contact %d: %s, asset %s, tools %q", i, c.State, p.asset().Status, tools.calls)
		}
	}
	now = now.Add(3 * time.Minute)
	p.mustCheckIn()
	if last := tools.calls[len(tools.calls)-1]; last != "reboot" {
		t.Errorf("after three minutes the device was told by %s", last)
	}
	w.link.Now = func() time.Time { return time.Now().Add(20 * time.Minute) }
	w.link.Since = w.link.Now() // no device was heard while the service was down
	if err := w.link.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := p.latest(); c.State.Final() {
		t.Errorf("after an outage: %s %q", c.State, c.Outcome)
	}
	w.link.Since = time.Time{}
	if err := w.link.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := p.latest(); c.State != command.Succeeded || p.asset().Status != asset.Deleted {
		t.Errorf("after silence: %s %q, asset %s", c.State, c.Outcome, p.asset().Status)
	}
	w.link.Now = time.Now
	p.options.Now = time.Now
	p.start()
	calls := len(tools.calls)
	if err := p.checkIn(); err == nil || errors.Is(err, agent.ErrEnded) || len(tools.calls) == calls {
		t.Errorf("a device that is back after its wipe: %v, asked again: %v", err, len(tools.calls) > calls)
	}
}
