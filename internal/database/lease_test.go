package database_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLease_HasOneHolder(t *testing.T) {
	withCompany(t, func(f *fixture) {
		second := f.open(f)
		var got atomic.Int32
		var all sync.WaitGroup
		for n := range 20 {
			db, holder := f.db, string(rune('a'+n))
			if n%2 == 1 {
				db = second
			}
			all.Go(func() {
				ok, err := db.Lease(f.Context(), "reconciler", holder, time.Minute)
				if err != nil {
					f.Error(err)
				}
				if ok {
					got.Add(1)
				}
			})
		}
		all.Wait()
		equal(f, "holders", got.Load(), 1)
	})
}

func TestLease_Ends(t *testing.T) {
	withCompany(t, func(f *fixture) {
		lease := func(holder string, want bool) {
			f.Helper()
			got, err := f.db.Lease(f.Context(), "reconciler", holder, time.Minute)
			f.ok(err)
			equal(f, "lease of "+holder, got, want)
		}
		lease("a", true)
		lease("b", false)
		f.clock.Advance(59 * time.Second)
		lease("a", true) // renewed
		f.clock.Advance(59 * time.Second)
		lease("b", false)
		f.clock.Advance(time.Second)
		lease("b", true)
		lease("a", false)
		f.ok(f.db.Release(f.Context(), "reconciler", "a")) // not his
		lease("a", false)
		f.ok(f.db.Release(f.Context(), "reconciler", "b"))
		lease("a", true)
	})
}

func TestSweep_RemovesOnlyWhatExpired(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", "")
		o.MessageID = "old"
		f.observe(o)
		_, _, _, err := f.db.Spend(f.Context(), "k", 10, time.Minute, f.clock.Now())
		f.ok(err)
		_, err = f.db.Lease(f.Context(), "l", "h", time.Minute)
		f.ok(err)
		f.clock.Advance(9 * 24 * time.Hour)
		o = f.observation("d")
		o.MessageID = "new"
		f.observe(o)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		for table, want := range map[string]string{"messages": "1", "budgets": "0", "leases": "0", "assets": "1"} {
			got, err := f.db.Text(f.Context(), `SELECT COUNT(*) FROM `+table)
			f.ok(err)
			equal(f, table, got[0], want)
		}
		o.ObservedAt = o.ObservedAt.Add(time.Second)
		equal(f, "the new message again", f.observe(o).Applied, false)
	})
}
