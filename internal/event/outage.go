package event

import (
	"context"
	"sync"
	"time"
)

// outageAfter is for how long calls fail before it is told.
const outageAfter = 5 * time.Minute

// OutageGap is how long after the last failure a new one still belongs to the same outage,
// as when a replica that fails starts again.
const OutageGap = 90 * time.Second

// OutageStore tells outages, for all replicas once. It fails as the database does.
type OutageStore interface {
	// TellOutage notes failures of a replica from since to latest, and tells them unless
	// they belong to the outage that was told last.
	TellOutage(ctx context.Context, since, latest time.Time) error
}

// Outage watches whether one service of the platform answers this replica. Failures that
// are outageAfter or more apart, with no call between them, do not belong together.
type Outage struct {
	Store OutageStore
	Now   func() time.Time

	mu     sync.Mutex
	failed time.Time // the first failure of the outage; zero: the last call succeeded
	latest time.Time // failure
}

// Called notes how a call ended.
func (o *Outage) Called(succeeded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Now()
	switch {
	case succeeded:
		o.failed = time.Time{}
	case o.failed.IsZero() || now.Sub(o.latest) >= outageAfter || o.failed.After(now): // or the clock was ahead
		o.failed, o.latest = now, now
	default:
		o.latest = now
	}
}

// Look tells an outage that has lasted.
func (o *Outage) Look(ctx context.Context) error {
	o.mu.Lock()
	failed, latest := o.failed, o.latest
	o.mu.Unlock()
	if failed.IsZero() || latest.Sub(failed) < outageAfter {
		return nil
	}
	return o.Store.TellOutage(ctx, failed, latest)
}
