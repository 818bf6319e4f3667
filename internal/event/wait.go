package event

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/wait"
)

// enter lets a call wait. It fails with fault.RateLimited where too many do.
func (f *Feed) enter(p access.Principal) (*waiter, error) {
	w := &waiter{company: p.CompanyID, caller: p.BudgetKey(), wake: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := 0
	for other := range f.waiting {
		if other.caller == w.caller {
			mine++
		}
	}
	switch {
	case mine >= waitersOf:
		return nil, fault.Limited(time.Second, "%d calls of this caller wait for events already: end one, or call without wait", mine)
	case len(f.waiting) >= f.Waiters:
		return nil, fault.Limited(time.Second, "too many calls wait for events: call without wait, or again in a moment")
	}
	if f.waiting == nil {
		f.waiting = map[*waiter]struct{}{}
	}
	f.waiting[w] = struct{}{}
	if f.closed {
		close(w.wake)
	}
	return w, nil
}

func (f *Feed) leave(w *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, w)
}

// Wake has the calls of companies look again; nil: of all. It does not block.
func (f *Feed) Wake(companies []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[string]bool{}
	for _, c := range companies {
		of[c] = true
	}
	for w := range f.waiting {
		if f.closed || companies != nil && !of[w.company] {
			continue
		}
		wait.Wake(w.wake)
	}
}

// Close ends all that waits: the service drains. Later calls do not wait.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	for w := range f.waiting {
		close(w.wake)
	}
}

// Watch wakes calls whose callers may not wait any more, until the context ends: one look
// for all of them, and none while no call waits.
func (f *Feed) Watch(ctx context.Context) error {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	known := map[string]int64{}
	for {
		if companies := f.companies(); len(companies) > 0 {
			now, err := f.Store.ControlVersions(ctx, companies)
			var moved []string
			for company, version := range now {
				if before, seen := known[company]; err == nil && (!seen || before != version) {
					moved = append(moved, company)
				}
			}
			if len(moved) > 0 {
				f.Wake(moved)
			}
			known = now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// companies are those whose calls wait.
func (f *Feed) companies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]bool{}
	for w := range f.waiting {
		all[w.company] = true
	}
	return slices.Collect(maps.Keys(all))
}
