package event

import (
	"context"
	"sync"
	"time"
)

// outageAfter is for how long calls fail before it is told.
const outageAfter = 5 * time.Minute

// OutageStore remembers whether an outage was told.
type OutageStore interface {
	TellOutage(ctx context.Context, since time.Time) error
	EndOutage(ctx context.Context) error
}

// Outage watches whether the platform answers this replica.
type Outage struct {
	Store OutageStore
	Now   func() time.Time

	mu     sync.Mutex
	failed time.Time // the first failure since the last success; zero: none
	latest time.Time // failure
	answer bool      // a call succeeded since the last look
	told   bool      // the failures since failed; another replica may have noted an end since
}

// Called notes how a call ended.
func (o *Outage) Called(succeeded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Now()
	switch {
	case succeeded:
		o.failed, o.answer, o.told = time.Time{}, true, false
	case o.failed.IsZero():
		o.failed, o.latest = now, now
	default:
		o.latest = now
	}
}

// Look tells an outage that has lasted, and notes that one is over.
func (o *Outage) Look(ctx context.Context) error {
	o.mu.Lock()
	failed, latest, answered, told := o.failed, o.latest, o.answer, o.told
	o.answer = false
	o.mu.Unlock()
	switch {
	case answered:
		return o.Store.EndOutage(ctx)
	case !told && !failed.IsZero() && latest.Sub(failed) >= outageAfter:
		if err := o.Store.TellOutage(ctx, failed); err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.told = o.failed.Equal(failed)
	}
	return nil
}
