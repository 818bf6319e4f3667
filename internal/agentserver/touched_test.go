package agentserver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// unsteady is a device on which applying a setting may fail, or end the agent's process.
type unsteady struct {
	*simulated.Device
	crashAfter string                           // of the setting
	refuses    func(setting, value string) bool // nil: nothing
}

// Apply implements agent.Device.
func (d *unsteady) Apply(ctx context.Context, setting, value string) error {
	if d.refuses != nil && d.refuses(setting, value) {
		return errors.New("the system does not answer")
	}
	err := d.Device.Apply(ctx, setting, value)
	if setting == d.crashAfter {
		panic(errCrash)
	}
	return err
}

func (w *world) unsteady() (*phone, *unsteady) {
	w.t.Helper()
	p := w.enroll(protocol.Ed25519)
	d := &unsteady{Device: p.device}
	p.options.Device = d
	p.start()
	p.mustCheckIn()
	return p, d
}

// crashing checks in with a process that ends within that.
func (p *phone) crashing() {
	p.world.t.Helper()
	defer func() {
		if r := recover(); r != errCrash { //nolint:errorlint // a panic's value
			p.world.t.Fatalf("the process ended with %v, want %v", r, errCrash)
		}
		p.start()
	}()
	_ = p.checkIn()
}

// What a policy set whose record was cut short is taken back with the next policy, with
// the policy before it, and when the device is given back.
func TestPolicy_HalfAppliedIsTakenBack(t *testing.T) {
	w := newWorld(t)
	half := w.newPolicy("Half", policy.Change{Setting: "SMS", Value: "BLOCK"})
	other := w.newPolicy("Other", policy.Change{Setting: "CAMERA", Value: "BLOCK"})
	for name, end := range map[string]func(*phone) error{
		"another policy": func(p *phone) error {
			p.send(command.ChangePolicy, command.PolicyRef(other.ID))
			return p.checkIn()
		},
		"the policy before": func(p *phone) error {
			p.send(command.ChangePolicy, command.PolicyRef(w.policy.ID))
			return p.checkIn()
		},
		"unenroll": func(p *phone) error { return p.agent.Unenroll(t.Context()) },
	} {
		p, d := w.unsteady()
		p.send(command.ChangePolicy, command.PolicyRef(half.ID))
		d.crashAfter = "SMS"
		p.crashing()
		d.crashAfter = ""
		if got := p.device.State().Settings["SMS"]; got != "BLOCK" {
			t.Fatalf("%s: the half-applied policy set SMS to %q, want BLOCK", name, got)
		}
		if err := end(p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := p.device.State().Settings["SMS"]; got != "" {
			t.Errorf("%s: SMS is %q, want it taken back", name, got)
		}
	}
}

// A setting that could not be taken back is reported, and tried again with each policy
// and when the device is given back.
func TestPolicy_FailedTakeBackIsRemembered(t *testing.T) {
	w := newWorld(t)
	p, d := w.unsteady()
	d.refuses = func(setting, value string) bool { return setting == "CAMERA" && value == "" }
	for _, name := range []string{"First", "Second"} {
		p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy(name, policy.Change{Setting: "SMS", Value: "BLOCK"}).ID))
		p.mustCheckIn()
		if now := compliance(t, p); now.PolicyCompliant || len(now.NonComplianceDetails) != 1 ||
			now.NonComplianceDetails[0].SettingName != "CAMERA" {
			t.Errorf("%s: the device reported %+v, want CAMERA", name, now)
		}
	}
	d.refuses = nil
	if err := p.agent.Unenroll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.device.State().Settings["CAMERA"]; got != "" {
		t.Errorf("CAMERA is %q, want it taken back", got)
	}
}

// A device that was to be given back, and could not be, has its policy as before.
func TestRelinquish_FailedLeavesThePolicy(t *testing.T) {
	w := newWorld(t)
	p, d := w.unsteady()
	p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Two", policy.Change{Setting: "CAMERA", Value: "BLOCK"},
		policy.Change{Setting: "SMS", Value: "BLOCK"}).ID))
	p.mustCheckIn()
	d.refuses = func(setting, value string) bool { return setting == "SMS" && value == "" }
	p.send(command.RelinquishOwnership, nil)
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Failed {
		t.Fatalf("the release is %s %q, want %s", c.State, c.Outcome, command.Failed)
	}
	if got := p.device.State().Settings; got["CAMERA"] != "BLOCK" || got["SMS"] != "BLOCK" {
		t.Errorf("the device has %v, want CAMERA and SMS blocked", got)
	}
	if now := compliance(t, p); !now.PolicyCompliant {
		t.Errorf("the device reported %+v", now)
	}
}

// What could not be set again after a failed release is reported.
func TestRelinquish_FailedTellsWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	p, d := w.unsteady()
	p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Two", policy.Change{Setting: "CAMERA", Value: "BLOCK"},
		policy.Change{Setting: "SMS", Value: "BLOCK"}).ID))
	p.mustCheckIn()
	d.refuses = func(setting, value string) bool { return setting == "SMS" || value != "" }
	p.send(command.RelinquishOwnership, nil)
	p.mustCheckIn()
	if now := compliance(t, p); now.PolicyCompliant || len(now.NonComplianceDetails) != 1 ||
		now.NonComplianceDetails[0].SettingName != "CAMERA" {
		t.Errorf("the device reported %+v, want CAMERA", now)
	}
}

// A wipe that Android refuses leaves the device as its policy asks for, also where the
// wipe took a restriction back first.
func TestWipe_FailedLeavesThePolicy(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	state := p.android()
	p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("No reset", policy.Change{Setting: "FACTORY_RESET", Value: "BLOCK"}).ID))
	p.mustCheckIn()
	device := p.options.Device.(linesDevice)
	device.Tools = refusing{device.Tools}
	p.start()
	p.send(command.WipeCompanyData, nil)
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Failed || !state.Platform.Restrictions["no_factory_reset"] {
		t.Errorf("the wipe is %s %q, and the restrictions are %v, want it failed and no_factory_reset", c.State, c.Outcome,
			state.Platform.Restrictions)
	}
}

// refusing are tools that order no factory reset.
type refusing struct{ shell.Runner }

// Run implements shell.Runner.
func (r refusing) Run(ctx context.Context, tool string, args ...string) (string, error) {
	if tool == "am" || tool == "reboot" {
		return "", &shell.ToolError{Tool: tool, Code: 1, Text: "no"}
	}
	return r.Runner.Run(ctx, tool, args...)
}
