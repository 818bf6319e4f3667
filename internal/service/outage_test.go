package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/service"
)

// told counts the outages that are told, as the database does: once for all that overlap.
type told struct {
	latest time.Time
	n      int
}

func (s *told) TellOutage(_ context.Context, since, latest time.Time) error {
	if since.After(s.latest) {
		s.n++
	}
	s.latest = latest
	return nil
}

// An outage of one of the platform's services is told while the other answers, and one of
// both is told once. A single device that does not exist is no outage and ends none; what
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
		"both":                   {[][2]string{{list, "unknown"}, {pull, "unknown"}}, 1},
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
		now, store := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), &told{}
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
