package event_test

import (
	"context"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/event"
)

// times keeps the first failure of each outage that an Outage has its store remember.
type times []time.Time

func (s *times) TellOutage(_ context.Context, _ event.PlatformService, since, _ time.Time) error {
	if n := len(*s); n == 0 || !(*s)[n-1].Equal(since) {
		*s = append(*s, since)
	}
	return nil
}

// Calls that fail for less than five minutes are no outage, also when failures follow the
// recovery; those that fail for five are reported.
func TestOutage_TellsOnlyWhatLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	store := &times{}
	outage := &event.Outage{Store: store, Now: func() time.Time { return now }}
	for _, step := range []struct {
		pause     time.Duration
		succeeded bool
		want      int // outages
	}{
		{0, false, 0},
		{5*time.Minute - time.Second, false, 0},
		{time.Second / 2, true, 0}, // recovers just in time
		{time.Second, false, 0},    // a new outage begins
		{4 * time.Minute, false, 0},
		{time.Minute, false, 1},
		{time.Minute, false, 1},
		{time.Minute, true, 1},
		{time.Minute, false, 1},
		{4 * time.Minute, false, 1},
		{time.Minute, false, 2}, // the next outage is reported
		{time.Minute, true, 2},
		{time.Minute, false, 2},
		{6 * time.Minute, false, 2}, // alone, as the one before
		{5 * time.Minute, false, 2},
		{4 * time.Minute, false, 2}, // the outage is that of the last two
		{time.Minute, false, 3},
	} {
		now = now.Add(step.pause)
		outage.Called(step.succeeded)
		if err := outage.Look(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(*store) != step.want {
			t.Fatalf("at %s there were %d outages, want %d", now.Format(time.TimeOnly), len(*store), step.want)
		}
	}
}
