package rollout_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rollout"
)

// shelf is a store whose rollouts nothing moves on.
type shelf struct {
	rollout.Store
	releases []rollout.Release
	rollouts []rollout.Rollout
	looked   map[string]bool
	moved    map[string]rollout.State
}

func (s *shelf) Releases(context.Context) ([]rollout.Release, error) { return s.releases, nil }

func (s *shelf) Rollouts(context.Context) ([]rollout.Rollout, error) { return s.rollouts, nil }

func (s *shelf) Members(_ context.Context, version string, _ func(rollout.Member)) error {
	s.looked[version] = true
	return nil
}

func (s *shelf) MoveRollout(_ context.Context, was, is rollout.Rollout) (bool, error) {
	s.moved[was.Version] = is.State
	return true, nil
}

// A rollout that is done ends, without a look at all devices, when a higher version for each
// of its packages has reached all devices.
func TestWatch_EndsWhatIsReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *shelf, low, high *rollout.Rollout)
		want   rollout.State
	}{
		"replaced":          {func(*shelf, *rollout.Rollout, *rollout.Rollout) {}, rollout.Ended},
		"not done":          {func(_ *shelf, low, _ *rollout.Rollout) { low.State = rollout.Running }, rollout.Running},
		"to a tenth":        {func(_ *shelf, _, high *rollout.Rollout) { high.Ring, high.Goal = 10, 10 }, rollout.Done},
		"higher runs":       {func(_ *shelf, _, high *rollout.Rollout) { high.State = rollout.Running }, rollout.Done},
		"higher is paused":  {func(_ *shelf, _, high *rollout.Rollout) { high.State = rollout.Paused }, rollout.Done},
		"begun again since": {func(_ *shelf, low, high *rollout.Rollout) { low.ResumedAt = high.RingAt }, rollout.Done},
		"begun again before": {func(_ *shelf, low, high *rollout.Rollout) { low.ResumedAt = high.RingAt.Add(-1) },
			rollout.Ended},
		"looked at lately": {func(_ *shelf, low, high *rollout.Rollout) {
			low.WatchedAt, high.Ring, high.Goal = low.WatchedAt.Add(time.Second), 10, 10
		}, ""},
		"runs, looked at lately": {func(_ *shelf, low, _ *rollout.Rollout) {
			low.State, low.WatchedAt = rollout.Running, low.WatchedAt.Add(9*time.Minute+30*time.Second)
		}, ""},
		"looked at by a clock that was ahead": {func(_ *shelf, low, high *rollout.Rollout) {
			low.WatchedAt, high.Ring, high.Goal = low.WatchedAt.Add(time.Hour), 10, 10
		}, rollout.Done},
		"another package": {func(s *shelf, _, _ *rollout.Rollout) { s.releases[1].Package = "linux-amd64" }, rollout.Done},
		"one package of two": {func(s *shelf, _, _ *rollout.Rollout) {
			s.releases = append(s.releases, rollout.Release{Version: "2.0", Package: "linux-amd64", Code: 2})
		}, rollout.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start.Add(time.Hour)
			low := rollout.Rollout{Version: "2.0", State: rollout.Done, Goal: 100, Ring: 100, RingAt: start,
				WatchedAt: now.Add(-10 * time.Minute)}
			high := low
			high.Version, high.RingAt = "3.0", start.Add(time.Minute)
			s := &shelf{looked: map[string]bool{}, moved: map[string]rollout.State{}, releases: []rollout.Release{
				{Version: "2.0", Package: "linux-arm64", Code: 2}, {Version: "3.0", Package: "linux-arm64", Code: 3}}}
			test.change(s, &low, &high)
			s.rollouts = []rollout.Rollout{high, low}
			w := rollout.Watcher{Store: s, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
			if err := w.Watch(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.moved["2.0"]; got != test.want {
				t.Errorf("the lower version's rollout is %s, want %s", got, test.want)
			}
			if got, want := s.looked["2.0"], test.want != rollout.Ended && test.want != ""; got != want {
				t.Errorf("its devices are looked at: %v, want %v", got, want)
			}
			if got := s.moved["3.0"]; high.State.Offers() && got != high.State {
				t.Errorf("the higher version's rollout is %s, want %s", got, high.State)
			}
		})
	}
}
