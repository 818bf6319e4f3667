package agent_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// A check-in that was answered before the radio went down proves nothing: what was before
// comes back after five minutes, also if another policy came in between. A later check-in
// proves that the device is in touch. A setting that cannot be read, and that no policy sets,
// holds back nothing.
func TestGuard_CheckInBeforeTheRadioGoesDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		later time.Duration // when another check-in is answered
		again bool          // which brings the policy once more
		want  string
	}{
		{"none later", 0, false, "ENABLED"},
		{"a second later", time.Second, false, "ENABLED"},
		{"a second later, with a policy", time.Second, true, "ENABLED"},
		{"twenty seconds later", 20 * time.Second, false, "DISABLED"},
	} {
		d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "SYNC_POLICY", "NEW", "intime,answers,does"),
			end: func() {}, mute: "AIRPLANE_MODE"}
		d.over, d.settings["WIFI_STATE"] = true, "ENABLED"
		d.write("applied.json", object{})
		sealed, err := protocol.Seal(d.key, "k1", protocol.KindPolicy,
			protocol.Policy{ID: "p1", CompanyID: "acme", Version: 1, Settings: map[string]string{"WIFI_STATE": "DISABLED"}})
		if err != nil {
			t.Fatal(err)
		}
		d.document = sealed
		a := d.agentOf()
		a.Runs()
		_, err = a.Once(t.Context())
		if d.now, d.over = d.now.Add(test.later), !test.again; err == nil && test.later > 0 {
			_, err = a.Once(t.Context())
		}
		if err != nil || d.settings["WIFI_STATE"] != "DISABLED" {
			t.Fatalf("%s: Wi-Fi is %s: %v", test.name, d.settings["WIFI_STATE"], err)
		}
		d.service = "away"
		for range 2 {
			d.now = d.now.Add(3 * time.Minute)
			_, _ = a.Once(t.Context())
		}
		if d.close(a); d.settings["WIFI_STATE"] != test.want {
			t.Errorf("%s: Wi-Fi is %s, want %s", test.name, d.settings["WIFI_STATE"], test.want)
		}
	}
}

// A device that slept after the change, or whose process died, asks the service before it takes anything back. A check-in
// that fails has it taken back only if it began after the five minutes; one that began before is repeated at once.
func TestGuard_SleepProvesNothing(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	for _, test := range []struct {
		name         string
		sleeps, took time.Duration // until a check-in begins, and from then until it fails
		away, dies   bool
		want         string
	}{
		{"the service answers", 15 * min, 0, false, false, "DISABLED"},
		{"in another process", 15 * min, 0, false, true, "DISABLED"},
		{"it is away", 15 * min, 0, true, false, "ENABLED"},
		{"in another process it is away", 15 * min, 0, true, true, "ENABLED"},
		{"the check-in began before", 4 * min, 2 * min, true, false, "DISABLED"},
	} {
		world := newCommandWorld(t, vectorKey(t, "device"), "SYNC_POLICY", "NEW", "intime,answers,does")
		d := &interrupted{commandWorld: world, end: func() {}}
		d.settings["WIFI_STATE"], d.commands = "DISABLED", nil
		d.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": object{"WIFI_STATE": "DISABLED"},
			"reported": true, "bootId": "boot-1", "checkAt": commandsNow + time.Hour.Milliseconds(),
			"guard": object{"bootId": "boot-1", "until": commandsNow + (5 * min).Milliseconds(),
				"before": object{"WIFI_STATE": "ENABLED"}}})
		a := d.agentFor(d, roundTripper(func(r *http.Request) (*http.Response, error) {
			d.now = d.now.Add(test.took)
			return d.RoundTrip(r)
		}))
		if a.Runs(); test.dies {
			d.close(a)
			a = d.agentOf()
			a.Runs()
		}
		if d.now = d.now.Add(test.sleeps); test.away {
			d.service = "away"
		}
		if _, err := a.Once(t.Context()); (err != nil) != test.away || d.settings["WIFI_STATE"] != test.want {
			t.Errorf("%s: Wi-Fi is %s, want %s, %v", test.name, d.settings["WIFI_STATE"], test.want, err)
		}
		if a.Hinted() != test.away {
			t.Errorf("%s: it checks in again at once: %t", test.name, !test.away)
		}
		if _, err := a.Once(t.Context()); test.took > 0 && (err == nil || d.settings["WIFI_STATE"] != "ENABLED") {
			t.Errorf("%s: after another Wi-Fi is %s, %v", test.name, d.settings["WIFI_STATE"], err)
		}
		guarded := strings.Contains(d.kept("applied.json"), `"guard"`)
		if d.close(a); guarded {
			t.Errorf("%s: the guard still waits", test.name)
		}
	}
}

// A setting of connectivity that cannot be read could not be restored. It is not set and is reported as failed, and the rest
// of the policy is applied. As soon as it can be read it is set, with a guard.
func TestGuard_SettingThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "SYNC_POLICY", "NEW", "intime,answers,does"),
		end: func() {}, mute: "WIFI_STATE"}
	d.over, d.settings["WIFI_STATE"] = true, "ENABLED"
	d.write("applied.json", object{})
	sealed, err := protocol.Seal(d.key, "k1", protocol.KindPolicy, protocol.Policy{ID: "p1", CompanyID: "acme", Version: 1,
		Settings: map[string]string{"CAMERA": "BLOCK", "WIFI_STATE": "DISABLED"}})
	if err != nil {
		t.Fatal(err)
	}
	d.document = sealed
	a := d.agentOf()
	a.Runs()
	for _, test := range []struct{ mute, wifi, state string }{{"WIFI_STATE", "ENABLED", "failed"}, {"", "DISABLED", "applied"}} {
		d.mute = test.mute
		if _, err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept struct {
			Policy   protocol.PolicyRef
			Settings []protocol.SettingReport
			Guard    *struct{ Before map[string]string }
		}
		if text, err := os.ReadFile(filepath.Join(d.dir, "applied.json")); err != nil || json.Unmarshal(text, &kept) != nil {
			t.Fatal(string(text), err)
		}
		guarded := kept.Guard != nil && kept.Guard.Before["WIFI_STATE"] == "ENABLED"
		if d.settings["CAMERA"] != "BLOCK" || d.settings["WIFI_STATE"] != test.wifi {
			t.Errorf("without %q: the device has %v", test.mute, d.settings)
		}
		if kept.Policy.Version != 1 || string(kept.Settings[1].State) != test.state || guarded != (test.mute == "") {
			t.Errorf("without %q: it keeps %+v", test.mute, kept)
		}
		d.now = d.now.Add(7 * time.Hour)
	}
	d.close(a)
}
