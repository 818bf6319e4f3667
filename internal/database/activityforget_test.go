package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
)

// noteDaily records and seals an entry a day.
func (f *fixture) noteDaily(days int) {
	f.Helper()
	for range days {
		f.noteAfter(24 * time.Hour)
	}
}

// noteAfter records an entry with the clock set by a difference, and seals it.
func (f *fixture) noteAfter(d time.Duration) {
	f.Helper()
	f.clock.Advance(d)
	f.ok(f.db.RecordActivity(f.Context(), f.company.ID, activity.Event{Action: activity.AssetChanged}))
	f.ok(f.keeper().Seal(f.Context()))
}

// forgets forgets, and compares how many entries are left.
func (f *fixture) forgets(what string, left int64) {
	f.Helper()
	f.ok(f.keeper().Forget(f.Context(), f.clock.Now()))
	v := f.verify()
	if !v.Sound() || v.Checked != left {
		f.Errorf("%s: %d entries are left, sound: %t; want %d", what, v.Checked, v.Sound(), left)
	}
}

// An entry that was written while the clock was ahead keeps no other one, for longer than
// its own time or not.
func TestForgetActivity_AfterAClockThatWasAhead(t *testing.T) {
	for name, jump := range map[string]time.Duration{"days": 20 * 24 * time.Hour, "years": 20 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			withCompany(t, func(f *fixture) {
				f.noteDaily(5)
				f.noteAfter(jump)
				f.noteAfter(time.Second)
				f.clock.Advance(-jump)
				f.noteDaily(10)
				f.clock.Advance(company.DefaultKeepActivity - 6*24*time.Hour)
				f.forgets("in between", 7)
			})
		})
	}
}

// If nothing young follows, an entry from the future goes with the old ones after it.
func TestForgetActivity_ThroughTheFuture(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.noteAfter(20 * 365 * 24 * time.Hour)
		f.clock.Advance(-20 * 365 * 24 * time.Hour)
		f.noteDaily(3)
		f.clock.Advance(company.DefaultKeepActivity + time.Hour)
		f.forgets("at the end", 0)
	})
}

// An entry that was written while the clock was behind makes no other one old.
func TestForgetActivity_AfterAClockThatWasBehind(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.noteDaily(3)
		f.noteAfter(-10 * 365 * 24 * time.Hour)
		f.clock.Advance(10 * 365 * 24 * time.Hour)
		f.forgets("before the next entry", 5)
		f.noteDaily(2)
		f.forgets("after it", 7)
	})
}
