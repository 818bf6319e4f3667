package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// interrupted is a device whose system takes a while, in which the agent may be told to
// end: then its tools end, too.
type interrupted struct {
	*commandWorld
	end  context.CancelFunc // the agent is told to end
	how  error              // how the tool then ends
	mute string             // a setting that cannot be read
}

// Read implements agent.Device.
func (d *interrupted) Read(ctx context.Context, setting string) (string, error) {
	if setting == d.mute {
		return "", errors.New("the tool says nothing")
	}
	return d.commandWorld.Read(ctx, setting)
}

// Do implements agent.Device.
func (d *interrupted) Do(_ context.Context, a agent.Action) (string, error) {
	d.record("do:%s", a.Type)
	d.end()
	return "", d.how
}

// Apply implements agent.Device.
func (d *interrupted) Apply(ctx context.Context, setting, value string) error {
	d.end()
	if ctx.Err() != nil {
		return errors.New("signal: killed")
	}
	return d.commandWorld.Apply(ctx, setting, value)
}

// agentOf is the agent of a device, which begins where the one before ended.
func (d *interrupted) agentOf() *agent.Agent {
	d.t.Helper()
	return d.agentFor(d, d)
}

// agentFor is the agent of a device at a service.
func (d *interrupted) agentFor(device agent.Device, service http.RoundTripper) *agent.Agent {
	d.t.Helper()
	a, err := agent.New(agent.Options{Dir: d.dir, Device: device, Client: &http.Client{Transport: service},
		Now: func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// once is one process of the agent, which may be told to end.
func (d *interrupted) once(told bool) error {
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	if d.end = func() {}; told {
		d.end = cancel
	}
	a := d.agentOf()
	_, err := a.Once(ctx)
	d.close(a)
	return err
}

func (d *interrupted) entry() agent.Entry {
	d.t.Helper()
	journal, err := agent.LoadJournal(filepath.Join(d.dir, "journal"))
	if err != nil {
		d.t.Fatal(err)
	}
	e, _ := journal.Entry("c1")
	return e
}

// A command that ends with the agent has not failed: it is settled at the next start.
func TestRun_AgentIsToldToEnd(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	for _, kind := range []string{"REBOOT", "SHUTDOWN", "LAUNCH_APP"} {
		d := &interrupted{commandWorld: newCommandWorld(t, key, kind, "RECEIVED", "intime,answers,does"), how: errors.New("signal: killed")}
		if err := d.once(true); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the agent ended with %v, want %v", kind, err, context.Canceled)
		}
		if e := d.entry(); e.Stage != agent.Started {
			t.Errorf("%s: the journal keeps %s %s %q, want %s", kind, e.Stage, e.Result, e.Outcome, agent.Started)
		}
		d.boot, d.how = "boot-2", nil // the machine has gone down, and is up again
		if err := d.once(false); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if e := d.entry(); e.Result != "DONE" {
			t.Errorf("%s: the journal keeps %s %s %q, want DONE", kind, e.Stage, e.Result, e.Outcome)
		}
	}
}

// A restart that was begun and whose tool did not end in time is under way.
func TestRun_RestartTakesLong(t *testing.T) {
	t.Parallel()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "REBOOT", "RECEIVED", "intime,answers,does"),
		how: errors.Join(context.DeadlineExceeded, errors.New("signal: killed"))}
	if err := d.once(false); err != nil {
		t.Fatal(err)
	}
	if e := d.entry(); e.Stage != agent.Started {
		t.Errorf("the journal keeps %s %s %q, want %s", e.Stage, e.Result, e.Outcome, agent.Started)
	}
}

// Settings that were not set because the agent was told to end are set at its next start:
// they have not failed.
func TestConverge_AgentIsToldToEnd(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	for kind, stage := range map[string]string{"SYNC_POLICY": "RECEIVED", "drift": "NEW"} {
		d := &interrupted{commandWorld: newCommandWorld(t, key, kind, stage, "intime,answers,does")}
		if kind == "drift" {
			d.over, d.boot = true, "boot-2"
		}
		delete(d.settings, "CAMERA")
		if err := d.once(true); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the agent ended with %v, want %v", kind, err, context.Canceled)
		}
		d.settings = map[string]string{}
		if err := d.once(false); err != nil || d.settings["CAMERA"] != "BLOCK" {
			t.Errorf("%s: the device has %v, want CAMERA=BLOCK, %v: %s", kind, d.settings, err, strings.Join(d.trace, " "))
		}
	}
}

// Connectivity that could not be taken back because the agent was told to end is taken
// back at its next start.
func TestRestore_AgentIsToldToEnd(t *testing.T) {
	t.Parallel()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,away,does")}
	d.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": object{"WIFI_STATE": "DISABLED"},
		"bootId": "boot-1", "checkAt": commandsNow + time.Hour.Milliseconds(),
		"guard": object{"bootId": "boot-1", "until": commandsNow - 1, "before": object{"WIFI_STATE": "ENABLED"}}})
	if err := d.once(true); !errors.Is(err, context.Canceled) {
		t.Errorf("the agent ended with %v, want %v", err, context.Canceled)
	}
	if err := d.once(false); err == nil || d.settings["WIFI_STATE"] != "ENABLED" {
		t.Errorf("the device has %v, want WIFI_STATE=ENABLED, %v", d.settings, err)
	}
}

