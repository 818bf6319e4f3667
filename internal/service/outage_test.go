package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/service"
)

// told counts the outages that are noted, those of a service that overlap as one.
type told struct {
	latest map[event.PlatformService]time.Time
	n      int
}

func (s *told) TellOutage(_ context.Context, of event.PlatformService, since, latest time.Time) error {
	if since.After(s.latest[of]) {
		s.n++
	}
	s.latest[of] = latest
	return nil
}

// An outage of one of the platform's services is noted while the other answers, and one of
// both for each: the database tells it once. A single device that does not exist is no outage and ends none; what
// the management service refuses is no outage either.
func TestOutages_EachServiceByItsOwnCalls(t *testing.T) {
	t.Parallel()
	const (
		pull, acknowledge = "pubsub.projects.subscriptions.pull", "pubsub.projects.subscriptions.acknowledge"
		list, get         = "enterprises.list", "enterprises.devices.get"
		patch             = "enterprises.policies.patch"
	)
	for name, c := range map[string]struct {
		calls [][2]string
		want  int
	}{
		"Android API":            {[][2]string{{list, "unknown"}, {pull, "ok"}, {acknowledge, "ok"}}, 1},
		"Pub/Sub":                {[][2]string{{list, "ok"}, {pull, "denied"}}, 1},
		"Pub/Sub, acknowledging": {[][2]string{{list, "ok"}, {acknowledge, "ok"}, {pull, "unknown"}}, 1},
		"both":                   {[][2]string{{list, "unknown"}, {pull, "unknown"}}, 2},
		"a subscription missing": {[][2]string{{list, "ok"}, {pull, "missing"}}, 1},
		"a device missing":       {[][2]string{{get, "missing"}, {pull, "ok"}}, 0},
		"a device missing, too":  {[][2]string{{list, "unknown"}, {get, "missing"}}, 1},
		"a policy refused":       {[][2]string{{patch, "refused"}, {pull, "ok"}}, 0},
		"a name in conflict":     {[][2]string{{patch, "conflict"}, {pull, "ok"}}, 0},
		"throttled":              {[][2]string{{patch, "throttled"}, {pull, "ok"}}, 1},
		"Pub/Sub, refusing":      {[][2]string{{list, "ok"}, {pull, "refused"}}, 1},
		"acknowledging fails":    {[][2]string{{list, "ok"}, {pull, "ok"}, {acknowledge, "unknown"}}, 0},
		"neither":                {[][2]string{{list, "ok"}, {pull, "ok"}}, 0},
	} {
		now, store := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), &told{latest: map[event.PlatformService]time.Time{}}
		o := service.NewOutages(store, func() time.Time { return now })
		for range 40 {
			now = now.Add(15 * time.Second)
			for _, call := range c.calls {
				o.Called(call[0], call[1])
			}
			if err := o.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if store.n != c.want {
			t.Errorf("%s: told %d times, want %d", name, store.n, c.want)
		}
	}
}
