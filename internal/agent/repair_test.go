package agent_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// A device is compared with its policy every six hours, and after each start of the machine. A time that a wrong clock has noted,
// which is farther away, holds back nothing.
func TestRestore_LooksForDrift(t *testing.T) {
	t.Parallel()
	const most = 6 * time.Hour
	for _, test := range []struct {
		boot   string
		left   time.Duration
		policy string
		looks  bool
	}{
		{"boot-1", time.Millisecond, "p1", false}, {"boot-1", most, "p1", false}, {"boot-1", most + time.Millisecond, "p1", true},
		{"boot-1", 0, "p1", true}, {"boot-1", -time.Hour, "p1", true}, {"boot-0", time.Hour, "p1", true}, {"boot-0", 0, "", false},
	} {
		d := newFollower(t, "does", map[string]string{"CAMERA": "BLOCK"})
		d.settings = map[string]string{}
		d.edit("applied.json", object{"policy": protocol.PolicyRef{ID: test.policy, Version: 1}, "bootId": test.boot,
			"wanted": object{"CAMERA": "BLOCK"}, "checkAt": commandsNow + test.left.Milliseconds()})
		d.service = "away"
		if sets, err := d.sets(d); err == nil || (sets != "") != test.looks {
			t.Errorf("%s, %s before, of the policy %q: sets %s, want it: %t, %v", test.boot, test.left, test.policy, sets, test.looks, err)
		}
	}
}

// What is as it should be stays, and what a device refuses for good is not tried again. What has changed is reported.
func TestRepair(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id       string
		state    protocol.SettingState
		shows    string
		does     string
		sets     string
		becomes  protocol.SettingState
		reported bool // as before
	}{
		"applied":             {"SMS", protocol.Applied, "BLOCK", "does", "", protocol.Applied, true},
		"moved":               {"SMS", protocol.Applied, "", "does", "SMS=BLOCK", protocol.Applied, true},
		"moved, and stays":    {"SMS", protocol.Applied, "", "ignores", "SMS=BLOCK", protocol.Pending, false},
		"failed":              {"SMS", protocol.SettingFailed, "BLOCK", "does", "SMS=BLOCK", protocol.Applied, false},
		"pending":             {"SMS", protocol.Pending, "BLOCK", "does", "SMS=BLOCK", protocol.Applied, false},
		"unsupported":         {"SMS", protocol.Unsupported, "", "does", "", protocol.Unsupported, true},
		"of no use":           {"SMS", protocol.NotApplicable, "", "does", "", protocol.NotApplicable, true},
		"rolled back":         {"SMS", protocol.RolledBack, "", "does", "", protocol.RolledBack, true},
		"the agent's":         {"REPORT_A", protocol.Applied, "", "does", "", protocol.Applied, true},
		"connectivity":        {"WIFI_STATE", protocol.Applied, "BLOCK", "does", "", protocol.Applied, true},
		"connectivity, moved": {"WIFI_STATE", protocol.Applied, "", "does", "WIFI_STATE=BLOCK", protocol.Applied, true},
		"connectivity, failed": {"WIFI_STATE", protocol.SettingFailed, "", "does", "CAMERA=BLOCK WIFI_STATE=BLOCK",
			protocol.Applied, false},
		"connectivity, had been": {"WIFI_STATE", protocol.RolledBack, "", "does", "", protocol.RolledBack, true},
	} {
		d := newFollower(t, test.does, nil)
		d.settings = map[string]string{"CAMERA": "BLOCK", test.id: test.shows}
		d.edit("applied.json", object{"wanted": object{"CAMERA": "BLOCK", test.id: "BLOCK"}, "checkAt": 0,
			"settings": []protocol.SettingReport{{ID: "CAMERA", State: protocol.Applied}, {ID: test.id, State: test.state}}})
		d.service = "away"
		sets, _ := d.sets(d)
		b := d.brought()
		expect.Equal(t, name, expect.Values{"sets": {sets, test.sets}, "reported": {b.Reported, test.reported},
			"states": {b.states(), "CAMERA=applied " + test.id + "=" + string(test.becomes)}})
	}
}

// A change of connectivity is taken back when its five minutes are over, and its guard's time cannot be longer than that. What was
// set before, and is not of this policy, is set again, too.
func TestRollBack(t *testing.T) {
	t.Parallel()
	const whole = 5 * time.Minute
	for _, test := range []struct {
		boot string
		left time.Duration
		back bool
	}{{"boot-1", time.Millisecond, false}, {"boot-1", 0, true}, {"boot-1", -time.Hour, true}, {"boot-1", whole, false},
		{"boot-1", whole + time.Millisecond, true}, {"boot-0", -time.Hour, false}} {
		d := newFollower(t, "does", nil)
		d.settings = map[string]string{"CAMERA": "BLOCK", "WIFI_STATE": "DISABLED"}
		d.edit("applied.json", object{"wanted": object{"CAMERA": "BLOCK", "WIFI_STATE": "DISABLED"},
			"checkAt":  commandsNow + time.Hour.Milliseconds(),
			"settings": []protocol.SettingReport{{ID: "CAMERA", State: protocol.Applied}, {ID: "WIFI_STATE", State: protocol.Applied}},
			"guard": object{"bootId": test.boot, "until": commandsNow + test.left.Milliseconds(),
				"before": object{"WIFI_STATE": "ENABLED", "AIRPLANE_MODE": "", "CONFIGURE_WIFI": "BLOCK"}}})
		d.service = "away"
		_, _ = d.sets(d)
		b := d.brought()
		states := "CAMERA=applied WIFI_STATE=applied"
		if test.back {
			states = "CAMERA=applied WIFI_STATE=rolled_back CONFIGURE_WIFI=rolled_back"
		}
		expect.Equal(t, test.boot+", "+test.left.String()+" before", expect.Values{"states": {b.states(), states},
			"guard": {b.Guard == nil, test.back}, "reported": {b.Reported, !test.back},
			"Wi-Fi": {d.settings["WIFI_STATE"] == "ENABLED", test.back}, "before": {d.settings["CONFIGURE_WIFI"] == "BLOCK", test.back}})
	}
}

// A policy changes connectivity where it sets Wi-Fi otherwise than it was; then what was before is under guard.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has, policy string
		guards      string // what is restored; empty: nothing is under guard
	}{
		"another": {"ENABLED", "DISABLED", "ENABLED"}, "the same": {"DISABLED", "DISABLED", ""}, "none": {"", "DISABLED", "none"},
		"allowed": {"", "ALLOW", ""},
	} {
		d := newFollower(t, "does", map[string]string{"WIFI_STATE": test.policy})
		d.settings["WIFI_STATE"] = test.has
		d.edit("applied.json", object{"touched": []string{"WIFI_STATE"}})
		a := d.agentOf()
		a.Runs()
		if _, err := a.Once(t.Context()); err != nil {
			t.Error(err)
		}
		d.close(a)
		guards := ""
		if g := d.brought().Guard; g != nil {
			guards = cmp.Or(g.Before["WIFI_STATE"], "none")
		}
		if guards != test.guards {
			t.Errorf("%s: %q is restored, want %q", name, guards, test.guards)
		}
	}
}
