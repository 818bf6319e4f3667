package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/shell/shelltest"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/policy"
)

// machine is one kind of device that the settings are tried on.
type machine struct {
	sdk                         int
	form                        simulated.Form
	tablet, headset, noVerifier bool
}

func machines() []machine {
	var all []machine
	for _, sdk := range []int{21, 22, 23, 24, 26, 28, 29, 30, 33, 35} {
		for _, form := range []simulated.Form{simulated.System, simulated.Shell} {
			all = append(all, machine{sdk: sdk, form: form}, machine{sdk: sdk, form: form, tablet: true},
				machine{sdk: sdk, form: form, tablet: true, headset: true}, machine{sdk: sdk, form: form, noVerifier: true})
		}
	}
	return all
}

func (m machine) state() simulated.State {
	s := simulated.Default("SN-1")
	s.Facts.SDK, s.Form, s.Telephony, s.Headset, s.Platform.NoVerifier = m.sdk, m.form, !m.tablet, m.headset, m.noVerifier
	return s
}

// uids are who the agent runs as in each form.
func (m machine) uid() int {
	if m.form == simulated.Shell {
		return 2000
	}
	return 1000
}

// Both backends say the same of every setting of the catalog, with every
// value, on every kind of device: the model that refuses by rule, and Android's
// command lines that are played by another. What is applied reads back; what is
// taken back is gone.
func TestSettings_OnBothBackends(t *testing.T) {
	t.Parallel()
	settings := agentSettings()
	for _, m := range machines() {
		t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) {
			t.Parallel()
			tryMachine(t, m, settings)
		})
	}
}

func tryMachine(t *testing.T, m machine, settings []policy.Setting) {
	t.Helper()
	model := simulated.New(m.state(), time.Now)
	state := m.state()
	lines := &shell.Device{Tools: shelltest.Runner{Machine: &shelltest.Machine{State: &state, UID: m.uid()}}, Root: t.TempDir(),
		UID: m.uid(), Now: time.Now}
	for _, s := range settings {
		for _, value := range append(slices.Clone(s.Allowed), "") {
			want, got := agent.ApplyTo(t.Context(), model, s.ID, value), agent.ApplyTo(t.Context(), lines, s.ID, value)
			if got.State != want.State {
				t.Errorf("%s=%q: the command lines say %s (%s), the model %s (%s)", s.ID, value, got.State, got.Detail,
					want.State, want.Detail)
			}
			if want.State == protocol.Pending || want.State == protocol.SettingFailed {
				t.Errorf("%s=%q: %s", s.ID, value, want.State)
			}
		}
	}
	if left := state.Platform.Restrictions; len(left) != 0 {
		t.Errorf("taken back, and still in force: %v", left)
	}
	if state.Platform.WifiOff {
		t.Error("Wi-Fi is off after its setting was taken back")
	}
}

// Something else changes the device: the agent notices, because it reads the
// device and not its own memory.
func TestCommandLines_ShowDrift(t *testing.T) {
	t.Parallel()
	state := simulated.Default("SN-1")
	d := &shell.Device{Tools: shelltest.Runner{Machine: &shelltest.Machine{State: &state, UID: 0}}, Root: t.TempDir(),
		UID: 0, Now: time.Now}
	for _, test := range []struct {
		setting, value string
		drift          func()
	}{
		{"CAMERA", "BLOCK", func() { delete(state.Platform.Restrictions, "no_camera") }},
		{"UNTRUSTED_APPS_POLICY", "DISALLOW_INSTALL",
			func() { delete(state.Platform.Restrictions, "no_install_unknown_sources_globally") }},
		{"LOCATION_MODE", "ENFORCED", func() { state.Platform.LocationOff = true }},
		{"WIFI_STATE", "ENABLED", func() { state.Platform.WifiOff = true }},
		{"AIRPLANE_MODE", "DISABLED", func() { state.Platform.Global["airplane_mode_on"] = "1" }},
		{"AUTO_DATE_TIME", "ENFORCED", func() { state.Platform.Global["auto_time"] = "0" }},
		{"DEVELOPER_SETTINGS", "BLOCK", func() { state.Platform.Global["adb_enabled"] = "1" }},
	} {
		t.Run(test.setting, func(t *testing.T) {
			if r := agent.ApplyTo(t.Context(), d, test.setting, test.value); r.State != protocol.Applied {
				t.Errorf("%s: %+v", test.setting, r)
			}
			if now, err := d.Read(t.Context(), test.setting); err != nil || now != test.value {
				t.Errorf("%s reads %q, %v", test.setting, now, err)
			}
			test.drift()
			if now, err := d.Read(t.Context(), test.setting); err != nil || now == test.value {
				t.Errorf("%s drifted and reads %q, %v", test.setting, now, err)
			}
		})
	}
}

// A device that its policy may have cut off does not sleep past the moment from which a
// check-in tells, and past that at which it may take the change back. What fails before a check-in later on
// is not repeated without a pause.
func TestGuard_EndsWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		wait, left time.Duration
		answered   bool
		want       time.Duration
	}{
		{time.Second, 5 * time.Minute, false, time.Second},
		{15 * time.Minute, 2 * time.Minute, false, 2 * time.Minute},
		{15 * time.Minute, -time.Minute, false, 15 * time.Minute},
		{15 * time.Minute, 0, false, 15 * time.Minute},
		{time.Second, 5 * time.Minute, true, time.Second},
		{15 * time.Minute, 5 * time.Minute, true, 20 * time.Second},
		{15 * time.Minute, 4 * time.Minute, true, 0},
	} {
		if got := agent.WaitUnderGuard(test.wait, test.left, test.answered); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
