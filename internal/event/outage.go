package event

import (
	"context"
	"sync"
	"time"
)

// OutageAfter is for how long calls fail before it is told.
const OutageAfter = 5 * time.Minute

// OutageGap is how long after the last failure a new one still belongs to the same outage,
// as when a replica that fails starts again.
const OutageGap = 90 * time.Second

// PlatformService is a service of the platform, of which outages are told. The database has these numbers.
type PlatformService int

// The services.
const (
	ManagementService   PlatformService = 1 // the Android Management API
	NotificationService PlatformService = 2 // Pub/Sub
)

// OutageStore tells outages, for all replicas once. It fails as the database does.
type OutageStore interface {
	// TellOutage notes a replica's failures of a service from since to latest, and tells them unless
	// they belong to the last outage of the service, or to one of the other service that lasts and began
	// later than OutageAfter before since: then the platform as a whole cannot be reached.
	TellOutage(ctx context.Context, of PlatformService, since, latest time.Time) error
}

// Outage watches whether one service of the platform answers this replica. Failures that
// are OutageAfter or more apart, with no call between them, do not belong together.
type Outage struct {
	Of    PlatformService
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
	case o.failed.IsZero() || now.Sub(o.latest) >= OutageAfter || o.failed.After(now): // or the clock was ahead
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
	if failed.IsZero() || latest.Sub(failed) < OutageAfter {
		return nil
	}
	return o.Store.TellOutage(ctx, o.Of, failed, latest)
}
