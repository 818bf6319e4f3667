package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/test/expect"
)

// A window ends exactly a minute after its first call: a call at that moment opens the next.
func TestBudget_EndOfTheWindow(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db, key := e.open(t), "k"
		began := e.clock.Now().Truncate(time.Millisecond)
		for _, c := range []struct {
			name   string
			after  time.Duration
			used   int
			spent  bool
			closes time.Duration
		}{
			{"the first call", 0, 1, true, time.Minute},
			{"the last call", time.Second, 2, true, time.Minute},
			{"one too many", 2 * time.Second, 2, false, time.Minute},
			{"just before the end", time.Minute - time.Millisecond, 2, false, time.Minute},
			{"at the end", time.Minute, 1, true, 2 * time.Minute},
			{"the last call of the next window", time.Minute, 2, true, 2 * time.Minute},
			{"one too many again", time.Minute, 2, false, 2 * time.Minute},
			{"long after", time.Hour, 1, true, time.Hour + time.Minute},
			{"the clock was set back by a minute", 59 * time.Minute, 2, true, time.Hour + time.Minute},
			{"one too many for it", 59 * time.Minute, 2, false, time.Hour + time.Minute},
			{"set back by more", 59*time.Minute - time.Millisecond, 1, true, time.Hour - time.Millisecond},
			{"corrected again", time.Hour, 1, true, time.Hour + time.Minute},
		} {
			used, spent, closes, err := db.Spend(t.Context(), key, 2, time.Minute, began.Add(c.after))
			expect.Equal(t, c.name, expect.Values{"error": {err, error(nil)}, "used": {used, c.used}, "spent": {spent, c.spent},
				"closes": {closes.Sub(began), c.closes}})
		}
		checkWindow(t, db, key, began.Add(time.Hour))
	})
}

// checkWindow expects a window of one call that opened at a time.
func checkWindow(t *testing.T, db *database.DB, key string, opened time.Time) {
	t.Helper()
	for _, c := range []struct {
		name  string
		after time.Duration
		used  int
	}{
		{"in the window", 0, 1},
		{"just before the end", time.Minute - time.Millisecond, 1},
		{"at the end", time.Minute, 0},
		{"the clock was set back by a minute", -time.Minute, 1},
		{"set back by more", -time.Minute - time.Millisecond, 0},
	} {
		now := opened.Add(c.after)
		used, _, err := db.BudgetWindow(t.Context(), key, time.Minute, now)
		all, allErr := db.BudgetUsed(t.Context(), []string{key, "other"}, time.Minute, now)
		expect.Equal(t, c.name, expect.Values{"error": {err, error(nil)}, "used": {used, c.used},
			"error of all": {allErr, error(nil)}, "used of all": {all[key], c.used}})
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		used  int
	}{
		{"given back at the end", time.Minute, 1},
		{"given back in the window", time.Second, 0},
		{"given back twice", time.Second, 0},
	} {
		if err := db.GiveBack(t.Context(), []string{key}, opened.Add(c.after)); err != nil {
			t.Fatal(err)
		}
		if used, _, err := db.BudgetWindow(t.Context(), key, time.Minute, opened); err != nil || used != c.used {
			t.Errorf("%s: used %d, %v, want %d", c.name, used, err, c.used)
		}
	}
	if err := db.GiveBack(t.Context(), nil, opened); err != nil {
		t.Errorf("given back without keys: %v", err)
	}
	if none, err := db.BudgetUsed(t.Context(), nil, time.Minute, opened); err != nil || len(none) != 0 {
		t.Errorf("without keys: %v, %v", none, err)
	}
}
