package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/shell/shelltest"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// android puts the device under Android's command lines.
func (p *phone) android() *simulated.State {
	state := simulated.Default("SN-lines")
	p.options.Device = linesDevice{&shell.Device{Tools: shelltest.Runner{Machine: &shelltest.Machine{State: &state, UID: 1000}},
		Root: p.world.t.TempDir(), UID: 1000, Now: p.options.Now}, p.device}
	p.start()
	return &state
}

// linesDevice takes the boot id from the model: there is no kernel.
type linesDevice struct {
	*shell.Device
	boot *simulated.Device
}

// BootID implements agent.Device.
func (d linesDevice) BootID(ctx context.Context) (string, error) { return d.boot.BootID(ctx) }

// Each setting that can cut a device off, driven by command lines: it is taken
// back after five minutes out of touch, the device says so, and the rest of the
// policy stays.
func TestPolicy_EachSettingThatCutsOffIsTakenBack(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		change policy.Change
		cut    func(*simulated.State) bool
	}{
		{policy.Change{Setting: "WIFI_STATE", Value: "DISABLED"}, func(s *simulated.State) bool { return s.Platform.WifiOff }},
		{policy.Change{Setting: "CONFIGURE_WIFI", Value: "BLOCK"}, func(s *simulated.State) bool {
			return s.Platform.Restrictions["no_config_wifi"]
		}},
		{policy.Change{Setting: "AIRPLANE_MODE", Value: "DISABLED"}, func(s *simulated.State) bool {
			return s.Platform.Restrictions["no_airplane_mode"]
		}},
		{policy.Change{Setting: "VPN_CONFIGURATION", Value: "BLOCK"}, func(s *simulated.State) bool {
			return s.Platform.Restrictions["no_config_vpn"]
		}},
	} {
		p := w.enroll(protocol.Ed25519)
		now := time.Now()
		p.options.Now = func() time.Time { return now }
		state := p.android()
		p.mustCheckIn()
		cutting := w.newPolicy("Cutting by "+test.change.Setting, test.change, policy.Change{Setting: "SMS", Value: "BLOCK"})
		p.send(command.ChangePolicy, command.PolicyRef(cutting.ID))
		client := *agent.NewClient()
		base := client.Transport
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if test.cut(state) {
				return nil, errors.New("no network")
			}
			return base.RoundTrip(r)
		})
		p.options.Client = &client
		p.start()
		if err := p.checkIn(); err == nil || !test.cut(state) {
			t.Fatalf("%s did not cut the device off: %v", test.change.Setting, err)
		}
		p.start() // the process may have died
		now = now.Add(4 * time.Minute)
		if err := p.checkIn(); err == nil || !test.cut(state) {
			t.Fatalf("%s taken back too early: %v", test.change.Setting, err)
		}
		now = now.Add(2 * time.Minute)
		if err := p.checkIn(); err != nil || test.cut(state) || !state.Platform.Restrictions["no_sms"] {
			t.Errorf("%s after five minutes: %v, %+v", test.change.Setting, err, state.Platform)
		}
		if report := compliance(t, p); report.PolicyCompliant || len(report.NonComplianceDetails) != 1 ||
			report.NonComplianceDetails[0].SettingName != test.change.Setting || report.NonComplianceDetails[0].Reason != "rolled_back" {
			t.Errorf("%s: the device reported %+v", test.change.Setting, report)
		}
		p.mustCheckIn() // and it stays so
		if test.cut(state) {
			t.Errorf("%s was applied again", test.change.Setting)
		}
	}
}

// The guard's five minutes and the six hours until drift is looked for are counted by a
// clock that cannot be set, and that starts again with the device.
func TestPolicy_TheDevicesClockDecidesNothing(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	now, elapsed := time.Now(), time.Hour
	p.options.Now, p.options.Elapsed = func() time.Time { return now }, func() time.Duration { return elapsed }
	state := p.android()
	p.mustCheckIn()
	delete(state.Platform.Restrictions, "no_camera")
	for _, wrong := range []time.Duration{3, -6} {
		now = now.AddDate(int(wrong), 0, 0)
		if p.mustCheckIn(); state.Platform.Restrictions["no_camera"] {
			t.Errorf("drift was looked for when the clock was set by %d years", wrong)
		}
	}
	elapsed += 6*time.Hour + time.Minute
	if p.mustCheckIn(); !state.Platform.Restrictions["no_camera"] {
		t.Error("drift was not looked for after six hours")
	}
	p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Cutting off", policy.Change{Setting: "WIFI_STATE", Value: "DISABLED"}).ID))
	client := *agent.NewClient()
	base := client.Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if state.Platform.WifiOff {
			return nil, errors.New("no network")
		}
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	for _, step := range []struct {
		name string
		pass func()
		off  bool
	}{
		{"at once", func() {}, true},
		{"the clock is set forward", func() { now = now.AddDate(3, 0, 0) }, true},
		{"the clock is set back", func() { now, elapsed = now.AddDate(-6, 0, 0), elapsed+4*time.Minute }, true},
		{"the device has restarted", func() {
			_, _ = p.device.Do(t.Context(), agent.Action{Type: agent.Restart})
			elapsed = 10 * time.Second
		}, true},
		{"four minutes after that", func() { elapsed += 4 * time.Minute }, true},
		{"six minutes after that", func() { elapsed += 2 * time.Minute }, false},
	} {
		step.pass()
		p.start() // the process may have died
		if err := p.checkIn(); (err != nil) != step.off || state.Platform.WifiOff != step.off {
			t.Fatalf("%s: Wi-Fi off %v, want %v: %v", step.name, state.Platform.WifiOff, step.off, err)
		}
	}
}

