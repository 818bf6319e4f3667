package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// Nothing is begun for a minute after a restart was ordered, nor after an order to erase the device, which is still there.
func TestOnce_NothingBeginsAsItGoesDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind  string
		how   error
		after time.Duration
		does  bool
	}{{"REBOOT", nil, 59 * time.Second, false}, {"REBOOT", nil, time.Minute, true}, {"SHUTDOWN", nil, time.Second, false},
		{"WIPE_COMPANY_DATA", agent.ErrOrdered, time.Hour, false}} {
		w := newCommandWorld(t, vectorKey(t, "device"), test.kind, "ACCEPTED", "intime,answers,does")
		d := &interrupted{commandWorld: w, end: func() {}, how: test.how}
		d.edit("applied.json", object{"policy": protocol.PolicyRef{ID: "p1"}})
		other := commandOf("LAUNCH_APP", false)
		other.ID = "c2"
		w.commands = append(w.commands, commandEnvelope(t, w.key, other))
		a := d.agentOf()
		for range 2 {
			if _, err := a.Once(t.Context()); err != nil {
				t.Error(err)
			}
			if trace := strings.Join(d.trace, " "); strings.Contains(trace, "do:LAUNCH_APP") || strings.Contains(trace, "fetch:") {
				t.Errorf("%s: another command is carried out, or a policy is: %s", test.kind, trace)
			}
		}
		d.now = d.now.Add(test.after)
		_, err := a.Once(t.Context())
		if did := strings.Contains(strings.Join(d.trace, " "), "do:LAUNCH_APP"); did != test.does || err != nil {
			t.Errorf("%s after %s: another command is carried out: %t, %v", test.kind, test.after, did, err)
		}
		d.close(a)
	}
}

// An agent that was told to end begins no command. One that cannot write down what it restored goes on with commands, also
// without its service.
func TestRecover_Commands(t *testing.T) {
	t.Parallel()
	for told, want := range map[bool]int{true: 0, false: 1} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "RECEIVED", "intime,away,does")
		d := &interrupted{commandWorld: w, end: func() {}}
		d.settings = map[string]string{}
		d.edit("applied.json", object{"checkAt": 0})
		ctx, cancel := context.WithCancel(t.Context())
		a := d.agentOf()
		if told {
			d.end = cancel
		} else {
			d.unreadable("applied.json")
		}
		_, err := a.Once(ctx)
		if n := strings.Count(strings.Join(d.trace, " "), "do:"); n != want || errors.Is(err, context.Canceled) != told {
			t.Errorf("told to end: %t: %d commands, want %d: %v", told, n, want, err)
		}
		cancel()
		d.close(a)
	}
}

// No fix, no location.
func TestOnce_NoFix(t *testing.T) {
	t.Parallel()
	d := newCrowded(t, "LOCATION_UPDATE")
	if word, _ := d.checkIn(); !strings.HasPrefix(word, "FAILED NO_FIX") {
		t.Errorf("the service has %q", word)
	}
}

// An old fix is reported with its age.
func TestOnce_StaleFix(t *testing.T) {
	t.Parallel()
	for stale, want := range map[bool]string{false: "DONE location reported", true: "DONE last known location reported, 5m0s old"} {
		d := newCrowded(t, "LOCATION_UPDATE")
		d.fix = &protocol.Location{At: d.now.Add(-5 * time.Minute).UnixMilli(), Stale: stale}
		if word, _ := d.checkIn(); word != want {
			t.Errorf("the service has %q, want %q", word, want)
		}
	}
}

// A device that could not be erased, or given back, has its policy repaired at once, if it has one.
func TestOnce_Stays(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"p1": "CAMERA=BLOCK", "": ""} {
		w := newCommandWorld(t, vectorKey(t, "device"), "WIPE_COMPANY_DATA", "ACCEPTED", "intime,away,does")
		d := &interrupted{commandWorld: w, how: errAway}
		d.settings = map[string]string{}
		d.edit("applied.json", object{"policy": protocol.PolicyRef{ID: policy, Version: 1},
			"checkAt": commandsNow + time.Hour.Milliseconds()})
		sets, err := d.sets(d)
		if e := d.entry(); err == nil || e.Result != protocol.Failed || sets != want {
			t.Errorf("of the policy %q: %s, and it sets %q: %v", policy, e.Result, sets, err)
		}
	}
}

// An erase without effect is ordered in the second way after two minutes.
func TestEraseAgain_SecondWay(t *testing.T) {
	t.Parallel()
	for ago, again := range map[time.Duration]bool{2 * time.Minute: false, 2*time.Minute + time.Millisecond: true} {
		w := newCommandWorld(t, vectorKey(t, "device"), "WIPE_COMPANY_DATA", "NEW", "intime,away,orders")
		e, _ := entryAt("STARTED", commandOf("WIPE_COMPANY_DATA", false))
		e.At = w.now.Add(-ago).UnixMilli()
		journal := openJournal(t, filepath.Join(w.dir, "journal"))
		if err := errors.Join(journal.Write(e), journal.Close()); err != nil {
			t.Fatal(err)
		}
		a := (&interrupted{commandWorld: w}).agentFor(w, w)
		_, _ = a.Once(t.Context())
		if w.close(a); len(w.trace) == 0 || strings.HasSuffix(w.trace[0], ",again") != again {
			t.Errorf("ordered %s ago: %v", ago, w.trace)
		}
	}
}

// The latest time that the service signed is kept once it is more than a day later.
func TestOnce_KeepsSignedTime(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for later, want := range map[time.Duration]time.Duration{day: 0, day + time.Millisecond: day + time.Millisecond} {
		d := newFollower(t, "does", nil)
		d.now = d.now.Add(later)
		_, err := d.sets(d)
		if got := agent.SignedTime(d.dir, time.UnixMilli(0))().Sub(time.UnixMilli(commandsNow)); got != want || err != nil {
			t.Errorf("%s later: it keeps %s, want %s: %v", later, got, want, err)
		}
	}
}

// At its start an agent removes what a power cut left of its files, but for orders; at its end it removes everything that is its own.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	for _, name := range []string{"identity.json.new-1", "identity.json.new", "identity.json.newer", "identity.json.old", "order.new-1",
		"mine.new-1", "log", "ended"} {
		w.damage(name, "left")
	}
	left := func() string {
		files, err := os.ReadDir(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, file := range files {
			names = append(names, filepath.Base(file.Name()))
		}
		return strings.Join(names, " ")
	}
	a := (&interrupted{commandWorld: w}).agentFor(w, w.ends(protocol.Unenroll))
	defer w.close(a)
	atStart := left()
	_, err := a.Once(t.Context())
	expect.Equal(t, "files", expect.Values{"ended": {errors.Is(err, agent.ErrEnded), true},
		"at the start": {atStart, "applied.json ended identity.json identity.json.new identity.json.newer identity.json.old journal log " +
			"mine.new-1 order.new-1 service.json"},
		"at the end": {left(), "identity.json.newer identity.json.old mine.new-1"}})
}
