package operation

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// ceiling is the limit of reads that protects the server. It counts on this
// replica alone and forgets everything at a restart: it is no contract, so it
// costs no round trip.
type ceiling struct {
	limit int

	mu      sync.Mutex
	windows map[string]window
}

type window struct {
	used   int
	closes time.Time
}

// maxWindows bounds the callers that are counted at the same time. One more
// takes the place of an arbitrary other, who then begins afresh.
const maxWindows = 10_000

// count counts one read and reports whether it is within the limit, else how
// long to wait.
func (c *ceiling) count(key string, now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.windows[key]
	if !now.Before(w.closes) {
		w = window{closes: now.Add(time.Minute)}
	}
	if w.used >= c.limit {
		return w.closes.Sub(now), false
	}
	if !known && len(c.windows) >= maxWindows {
		c.makeRoom(now)
	}
	w.used++
	c.windows[key] = w
	return 0, true
}

// peek reports whether another read would be within the limit, else how long to wait.
func (c *ceiling) peek(key string, now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[key]
	return w.closes.Sub(now), w.used < c.limit || !now.Before(w.closes)
}

// makeRoom drops every window that has closed, and arbitrary others if that is
// not enough, so that the next callers do not search again.
func (c *ceiling) makeRoom(now time.Time) {
	for key, w := range c.windows {
		if !now.Before(w.closes) {
			delete(c.windows, key)
		}
	}
	for key := range c.windows {
		if len(c.windows) < maxWindows*9/10 {
			return
		}
		delete(c.windows, key)
	}
}

// Allowance is what is left of a budget after an attempt to spend from it.
type Allowance struct {
	Spent     bool          // whether the attempt was within the budget
	Limit     int           // calls a window
	Remaining int           // calls left in the window
	Reset     time.Duration // until the window closes
	Window    time.Duration
	Name      string // of an operation's own allowance; empty: the budget
}

// Limiter spends one call of a principal's budget (contract 8). It is exact
// under concurrency and over replicas. It fails as the database does.
type Limiter interface {
	Spend(ctx context.Context, p access.Principal) (Allowance, error)
}

// Allowances are what some operations spend instead of the budget: so many calls a
// minute for each principal, exact as the budget is. Each method fails as the database does.
type Allowances interface {
	// SpendOwn spends one of the calls of the allowance of a name.
	SpendOwn(ctx context.Context, p access.Principal, name string, calls int) (Allowance, error)
	// Left says what is left of it, or, without a name, of the budget. Spent is false.
	Left(ctx context.Context, p access.Principal, name string, calls int) (Allowance, error)
}

// usedUp remembers, on this replica, whose budget is used up and until when. A
// window that is full stays full until it closes, so that the next call is refused
// without asking the store. The zero value is ready for use.
type usedUp struct {
	mu   sync.Mutex
	full map[string]fullWindow // by budget key
}

type fullWindow struct {
	left   Allowance
	closes time.Time
}

// note remembers a call that was refused.
func (u *usedUp) note(key string, left Allowance, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.full == nil {
		u.full = map[string]fullWindow{}
	}
	if len(u.full) >= maxWindows {
		for key, w := range u.full {
			if !now.Before(w.closes) {
				delete(u.full, key)
			}
		}
	}
	if len(u.full) < maxWindows { // else the store is asked, as before
		u.full[key] = fullWindow{left, now.Add(left.Reset)}
	}
}

// find returns what a call would be refused with; nil: ask the store. So it is
// after a clock was set back, too.
func (u *usedUp) find(key string, now time.Time) *Allowance {
	u.mu.Lock()
	defer u.mu.Unlock()
	w, known := u.full[key]
	if !known {
		return nil
	}
	w.left.Reset = w.closes.Sub(now)
	if w.left.Reset <= 0 || w.left.Reset > w.left.Window {
		delete(u.full, key)
		return nil
	}
	return &w.left
}

// UsedUp returns what a call of the operation would be refused with because the
// caller's budget is known to be used up; nil: it is not known to be, or the call
// spends none. A surface that acts on it passes it on in Meta, as the window may
// close at any moment.
func (k *Kernel) UsedUp(o *Operation, p access.Principal) *Allowance {
	if o.Budget == Free || o.Budget == BeforeValidation && !p.Permissions.Has(access.DevicesCommand) {
		return nil
	}
	return k.usedUp.find(o.accountOf(p), k.Now())
}