// A device that stopped within a policy, and still has the one before by its record, is
// brought to that again.
func TestFollow_HalfApplied(t *testing.T) {
	t.Parallel()
	d := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	d.commands, d.settings["SMS"] = nil, "BLOCK"
	d.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": object{"CAMERA": "BLOCK"},
		"reported": true,
		"bootId":   "boot-1", "checkAt": commandsNow + time.Hour.Milliseconds(), "touched": []string{"CAMERA", "SMS"}})
	if trace := d.live(); d.settings["SMS"] != "" || strings.Count(trace, "fetch:") != 1 {
		t.Errorf("the device has %v, want SMS taken back by fetching the policy once: %s", d.settings, trace)
	}
}

// A command that was carried out is not again, and not forgotten, if the disk is full when its end is to be written down. The
// agent stays in touch as usual, and says what became of the command once there is room.
func TestInterrupted_ByAFullDisk(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	var a *agent.Agent
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Now: func() time.Time { return w.now },
		Log: slog.New(slog.DiscardHandler), Crash: func(step string) {
			if step == "before done" {
				a.Fill(errors.New("no space left on device"))
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close(a)
	if _, err := a.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("with a full disk: %v", err)
	}
	next, err := a.Once(t.Context())
	if acked := strings.Contains(strings.Join(w.trace, " "), "[DONE,"); err != nil || next < time.Minute || acked {
		t.Errorf("while it is full: again after %s, %v; told the service: %t", next, err, acked)
	}
	a.Fill(nil)
	if _, err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	trace := strings.Join(w.trace, " ")
	if strings.Count(trace, "do:LAUNCH_APP") != 1 || strings.Count(trace, "[DONE,") != 1 {
		t.Errorf("when there is room again: %s", trace)
	}
}

// A device whose disk is full stays in touch, whatever its commands have come to: it says so, and goes on once there is room.
func TestOnce_FullDiskHoldsBackNoCheckIn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, stage string }{{"LAUNCH_APP", "RECEIVED"}, {"LAUNCH_APP", "STARTED"}, {"STATUS_REPORT", "DONE"},
		{"LAUNCH_APP", "NEW"}} {
		w := newCommandWorld(t, vectorKey(t, "device"), test.kind, test.stage, "intime,answers,does")
		a := (&interrupted{commandWorld: w}).agentFor(w, w)
		if test.stage == "NEW" {
			a.Offered(w.commands[0])
		}
		a.Fill(errors.New("no space left on device"))
		_, err := a.Once(t.Context())
		if !strings.Contains(strings.Join(w.trace, " "), "checkin:") || strings.Contains(strings.Join(w.trace, " "), "do:") {
			t.Errorf("%v with a full disk: %v, %v", test, w.trace, err)
		}
		a.Fill(nil)
		_, err = a.Once(t.Context())
		if w.close(a); err != nil || !w.over {
			t.Errorf("%v when there is room again: %v, %v", test, w.trace, err)
		}
	}
}

// A restart that does not come is looked for every second for a minute, and then every minute; a wipe every thirty seconds.
func TestOnce_LooksAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, does string
		after      time.Duration
		want       time.Duration
	}{
		{"REBOOT", "does", -time.Second, time.Minute},
		{"REBOOT", "does", 0, time.Second},
		{"REBOOT", "does", time.Second, time.Second},
		{"REBOOT", "does", 59 * time.Second, time.Second},
		{"REBOOT", "does", time.Minute, time.Minute},
		{"REBOOT", "does", 61 * time.Second, time.Minute},
		{"REBOOT", "does", 9 * time.Minute, time.Minute},
		{"WIPE_COMPANY_DATA", "orders", 9 * time.Minute, 30 * time.Second},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), test.kind, "ACCEPTED", "intime,answers,"+test.does)
		d := &interrupted{commandWorld: w, end: func() {}}
		if test.does == "orders" {
			d.how = agent.ErrOrdered
		}
		a := d.agentOf()
		_, err := a.Once(t.Context())
		w.now = w.now.Add(test.after)
		next, err2 := a.Once(t.Context())
		if w.close(a); next != test.want || errors.Join(err, err2) != nil {
			t.Errorf("%s after %s: again after %s, want %s: %v, %v", test.kind, test.after, next, test.want, err, err2)
		}
	}
}

// A device whose disk is full when a setting of connectivity is to be set again stays in touch, and does what it is told.
func TestRestore_FullDiskHoldsBackNoCheckIn(t *testing.T) {
	t.Parallel()
	d := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	d.settings["WIFI_STATE"] = "ENABLED"
	d.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": object{"WIFI_STATE": "DISABLED"},
		"settings": []protocol.SettingReport{{ID: "WIFI_STATE", State: protocol.SettingFailed, Detail: "no"}}})
	a := (&interrupted{commandWorld: d}).agentFor(d, d)
	defer d.close(a)
	noted := filepath.Join(d.dir, "applied.json") // no file can take a folder's place
	if err := errors.Join(os.Remove(noted), os.Mkdir(noted, 0o700)); err != nil {
		t.Fatal(err)
	}
	next, err := a.Once(t.Context())
	if trace := strings.Join(d.trace, " "); err != nil || next < time.Minute || strings.Count(trace, "do:LAUNCH_APP") != 1 {
		t.Errorf("again after %s, %v: %s", next, err, trace)
	}
	if d.settings["WIFI_STATE"] != "ENABLED" {
		t.Error("a setting is set before that is noted")
	}
}
