package agent_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
)

// A command that is offered after the device's clock was set is not late by that clock: it
// is left to the check-in, which corrects the clock, and is carried out then.
func TestOffered_ClockWasSet(t *testing.T) {
	t.Parallel()
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,away,does"), end: func() {}}
	a := d.agentOf()
	defer d.close(a)
	d.now = d.now.Add(400 * 24 * time.Hour)
	a.Offered(d.commands[0])
	for range 2 { // the service is away
		if _, err := a.Once(t.Context()); err == nil {
			t.Fatal("the check-in was answered")
		}
		if e := d.entry(); e.Stage != agent.Received {
			t.Fatalf("the journal keeps %s %s %q, want %s", e.Stage, e.Result, e.Outcome, agent.Received)
		}
	}
	d.service, d.now = "answers", d.now.Add(-400*24*time.Hour) // as a refusal for the clock corrects it
	if _, err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := d.entry(); e.Result != "DONE" {
		t.Errorf("the journal keeps %s %s %q, want DONE", e.Stage, e.Result, e.Outcome)
	}
}
