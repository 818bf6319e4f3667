package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// Looking for a claim says what claiming would say, and takes hold of nothing.
func TestClaim_Find(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		check := func(when, fingerprint string, want operation.ClaimState, answer string) {
			t.Helper()
			h, err := db.FindClaim(t.Context(), claim(e, "a", fingerprint))
			expect.Equal(t, when, expect.Values{"error": {err, error(nil)}, "state": {h.State, want}, "answer": {string(h.Answer), answer},
				"ref": {h.Ref != "", want == operation.Answered}})
		}
		check("none", "f", operation.Claimed, "")
		check("none, again", "f", operation.Claimed, "")
		held := take(t, db, claim(e, "a", "f"), operation.Claimed)
		check("held", "f", operation.Running, "")
		check("held for another request", "g", operation.Differs, "")
		e.clock.Advance(15*time.Second - time.Millisecond)
		check("just before the lease ends", "f", operation.Running, "")
		e.clock.Advance(time.Millisecond)
		check("when the lease has ended", "f", operation.Claimed, "")
		if err := db.SettleClaim(t.Context(), held, []byte("answer")); err != nil {
			t.Fatal(err)
		}
		check("answered", "f", operation.Answered, "answer")
		check("answered for another request", "g", operation.Differs, "")
		e.clock.Advance(24 * time.Hour)
		check("forgotten", "f", operation.Claimed, "")
	})
}

// The agent that a command's target has is read with it, whether or not the call spent first.
func TestAhead_AgentOfATarget(t *testing.T) {
	withCompany(t, func(f *fixture) {
		agent := f.agents(1)[0]
		phone := f.enroll("d1", f.newPolicy("p").ID)
		for id, want := range map[string]bool{agent.AssetID: true, phone.ID: false} {
			for _, spends := range []bool{false, true} {
				ctx := access.Commands(f.Context(), f.company.ID, id)
				if spends {
					_, _, _, err := f.db.Spend(ctx, "k", 10, time.Minute, f.clock.Now())
					f.ok(err)
				}
				_, err := f.db.CommandTarget(ctx, f.company.ID, id)
				f.ok(err)
				read, ok := access.Take(ctx, func(d agentdevice.Device) bool { return d.AssetID == id })
				if ok != want || want && read.ID != agent.ID {
					f.Errorf("spends %t: the agent of %s is read ahead: %t, want %t", spends, id, ok, want)
				}
			}
		}
	})
}
