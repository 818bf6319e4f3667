package database_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/operation"
)

// claim is a call with an Idempotency-Key that holds it for 15 seconds at a time, and whose answer is kept for a day.
func claim(e *engine, id, fingerprint string) operation.Claim {
	return operation.Claim{ID: id, Fingerprint: fingerprint, Same: func(stored string) (bool, error) {
		return stored == fingerprint, nil
	},
		Now: e.clock.Now(), Lease: 15 * time.Second, Keep: 24 * time.Hour}
}

// take claims, and fails the test unless the claim has the state.
func take(t *testing.T, db *database.DB, c operation.Claim, want operation.ClaimState) operation.Holding {
	t.Helper()
	h, err := db.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if h.State != want {
		t.Fatalf("the claim %s of %s has the state %d, want %d", c.ID, c.Fingerprint, h.State, want)
	}
	return h
}

func TestClaim_IsHeldSettledAndForgotten(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		first := take(t, db, claim(e, "a", "f"), operation.Claimed)
		take(t, db, claim(e, "a", "f"), operation.Running)
		take(t, db, claim(e, "a", "g"), operation.Differs)
		take(t, db, claim(e, "b", "f"), operation.Claimed)

		if err := db.SettleClaim(t.Context(), first, []byte("answer\x00\xff")); err != nil {
			t.Fatal(err)
		}
		again := take(t, db, claim(e, "a", "f"), operation.Answered)
		if string(again.Answer) != "answer\x00\xff" || again.Ref != first.Ref {
			t.Errorf("answer %q with ref %s, want the stored answer with ref %s", again.Answer, again.Ref, first.Ref)
		}
		take(t, db, claim(e, "a", "g"), operation.Differs)
		if err := db.ReleaseClaim(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		take(t, db, claim(e, "a", "f"), operation.Answered) // an answer is not released

		e.clock.Advance(24*time.Hour - time.Millisecond)
		take(t, db, claim(e, "a", "f"), operation.Answered)
		e.clock.Advance(time.Millisecond)
		if fresh := take(t, db, claim(e, "a", "g"), operation.Claimed); fresh.Ref == first.Ref {
			t.Error("a claim after the old one expired has the same ref")
		}
	})
}

func TestClaim_ReleasedIsNew(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		first := take(t, db, claim(e, "a", "f"), operation.Claimed)
		if err := db.ReleaseClaim(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := take(t, db, claim(e, "a", "other"), operation.Claimed)
		if second.Ref == first.Ref {
			t.Error("the ref of a released claim is used again")
		}
	})
}

func TestClaim_TakenOverAfterItsLease(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		first := take(t, db, claim(e, "a", "f"), operation.Claimed)
		e.clock.Advance(14 * time.Second)
		if err := db.ExtendClaim(t.Context(), first, e.clock.Now().Add(15*time.Second)); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(14 * time.Second)
		take(t, db, claim(e, "a", "f"), operation.Running)
		e.clock.Advance(time.Second)
		take(t, db, claim(e, "a", "other"), operation.Differs)
		second := take(t, db, claim(e, "a", "f"), operation.Claimed)
		if second.Ref != first.Ref || second.Attempt != 2 {
			t.Errorf("the second claim is %+v, want attempt 2 with the ref of %+v", second, first)
		}
		// A call that lost the claim changes nothing.
		if err := db.SettleClaim(t.Context(), first, []byte("late")); err != nil {
			t.Fatal(err)
		}
		if err := db.ReleaseClaim(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := db.ExtendClaim(t.Context(), first, e.clock.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		take(t, db, claim(e, "a", "f"), operation.Running)
		e.clock.Advance(15 * time.Second)
		take(t, db, claim(e, "a", "f"), operation.Claimed)
	})
}

// A service that is alone with its database ends the leases at its start: no call holds a claim.
func TestEndClaimLeases_FreesClaims(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		take(t, db, claim(e, "a", "f"), operation.Claimed)
		settled := take(t, db, claim(e, "b", "f"), operation.Claimed)
		if err := db.SettleClaim(t.Context(), settled, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := db.EndClaimLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		take(t, db, claim(e, "a", "f"), operation.Claimed)
		take(t, db, claim(e, "b", "f"), operation.Answered)
	})
}

func TestClaim_IsSwept(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		old := take(t, db, claim(e, "old", "f"), operation.Claimed)
		e.clock.Advance(time.Hour)
		young := take(t, db, claim(e, "young", "f"), operation.Claimed)
		e.clock.Advance(23*time.Hour + time.Millisecond)
		if err := db.Sweep(t.Context(), e.clock.Now()); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(-2 * time.Hour) // back to when neither had expired
		if h := take(t, db, claim(e, "old", "f"), operation.Claimed); h.Ref == old.Ref {
			t.Error("an expired claim was not removed")
		}
		if h := take(t, db, claim(e, "young", "f"), operation.Claimed); h.Ref != young.Ref {
			t.Error("a claim was removed before its time")
		}
	})
}

// Of 40 claims at the same time on two replicas one succeeds: in the first round of a new claim, in the
// second of one whose lease has ended.
func TestClaim_OneOfMany(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		replicas := []*database.DB{e.open(t), e.open(t)}
		for range 2 {
			var claimed atomic.Int32
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					h, err := replicas[i%2].Claim(t.Context(), claim(e, "a", "f"))
					if err != nil {
						t.Error(err)
						return
					}
					if h.State == operation.Claimed {
						claimed.Add(1)
					} else if h.State != operation.Running {
						t.Errorf("state %d, want Claimed or Running", h.State)
					}
				})
			}
			all.Wait()
			if claimed.Load() != 1 {
				t.Errorf("%d of 40 calls hold the claim, want 1", claimed.Load())
			}
			e.clock.Advance(time.Minute)
		}
	})
}
