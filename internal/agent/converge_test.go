package agent_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// brought is what a device keeps of what it was brought to.
type brought struct {
	Policy   protocol.PolicyRef
	Settings []protocol.SettingReport
	Reported bool
	Guard    *struct {
		Before map[string]string
		Until  int64
	}
	Touched []string
}

func (w *commandWorld) brought() (b brought) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.kept("applied.json")), &b); err != nil {
		w.t.Fatal(err)
	}
	return b
}

// states are those of the settings, each in a word.
func (b brought) states() string {
	var words []string
	for _, s := range b.Settings {
		words = append(words, s.ID+"="+string(s.State))
	}
	return strings.Join(words, " ")
}

// sets has an agent of the device check in once, and returns the settings that it set.
func (d *interrupted) sets(service http.RoundTripper) (set string, err error) {
	d.t.Helper()
	a := d.agentFor(d, service)
	defer d.close(a)
	d.trace, d.end = nil, func() {}
	_, err = a.Once(d.t.Context())
	var words []string
	for _, word := range d.trace {
		if did, is := strings.CutPrefix(word, "set:"); is {
			words = append(words, did)
		}
	}
	return strings.Join(words, " "), err
}

// newFollower is a device without commands, whose policy has these settings.
func newFollower(t *testing.T, does string, settings map[string]string) *interrupted {
	t.Helper()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,"+does), end: func() {}}
	d.commands = nil
	d.document = forger{t: t}.seal(d.key, "k1", protocol.KindPolicy, protocol.Policy{ID: "p1", CompanyID: "acme", Version: 1,
		Settings: settings})
	return d
}

// A device takes the policy that the service assigns it, in its document: of this company, and of no former version.
func TestFollow_Document(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		id             string // assigned; empty: the service signs no assignment
		version        int
		document       protocol.Policy
		fetches, takes bool
	}{
		{"what it has", "p1", 1, protocol.Policy{}, false, false},
		{"another version", "p1", 2, protocol.Policy{ID: "p1", Version: 2, CompanyID: "acme"}, true, true},
		{"another policy", "p2", 1, protocol.Policy{ID: "p2", Version: 1, CompanyID: "acme"}, true, true},
		{"a later document", "p1", 2, protocol.Policy{ID: "p1", Version: 3, CompanyID: "acme"}, true, true},
		{"a former document", "p1", 2, protocol.Policy{ID: "p1", Version: 1, CompanyID: "acme"}, true, false},
		{"another document", "p1", 2, protocol.Policy{ID: "p2", Version: 2, CompanyID: "acme"}, true, false},
		{"of another company", "p1", 2, protocol.Policy{ID: "p1", Version: 2, CompanyID: "other"}, true, false},
		{"no assignment", "", 0, protocol.Policy{}, false, false},
	} {
		d := newFollower(t, "does", nil)
		d.document = forger{t: t}.seal(d.key, "k1", protocol.KindPolicy, test.document)
		_, err := d.sets(d.answers(func(answer *protocol.CheckinResponse, number int64) {
			if answer.Assignment = nil; test.id != "" {
				sealed := forger{t: t}.seal(d.key, "k1", protocol.KindAssignment, protocol.Assignment{DeviceID: "d1", CompanyID: "acme",
					PolicyID: test.id, Version: test.version, Number: number, Time: commandsNow})
				answer.Assignment = &sealed
			}
		}))
		want := protocol.PolicyRef{ID: "p1", Version: 1}
		if test.takes {
			want = protocol.PolicyRef{ID: test.id, Version: test.version}
		}
		expect.Equal(t, test.name, expect.Values{"fetches": {strings.Contains(strings.Join(d.trace, " "), "fetch:"), test.fetches},
			"fails": {err != nil, test.fetches && !test.takes}, "has": {d.brought().Policy, want}})
	}
}

// A command to follow the policy fails where the service signs none.
func TestFollow_ByCommandWithoutAssignment(t *testing.T) {
	t.Parallel()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "SYNC_POLICY", "NEW", "intime,answers,does")}
	if _, err := d.sets(d.answers(func(answer *protocol.CheckinResponse, _ int64) { answer.Assignment = nil })); err != nil {
		t.Error(err)
	}
	if e := d.entry(); e.Result != protocol.Failed || !strings.Contains(e.Outcome, "did not sign which policy") {
		t.Errorf("the journal keeps %s %q", e.Result, e.Outcome)
	}
}

