package budget_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// Looking at what is left spends nothing, and looks at the window that calls spend from.
func TestLeft(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	l := newLimiter(t, &now)
	person := access.Principal{Kind: access.User, ID: "u1"}
	for range 3 {
		if _, err := l.Spend(t.Context(), key("k1")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.SpendOwn(t.Context(), key("k1"), "propose", 5); err != nil {
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
		left, err := l.Left(t.Context(), c.p, c.name, 5)
		expect.Equal(t, c.what, expect.Values{"error": {err, error(nil)}, "left": {left,
			operation.Allowance{Limit: c.limit, Remaining: c.remaining, Reset: c.reset, Window: time.Minute, Name: c.name}}})
	}
}
