package database_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// heard collects the ids of a topic, and returns those since the last call.
func (f *fixture) heard(topic string) func() []string {
	f.Helper()
	var mu sync.Mutex
	var heard []string
	f.Cleanup(f.db.Listen(topic, func(ids []string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, ids...)
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		last := heard
		heard = nil
		return last
	}
}

// A device is woken for what is held for it.
func TestBegin_WakesTheDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, woken := f.deviceFor("SN-1"), f.heard(agentdevice.WakeTopic)
		f.begin(f.asset(d.AssetID), command.Reboot)
		equal(f, "woken for what another channel sends", woken(), nil)
		f.deliver(d, command.Reboot, time.Time{})
		equal(f, "woken", woken(), []string{d.ID})
	})
}

// Pages that are open are told that a command failed, which waits for a person.
func TestAdvance_WithDeliveryIsTold(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, changes := f.deviceFor("SN-1"), f.heard(resource.Changes)
		for state, want := range map[command.State]bool{command.Succeeded: false, command.Failed: true, command.Unconfirmed: true} {
			c := f.deliver(d, command.Reboot, time.Time{})
			changes()
			_, taken, err := f.db.Advance(f.Context(), c.ID, settles(d, c, state, "because"))
			f.ok(err)
			equal(f, "taken", taken, true)
			told := changes()
			equal(f, string(state), words(slices.Contains(told, resource.Change(f.company.ID, "attention", "")),
				slices.Contains(told, resource.Change(f.company.ID, "command", d.AssetID))), words(want, true))
		}
	})
}

// Pages that are open are told that a proposal is being applied, or has failed.
func TestProposals_AreTold(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, changes := f.newPolicy("Warehouse"), f.heard(resource.Changes)
		told := func(id string) bool { return slices.Contains(changes(), resource.Change(f.company.ID, "proposal", id)) }
		claimed, failing := f.mustPropose(p, "", nil), f.mustPropose(p, "", nil)
		changes()
		equal(f, "verdict", f.claim(claimed.ID), proposal.Begun)
		equal(f, "told of the claim", told(claimed.ID), true)
		failed, err := f.db.FailProposal(f.Context(), failing.ID, fault.Internal, "no")
		f.ok(err)
		equal(f, "failed", failed, true)
		equal(f, "told of the failure", told(failing.ID), true)
	})
}
