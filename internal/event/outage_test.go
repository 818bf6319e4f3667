package event_test

import (
	"context"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/event"
)

// told counts what an Outage has its store remember.
type told struct{ tells, ends int }

func (s *told) TellOutage(context.Context, time.Time) error { s.tells++; return nil }
func (s *told) EndOutage(context.Context) error             { s.ends++; return nil }

// Calls that fail for less than five minutes are no outage, also when failures follow the
// recovery; those that fail for five are told.
func TestOutage_TellsOnlyWhatLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	store := &told{}
	outage := &event.Outage{Store: store, Now: func() time.Time { return now }}
	for _, step := range []struct {
		pause     time.Duration
		succeeded bool
		want      told
	}{
		{0, false, told{}},
		{5*time.Minute - time.Second, false, told{}},
		{time.Second / 2, true, told{ends: 1}}, // recovers just in time
		{time.Second, false, told{ends: 1}},    // a new outage begins
		{4 * time.Minute, false, told{ends: 1}},
		{time.Minute, false, told{tells: 1, ends: 1}},
		{time.Minute, false, told{tells: 1, ends: 1}}, // not again, whatever other replicas noted
		{time.Minute, true, told{tells: 1, ends: 2}},
		{time.Minute, false, told{tells: 1, ends: 2}},
		{5 * time.Minute, false, told{tells: 2, ends: 2}}, // the next outage is told
	} {
		now = now.Add(step.pause)
		outage.Called(step.succeeded)
		if err := outage.Look(context.Background()); err != nil {
			t.Fatal(err)
		}
		if *store != step.want {
			t.Fatalf("at %s the outage told %+v, want %+v", now.Format(time.TimeOnly), *store, step.want)
		}
	}
}
