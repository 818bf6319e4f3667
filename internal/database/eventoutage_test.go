package database_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/event"
)

// failing is how many events of outages there are.
func (f *fixture) failing() int {
	f.Helper()
	all, err := f.db.Text(f.Context(), `SELECT id FROM events WHERE type = 'platform.failing'`)
	f.ok(err)
	return len(all)
}

// An outage of each service of the platform is told once, also while the other one's lasts. One that begins with the other
// one's is the same: the platform as a whole cannot be reached.
func TestTellOutage_OfEachService(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.connect("enterprises/a")
		begin := f.clock.Now()
		for _, step := range []struct {
			what          string
			of            event.PlatformService
			since, latest time.Duration
			told          int
		}{
			{"the notifications fail", event.NotificationService, 0, 5 * time.Minute, 1},
			{"and go on failing", event.NotificationService, 0, time.Hour, 0},
			{"on another replica", event.NotificationService, time.Minute, time.Hour, 0},
			{"the management fails, too", event.ManagementService, 55 * time.Minute, time.Hour, 1},
			{"and goes on failing", event.ManagementService, 55 * time.Minute, 2 * time.Hour, 0},
			{"the notifications go on", event.NotificationService, 0, 2 * time.Hour, 0},
			{"a new outage of the management", event.ManagementService, 3 * time.Hour, 3*time.Hour + 5*time.Minute, 1},
			{"with the notifications", event.NotificationService, 3*time.Hour + 2*time.Minute, 3*time.Hour + 7*time.Minute, 0},
			{"a new outage of the notifications", event.NotificationService, 4 * time.Hour, 4*time.Hour + 5*time.Minute, 1},
			{"with the management, noted later", event.ManagementService, 4*time.Hour - time.Minute, 4*time.Hour + 6*time.Minute, 0},
		} {
			before := f.failing()
			f.ok(f.db.TellOutage(f.Context(), step.of, begin.Add(step.since), begin.Add(step.latest)))
			equal(f, "events when "+step.what, f.failing()-before, step.told)
		}
	})
}

// A replica of an earlier version has one row for both services. What it told is not told again.
func TestTellOutage_BesideAnEarlierVersion(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.connect("enterprises/a")
		now := f.clock.Now()
		f.tamper(fmt.Sprintf(`INSERT INTO platform_outages (one, since, told) VALUES (1, %d, %d)`, now.Add(-time.Hour).UnixMilli(),
			now.UnixMilli()))
		f.ok(f.db.TellOutage(f.Context(), event.NotificationService, now.Add(-5*time.Minute), now))
		equal(f, "events of what was told before", f.failing(), 0)
		f.tamper(fmt.Sprintf(`UPDATE platform_outages SET since = %d, told = %d WHERE one = 1`, now.Add(time.Hour).UnixMilli(),
			now.Add(65*time.Minute).UnixMilli()))
		f.ok(f.db.TellOutage(f.Context(), event.NotificationService, now.Add(time.Hour), now.Add(66*time.Minute)))
		equal(f, "events of what the other replica told", f.failing(), 0)
	})
}