// complianceReport is what an asset shows of how far its policy is applied.
type complianceReport struct {
	PolicyCompliant      bool
	BatteryLevel         float64
	NonComplianceDetails []struct {
		SettingName string
		Reason      string `json:"nonComplianceReason"`
	}
}

func compliance(t *testing.T, p *phone) complianceReport {
	t.Helper()
	var now complianceReport
	if err := json.Unmarshal(p.asset().Device.StatusReport, &now); err != nil {
		t.Fatal(err)
	}
	return now
}

// What a person changes on the device is found six hours later, or at its next
// start, and set again.
func TestPolicy_DriftIsRepaired(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	now := time.Now()
	p.options.Now = func() time.Time { return now }
	state := p.android()
	p.mustCheckIn()
	for what, pass := range map[string]func(){
		"six hours later":   func() { now = now.Add(6*time.Hour + time.Minute) },
		"at the next start": func() { _, _ = p.device.Do(t.Context(), agent.Action{Type: agent.Restart}) },
	} {
		t.Run(what, func(t *testing.T) {
			delete(state.Platform.Restrictions, "no_camera")
			p.mustCheckIn()
			if state.Platform.Restrictions["no_camera"] {
				t.Errorf("%s: repaired before it was looked for", what)
			}
			pass()
			p.mustCheckIn()
			if !state.Platform.Restrictions["no_camera"] {
				t.Errorf("%s: the camera is still free", what)
			}
		})
	}
	if now := compliance(t, p); !now.PolicyCompliant || len(now.NonComplianceDetails) != 0 {
		t.Errorf("the device reported %+v", now)
	}
}

// To block LOCATION_SHARING switches location off on Android: it is refused where
// location is enforced, also if it was set before, and the rest of the policy holds.
func TestPolicy_LocationSharingContradictsLocationMode(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	state := p.android()
	sharing, mode := policy.Change{Setting: "LOCATION_SHARING", Value: "BLOCK"}, policy.Change{Setting: "LOCATION_MODE", Value: "ENFORCED"}
	for n, test := range []struct {
		changes                   []policy.Change
		blocked, off, contradicts bool
	}{
		{[]policy.Change{sharing}, true, true, false},
		{[]policy.Change{sharing, mode, {Setting: "CAMERA", Value: "BLOCK"}}, false, false, true},
		{[]policy.Change{mode}, false, false, false},
	} {
		p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy(fmt.Sprint("Location ", n), test.changes...).ID))
		p.mustCheckIn()
		if now := state.Platform; now.Restrictions["no_share_location"] != test.blocked || now.LocationOff != test.off ||
			now.Restrictions["no_camera"] != test.contradicts {
			t.Errorf("%v: the device is %v, location off: %v", test.changes, now.Restrictions, now.LocationOff)
		}
		var settings []string
		for _, d := range compliance(t, p).NonComplianceDetails {
			settings = append(settings, d.SettingName+" "+d.Reason)
		}
		if got := strings.Join(settings, ", "); (got == "LOCATION_SHARING unsupported") != test.contradicts ||
			got != "" && !test.contradicts {
			t.Errorf("%v: the asset names %q", test.changes, got)
		}
	}
}

// A status report does not forget what could not be applied.
func TestStatusReport_NamesWhatIsNotApplied(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Owner's", policy.Change{Setting: "SCREEN_CAPTURE", Value: "BLOCK"}).ID))
	p.mustCheckIn()
	for range 2 {
		if now := compliance(t, p); !now.PolicyCompliant || len(now.NonComplianceDetails) != 1 ||
			now.NonComplianceDetails[0].Reason != "unsupported" {
			t.Errorf("the device reported %+v", now)
		}
		p.send(command.StatusReport, nil)
		p.mustCheckIn()
	}
	if now := compliance(t, p); now.BatteryLevel != 80 {
		t.Errorf("the report: %+v", now)
	}
}
