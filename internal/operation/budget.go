package operation

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Budget says when an operation spends the caller's calls a minute (contract 8).
type Budget int

// The ways to spend.
const (
	Free             Budget = iota // reads
	BeforeValidation               // lock, lost-mode, found, message: by callers with DEVICES_COMMAND
	AfterValidation                // everything else that counts
	Apart                          // an allowance of its own, Operation.Calls a minute for each caller
)

// How many calls a caller has in a window, which opens with the first counted call.
const (
	BudgetWindow = time.Minute
	BudgetCalls  = 10 // of a key or a connection (contract 8)
	PeopleCalls  = 60 // of a person in the portal: they protect the service
)

// Allowance is what is left of a budget after an attempt to spend from it.
type Allowance struct {
	Spent     bool          // whether the attempt was within the budget
	Limit     int           // calls a window
	Remaining int           // calls left in the window
	Reset     time.Duration // until the window closes
	Window    time.Duration
	Name      string // of an operation's own allowance; empty: the budget
}

// allowance returns what a call of the operation spends, of which nothing is spent yet, and the
// key under which it is counted: the operation's own allowance or, also where o is nil, the
// caller's budget.
func (o *Operation) allowance(p access.Principal) (key string, a Allowance) {
	key, a = p.BudgetKey(), Allowance{Limit: BudgetCalls, Window: BudgetWindow}
	switch {
	case o != nil && o.Budget == Apart:
		key, a.Limit, a.Name = o.Name+":"+key, o.Calls, o.Name
	case p.Kind == access.User:
		a.Limit = PeopleCalls
	}
	a.Remaining = a.Limit
	return key, a
}

// BudgetStore counts calls. It fails as the database does.
type BudgetStore interface {
	access.Throttle
	// BudgetWindow returns the calls counted in the key's window and when it ends;
	// zero: none is open.
	BudgetWindow(ctx context.Context, key string, window time.Duration, now time.Time) (used int, closes time.Time, err error)
}

// Budgets counts the calls of each caller, exactly, over all replicas.
type Budgets struct {
	Store BudgetStore
	Now   func() time.Time // the store's clock
	// Uncounted has no call counted, without a Store: the commands of a job have its rate.
	Uncounted bool
}

// Spend spends one call of what a call of the operation spends.
func (b Budgets) Spend(ctx context.Context, p access.Principal, o *Operation) (Allowance, error) {
	key, a := o.allowance(p)
	if a.Spent = true; b.Uncounted {
		return a, nil
	}
	now := b.Now()
	used, spent, closes, err := b.Store.Spend(ctx, key, a.Limit, a.Window, now)
	a.Spent, a.Remaining, a.Reset = spent, max(0, a.Limit-used), closes.Sub(now)
	return a, err
}

// Left returns what is left of what a call of the operation spends or, without an operation, of
// the caller's budget. Spent is false.
func (b Budgets) Left(ctx context.Context, p access.Principal, o *Operation) (Allowance, error) {
	key, a := o.allowance(p)
	if b.Uncounted {
		return a, nil
	}
	now := b.Now()
	used, closes, err := b.Store.BudgetWindow(ctx, key, a.Window, now)
	if err == nil && closes.After(now) {
		a.Remaining, a.Reset = max(0, a.Limit-used), closes.Sub(now)
	}
	return a, err
}

// spend counts a call, and remembers in out what is left.
func (k *Kernel) spend(ctx context.Context, o *Operation, p access.Principal, meta Meta, out *Outcome) error {
	left := cmp.Or(meta.UsedUp, k.usedUp.find(o, p, k.Now()))
	if left == nil {
		asked, err := k.Budgets.Spend(ctx, p, o)
		if err != nil {
			return NotSent(o, err)
		}
		if left = &asked; !left.Spent {
			k.usedUp.note(o, p, left.Reset, k.Now())
		}
	}
	out.Allowance = left
	return refusal(*left, left.Spent)
}

