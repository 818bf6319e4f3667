package operation_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// budgets counts in a store; nil: it counts nothing.
func budgets(s operation.BudgetStore) operation.Budgets {
	return operation.Budgets{Store: s, Now: time.Now, Uncounted: s == nil}
}

// newBudgets is the budgets of a real database, with a clock set by hand.
func newBudgets(t *testing.T, now *atomic.Int64) operation.Budgets {
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
	return operation.Budgets{Store: db, Now: clock}
}

func key(id string) access.Principal { return access.Principal{Kind: access.APIKey, ID: id} }

// A person in the portal has sixty; a connection has ten, as a key does.
func TestBudgets_People(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	b := newBudgets(t, &now)
	for kind, most := range map[access.Kind]int{access.User: 60, access.Connection: 10, access.APIKey: 10} {
		for i := range most + 1 {
			got, err := b.Spend(t.Context(), access.Principal{Kind: kind, ID: "x"}, &reboot)
			if err != nil || got.Spent != (i < most) || got.Limit != most || got.Remaining != max(0, most-1-i) {
				t.Fatalf("%s, call %d: %+v, %v", kind, i+1, got, err)
			}
		}
	}
}

func TestBudgets_TenAMinute(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	b := newBudgets(t, &now)
	for i := range 12 {
		now.Add(1000)
		got, err := b.Spend(t.Context(), key("k1"), &reboot)
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
	if other, err := b.Spend(t.Context(), key("k2"), &reboot); err != nil || !other.Spent {
		t.Errorf("another key: %+v, %v", other, err)
	}
	now.Add(60_000)
	if again, err := b.Spend(t.Context(), key("k1"), &reboot); err != nil || !again.Spent || again.Remaining != 9 {
		t.Errorf("the next window: %+v, %v", again, err)
	}
}

func TestBudgets_TenOfAHundredPass(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	b := newBudgets(t, &now)
	var spent atomic.Int64
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			got, err := b.Spend(t.Context(), key("k1"), &reboot)
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

// apart is an operation with an allowance of five calls.
func apart(name string) *operation.Operation {
	return &operation.Operation{Name: name, Budget: operation.Apart, Calls: 5}
}

// Looking at what is left spends nothing, and looks at the window that calls spend from.
func TestBudgets_Left(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	b := newBudgets(t, &now)
	person := access.Principal{Kind: access.User, ID: "u1"}
	for range 3 {
		if _, err := b.Spend(t.Context(), key("k1"), &reboot); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Spend(t.Context(), key("k1"), apart("propose")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		after     time.Duration
		p         access.Principal
		name      string
		limit     int
		remaining int
		reset     time.Duration
	}{
		{"the budget", time.Second, key("k1"), "", 10, 7, 59 * time.Second},
		{"the same again", time.Second, key("k1"), "", 10, 7, 59 * time.Second},
		{"another key's", time.Second, key("k2"), "", 10, 10, 0},
		{"a person's", time.Second, person, "", 60, 60, 0},
		{"an allowance", time.Second, key("k1"), "propose", 5, 4, 59 * time.Second},
		{"an allowance that is not begun", time.Second, key("k1"), "other", 5, 5, 0},
		{"a person's allowance", time.Second, person, "propose", 5, 5, 0},
		{"the budget just before the end of its window", time.Minute - time.Millisecond, key("k1"), "", 10, 7, time.Millisecond},
		{"the budget at the end of its window", time.Minute, key("k1"), "", 10, 10, 0},
	} {
		now.Store(1_800_000_000_000 + c.after.Milliseconds())
		var o *operation.Operation
		if c.name != "" {
			o = apart(c.name)
		}
		left, err := b.Left(t.Context(), c.p, o)
		expect.Equal(t, c.what, expect.Values{"error": {err, error(nil)}, "left": {left,
			operation.Allowance{Limit: c.limit, Remaining: c.remaining, Reset: c.reset, Window: time.Minute, Name: c.name}}})
	}
}
