package rollout

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// WatchEvery is how often rollouts are looked at. One that is done is rarely: its lost devices were silent for a day.
const (
	WatchEvery     = time.Minute
	watchDoneEvery = 10 * WatchEvery
)

// Watcher moves rollouts on. Several replicas may watch.
type Watcher struct {
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Watch looks once at every rollout that offers its version.
func (w Watcher) Watch(ctx context.Context) error {
	all, err := w.Store.Rollouts(ctx)
	if err != nil {
		return err
	}
	releases, err := w.Store.Releases(ctx)
	if err != nil {
		return err
	}
	codes, err := Codes(releases)
	for _, r := range all {
		switch {
		case err != nil || !r.State.Offers():
		case r.replaced(all, releases):
			ended := r
			ended.State = Ended
			err = w.move(ctx, r, ended)
		case r.due(w.Now()):
			err = w.watch(ctx, r, codes[r.Version])
		}
	}
	return err
}

// due reports whether it is time to look at all devices again: no replica did so lately.
func (r Rollout) due(now time.Time) bool {
	since := now.Sub(r.WatchedAt).Abs()
	return r.Ring == 0 || since >= watchDoneEvery || r.State == Running && since >= WatchEvery*3/4
}

func (w Watcher) watch(ctx context.Context, r Rollout, code int64) error {
	now := w.Now()
	p, err := Look(ctx, w.Store, r, code, now)
	if err != nil {
		return err
	}
	return w.move(ctx, r, r.Next(p, now))
}

func (w Watcher) move(ctx context.Context, r, to Rollout) error {
	moved, err := w.Store.MoveRollout(ctx, r, to)
	if err != nil || !moved {
		return err // another replica, or the operator, was first
	}
	switch {
	case to.State == Paused:
		w.Log.WarnContext(ctx, "agent rollout paused", "version", r.Version, "reason", to.Reason)
	case to.State != r.State || to.Ring != r.Ring:
		w.Log.InfoContext(ctx, "agent rollout goes on", "version", r.Version, "state", to.State, "percent", to.Ring)
	}
	return nil
}

// Look is Assess with the devices of the store.
func Look(ctx context.Context, s Store, r Rollout, code int64, now time.Time) (Progress, error) {
	var members []Member
	err := s.Members(ctx, r.Version, func(m Member) { members = append(members, m) })
	return Assess(r, code, members, now), err
}

// Codes are the codes of all versions, by version.
func Codes(releases []Release) (map[string]int64, error) {
	codes := map[string]int64{}
	for _, r := range releases {
		if before, known := codes[r.Version]; known && before != r.Code {
			return codes, errors.New("the files of version " + r.Version + " have different codes")
		}
		codes[r.Version] = r.Code
	}
	return codes, nil
}
