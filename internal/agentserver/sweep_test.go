package agentserver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// deaf loses every hint, and keeps those of the sweep once they are reset.
type deaf struct{ hints []string }

func (d *deaf) Notify(_ string, ids ...string) { d.hints = append(d.hints, ids...) }

// A hint that is lost is given again: for a command, for a command whose answer
// was lost, for another policy, and for a policy that was saved.
func TestSweep_FindsWhatHintsLost(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	ears := &deaf{}
	w.link.Waker, w.link.Now = ears, func() time.Time { return now }
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	other := w.newPolicy("Other", policy.Change{Setting: "SMS", Value: "BLOCK"})
	hinted := func(what string, want bool) {
		t.Helper()
		ears.hints = nil
		if err := w.link.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(ears.hints, p.agent.DeviceID()); got != want {
			t.Errorf("%s: hinted %v, want %v", what, got, want)
		}
	}
	hinted("nothing to do", false)
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	hinted("a moment ago", false)
	now = now.Add(agentserver.SweepEvery)
	hinted("a command", true)
	p.mustCheckIn()
	now = now.Add(agentserver.SweepEvery)
	hinted("after the command", false)
	p.send(command.ChangePolicy, command.PolicyRef(other.ID))
	hinted("another policy", true)
	p.mustCheckIn()
	now = now.Add(agentserver.SweepEvery)
	hinted("after the policy", false)
	p.send(command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"})
	now = now.Add(time.Hour)
	hinted("much later", false)
}