// What a policy sets, what is refused because it contradicts the rest, and what is the agent's own.
func TestConverge_Settings(t *testing.T) {
	t.Parallel()
	const sharing, mode = "LOCATION_SHARING", "LOCATION_MODE"
	for name, test := range map[string]struct {
		policy       map[string]string
		does         string
		sets, states string
	}{
		"one":            {map[string]string{"SMS": "BLOCK"}, "does", "CAMERA= SMS=BLOCK", "SMS=applied"},
		"no power":       {map[string]string{"SMS": "BLOCK"}, "cannot", "CAMERA= SMS=BLOCK", "SMS=unsupported"},
		"no use":         {map[string]string{"SMS": "BLOCK"}, "inapplicable", "CAMERA= SMS=BLOCK", "SMS=not_applicable"},
		"no effect":      {map[string]string{"SMS": "BLOCK"}, "ignores", "CAMERA= SMS=BLOCK", "SMS=pending"},
		"not taken back": {map[string]string{"SMS": "BLOCK"}, "refuses", "CAMERA= SMS=BLOCK", "CAMERA=failed SMS=failed"},
		"the agent's": {map[string]string{"REPORT_A": "ENABLED", "APPLICATION_REPORT_LEVEL": "NONE"}, "does", "CAMERA=",
			"APPLICATION_REPORT_LEVEL=applied REPORT_A=applied"},
		"a contradiction": {map[string]string{sharing: "BLOCK", mode: "ENFORCED"}, "does",
			"CAMERA= LOCATION_MODE=ENFORCED LOCATION_SHARING=",
			"LOCATION_MODE=applied LOCATION_SHARING=unsupported"},
		"a contradiction that stays": {map[string]string{sharing: "BLOCK", mode: "ENFORCED"}, "refuses",
			"CAMERA= LOCATION_MODE=ENFORCED LOCATION_SHARING=", "CAMERA=failed LOCATION_MODE=failed LOCATION_SHARING=failed"},
		"shared": {map[string]string{sharing: "ALLOW", mode: "ENFORCED"}, "does", "CAMERA= LOCATION_MODE=ENFORCED LOCATION_SHARING=ALLOW",
			"LOCATION_MODE=applied LOCATION_SHARING=applied"},
		"not shared": {map[string]string{sharing: "BLOCK", mode: "OFF"}, "does", "CAMERA= LOCATION_MODE=OFF LOCATION_SHARING=BLOCK",
			"LOCATION_MODE=applied LOCATION_SHARING=applied"},
		"blocked beside it": {map[string]string{"SMS": "BLOCK", mode: "ENFORCED"}, "does", "CAMERA= LOCATION_MODE=ENFORCED SMS=BLOCK",
			"LOCATION_MODE=applied SMS=applied"},
	} {
		d := newFollower(t, test.does, test.policy)
		d.edit("applied.json", object{"touched": []string{"CAMERA"}})
		sets, err := d.sets(d)
		expect.Equal(t, name, expect.Values{"error": {err, error(nil)}, "sets": {sets, test.sets},
			"states": {d.brought().states(), test.states}})
	}
}

// What a policy before set, and may have set, is taken back, and what contradicts the new policy before that is applied. All
// of it is noted first.
func TestConverge_TakesBack(t *testing.T) {
	t.Parallel()
	d := newFollower(t, "does", map[string]string{"LOCATION_SHARING": "BLOCK", "LOCATION_MODE": "ENFORCED", "WIFI_STATE": "DISABLED"})
	d.settings["WIFI_STATE"], d.settings["AIRPLANE_MODE"], d.settings["VPN_CONFIGURATION"] = "ENABLED", "ENABLED", "x"
	report := func(id string, state protocol.SettingState) protocol.SettingReport {
		return protocol.SettingReport{ID: id, State: state}
	}
	d.edit("applied.json", object{"wanted": object{"LOCATION_SHARING": "BLOCK", "VPN_CONFIGURATION": "x"}, "touched": []string{"SMS"},
		"checkAt": commandsNow + time.Hour.Milliseconds(), "settings": []protocol.SettingReport{
			report("A", protocol.SettingFailed), report("B", protocol.RolledBack),
			report("C", protocol.Unsupported)}})
	var noted, after brought
	a, err := agent.New(agent.Options{Dir: d.dir, Device: d, Client: &http.Client{Transport: d}, Now: d.clock, Log: discard(),
		Crash: func(step string) {
			switch step {
			case "before apply":
				noted, d.now = d.brought(), d.now.Add(time.Minute) // it takes that long
			case "before confirm":
				after = d.brought()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close(a)
	if _, err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	trace := strings.Join(d.trace, " ")
	want := "set:A= set:B= set:LOCATION_SHARING= set:SMS= set:VPN_CONFIGURATION= " +
		"set:LOCATION_MODE=ENFORCED set:LOCATION_SHARING= set:WIFI_STATE=DISABLED"
	if !strings.Contains(trace, want) || noted.Guard == nil {
		t.Fatalf("%s, want %s, and a guard: %+v", trace, want, noted)
	}
	expect.Equal(t, "noted", expect.Values{"touched": {strings.Join(noted.Touched, " "),
		"A B LOCATION_MODE LOCATION_SHARING SMS VPN_CONFIGURATION WIFI_STATE"},
		"waits":  {after.Guard != nil && after.Guard.Until == d.now.Add(5*time.Minute).UnixMilli(), true},
		"guards": {noted.Guard.Before, map[string]string{"WIFI_STATE": "ENABLED", "VPN_CONFIGURATION": "x"}}})
}