// left looks at what spend would spend from, or, without an operation, at the budget.
func (k *Kernel) left(ctx context.Context, p access.Principal, o *Operation) (Allowance, error) {
	if known := k.usedUp.find(o, p, k.Now()); known != nil {
		return *known, nil
	}
	return k.Budgets.Left(ctx, p, o)
}

// refusal is the fault of a call for which there is nothing left; nil: there is.
func refusal(left Allowance, within bool) error {
	if within {
		return nil
	}
	return fault.Limited(left.Reset, "more than %d calls in %d s: retry in %d s", left.Limit, Seconds(left.Window), Seconds(left.Reset))
}

// UsedUp returns what a call of the operation would be refused with because the
// caller's budget is known to be used up; nil: it is not known to be, or the call
// spends none. A surface that acts on it passes it on in Meta, as the window may
// close at any moment.
func (k *Kernel) UsedUp(o *Operation, p access.Principal) *Allowance {
	if o.Budget == Free || o.Budget == BeforeValidation && !p.Permissions.Has(access.DevicesCommand) {
		return nil
	}
	return k.usedUp.find(o, p, k.Now())
}

// Count counts what spends no budget against the ceiling of reads: a read, a
// refused call, a message of a protocol that calls no operation. Above the
// ceiling it returns fault.RateLimited.
func (k *Kernel) Count(p access.Principal) error { return k.reads.count(p.BudgetKey(), k.Now(), 1) }

// windows are what this replica alone knows of windows, by key. It forgets them at a restart.
// The zero value is ready for use.
type windows struct {
	mu    sync.Mutex
	byKey map[string]window
}

type window struct {
	used   int
	closes time.Time
}

// maxWindows bounds the callers that are known at the same time. One more takes the place of
// arbitrary others, who then are unknown.
const maxWindows = 10_000

// set keeps a window. If there are too many, it drops those that have closed, and arbitrary
// others if that is not enough, so that the next callers do not search again.
func (w *windows) set(key string, to window, now time.Time) {
	if w.byKey == nil {
		w.byKey = map[string]window{}
	}
	if _, known := w.byKey[key]; !known && len(w.byKey) >= maxWindows {
		for key, old := range w.byKey {
			if !now.Before(old.closes) {
				delete(w.byKey, key)
			}
		}
		for key := range w.byKey {
			if len(w.byKey) < maxWindows*9/10 {
				break
			}
			delete(w.byKey, key)
		}
	}
	w.byKey[key] = to
}

// ceiling is the limit of reads that protects the server. It counts on this
// replica alone: it is no contract, so it costs no round trip.
type ceiling struct {
	limit int // a minute; 0: none
	windows
}

// count counts n reads, 0 to look only, and returns fault.RateLimited if there is no room for one. A window that was opened
// while the clock was ahead begins again.
func (c *ceiling) count(key string, now time.Time, n int) error {
	if c.limit <= 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.byKey[key]
	if !access.Holds(w.closes.Add(-time.Minute), time.Minute, now) {
		w = window{closes: now.Add(time.Minute)}
	}
	if w.used >= c.limit {
		wait := w.closes.Sub(now)
		return fault.Limited(wait, "more than %d reads and refused calls a minute: retry in %d s", c.limit, Seconds(wait))
	}
	if n > 0 {
		w.used += n
		c.set(key, w, now)
	}
	return nil
}

// usedUp remembers whose budget is used up and until when. A window that is full stays full
// until it closes, so that the next call is refused without asking the store.
type usedUp struct{ windows }

// note remembers a call that was refused until reset is over.
func (u *usedUp) note(o *Operation, p access.Principal, reset time.Duration, now time.Time) {
	key, _ := o.allowance(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.set(key, window{closes: now.Add(reset)}, now)
}

// find returns what a call would be refused with; nil: ask the store. So it is
// after a clock was set back, too.
func (u *usedUp) find(o *Operation, p access.Principal, now time.Time) *Allowance {
	key, a := o.allowance(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	w, known := u.byKey[key]
	if !known {
		return nil
	}
	if a.Remaining, a.Reset = 0, w.closes.Sub(now); a.Reset <= 0 || a.Reset > a.Window {
		delete(u.byKey, key)
		return nil
	}
	return &a
}
