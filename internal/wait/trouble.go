package wait

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// remindAfter is how often work that goes on failing in the same way is told.
	remindAfter = 15 * time.Minute
	// anotherAfter is after how long another reason is told: an error's text may differ each time.
	anotherAfter = time.Minute
)

// Trouble is that of work which is tried again until it succeeds: it is told once and not at each
// try, then if the reason is another, and now and then. The zero value is work that succeeds.
type Trouble struct {
	mu    sync.Mutex
	why   string    // told last; empty: it succeeds
	since time.Time // of the first failure
	told  time.Time
}

// Failed notes a failure. It returns since when the work fails, and whether that is to be told now.
func (t *Trouble) Failed(err error, now time.Time) (since time.Time, tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == "" {
		t.since, t.told = now, time.Time{}
	}
	after := remindAfter
	if t.why != err.Error() {
		after = anotherAfter
	}
	if ago := now.Sub(t.told); ago >= 0 && ago < after {
		return t.since, false
	}
	t.why, t.told = err.Error(), now
	return t.since, true
}

// Ended notes a success. It returns for how long the work failed before, and whether it did.
func (t *Trouble) Ended(now time.Time) (after time.Duration, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed = t.why != ""
	t.why = ""
	return now.Sub(t.since), failed
}

// Rounds is work in the background: once at first, and then at each tick and whenever it is woken.
type Rounds struct {
	Name  string // in the log
	Work  func(ctx context.Context) error
	Ticks <-chan time.Time
	Woken <-chan struct{} // nil: ticks alone
	Now   func() time.Time
	Log   *slog.Logger
}

// Run works until the context ends, and returns its error. A round that fails is logged as
// Trouble says, and the next one tries again.
func (r Rounds) Run(ctx context.Context) error {
	var trouble Trouble
	for {
		err := r.Work(ctx)
		if ctx.Err() == nil {
			r.note(ctx, &trouble, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Woken:
		case <-r.Ticks:
		}
	}
}

func (r Rounds) note(ctx context.Context, t *Trouble, err error) {
	if err == nil {
		if after, failed := t.Ended(r.Now()); failed {
			r.Log.InfoContext(ctx, "background work succeeds again", "loop", r.Name, "after", after)
		}
		return
	}
	if since, tell := t.Failed(err, r.Now()); tell {
		r.Log.WarnContext(ctx, "background work failed and is tried again", "loop", r.Name, "error", err, "since", since)
	}
}
