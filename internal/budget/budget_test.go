package budget_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/budget"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
)

// newLimiter is the budget on a real database, with a clock set by hand.
func newLimiter(t *testing.T, now *atomic.Int64) budget.Limiter {
	t.Helper()
	clock := func() time.Time { return time.UnixMilli(now.Load()) }
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "muster.db")), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return budget.Limiter{Store: db, Now: clock}
}

func key(id string) access.Principal { return access.Principal{Kind: access.APIKey, ID: id} }

// A person in the portal has sixty; a connection has ten, as a key does.
func TestSpend_People(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	l := newLimiter(t, &now)
	for kind, most := range map[access.Kind]int{access.User: 60, access.Connection: 10, access.APIKey: 10} {
		for i := range most + 1 {
			got, err := l.Spend(t.Context(), access.Principal{Kind: kind, ID: "x"})
			if err != nil || got.Spent != (i < most) || got.Limit != most || got.Remaining != max(0, most-1-i) {
				t.Fatalf("%s, call %d: %+v, %v", kind, i+1, got, err)
			}
		}
	}
}

func TestBudget_TenAMinute(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	l := newLimiter(t, &now)
	for i := range 12 {
		now.Add(1000)
		got, err := l.Spend(t.Context(), key("k1"))
		if err != nil {
			t.Fatal(err)
		}
		// The window opened with the first call and lasts 60 s whatever comes.
		if got.Spent != (i < 10) || got.Limit != 10 || got.Remaining != max(0, 9-i) {
			t.Errorf("call %d: spent %v, %d of %d left", i+1, got.Spent, got.Remaining, got.Limit)
		}
		if got.Window != time.Minute || got.Reset != time.Duration(60-i)*time.Second {
			t.Errorf("call %d: window %s, reset in %s", i+1, got.Window, got.Reset)
		}
	}
	if other, err := l.Spend(t.Context(), key("k2")); err != nil || !other.Spent {
		t.Errorf("another key: %+v, %v", other, err)
	}
	now.Add(60_000)
	if again, err := l.Spend(t.Context(), key("k1")); err != nil || !again.Spent || again.Remaining != 9 {
		t.Errorf("the next window: %+v, %v", again, err)
	}
}

func TestBudget_TenOfAHundredPass(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	l := newLimiter(t, &now)
	var spent atomic.Int64
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			got, err := l.Spend(t.Context(), key("k1"))
			if err != nil {
				t.Error(err)
			}
			if got.Spent {
				spent.Add(1)
			}
		})
	}
	calls.Wait()
	if spent.Load() != 10 {
		t.Errorf("%d calls were within the budget", spent.Load())
	}
}
