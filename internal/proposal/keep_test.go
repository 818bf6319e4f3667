package proposal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/proposal"
)

// A lease is given up when it is another's, or cannot be renewed twice in a row.
func TestKeep(t *testing.T) {
	t.Parallel()
	type renewal struct {
		mine bool
		err  error
	}
	mine, others, fails := renewal{true, nil}, renewal{false, nil}, renewal{false, errAway()}
	for name, c := range map[string]struct {
		renewals []renewal     // of which the last repeats
		lost     time.Duration // after which it is given up; 0: never
	}{
		"is renewed":                     {[]renewal{mine}, 0},
		"cannot be renewed once":         {[]renewal{fails, mine}, 0},
		"cannot be renewed now and then": {[]renewal{fails, mine, fails, mine}, 0},
		"cannot be renewed twice":        {[]renewal{mine, fails, fails, mine}, 12 * time.Second},
		"is another's":                   {[]renewal{others, mine}, 4 * time.Second},
		"is another's after it was ours": {[]renewal{mine, others, mine}, 8 * time.Second},
		"is another's after it was away": {[]renewal{fails, others, mine}, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				held, release := proposal.Keep(t.Context(), func(context.Context, string, string, time.Duration) (bool, error) {
					r := c.renewals[min(n, len(c.renewals)-1)]
					n++
					return r.mine, r.err
				}, "lease", "holder")
				began, over := time.Now(), 30*time.Second
				select {
				case <-held.Done():
					over = time.Since(began)
				case <-time.After(over):
					over = 0
				}
				if over != c.lost {
					t.Errorf("given up after %v, want %v", over, c.lost)
				}
				release()
			})
		})
	}
}
