package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/phrase"
)

// The rules by which a rollout goes on and pauses (docs/how-to/agent-versions.md).
const (
	// silence is how long a device that was in touch every day has no contact until it
	// counts as lost.
	silence = 24 * time.Hour
	// known is how long a device must have been in touch every day.
	known = 7 * 24 * time.Hour
	// dueTo is how long after a device began its silence may be due to the update.
	dueTo = 7 * 24 * time.Hour
	// absent is how long a device that has not begun has no contact until no ring waits
	// for it.
	absent = 7 * 24 * time.Hour
	// minLost is how many lost devices pause a rollout, if 2 % are not more.
	minLost = 3
	// minProved is how many devices of a ring must be in touch, if it has so many.
	minProved = 5
	// blind is how long no replica may have looked: after it silence counts from now on.
	blind = time.Hour
)

// Daily reports whether a device was in touch every day before now: for a week, or since
// it enrolled.
func Daily(since, enrolled, now time.Time) bool {
	return !since.After(enrolled) || !since.After(now.Add(-known))
}

// Progress is how far a rollout is.
type Progress struct {
	Devices  int // of the installation that the version is for
	Members  int // of the present ring
	Updated  int // of them, in touch on the version
	Began    int // of all
	Failed   []Member
	Lost     []Member // silent, or back on the version before
	nextRing int
	nextUpto int64
	ringUpto int64 // where the present ring would end if it were taken from those who are there
}

// Assess looks at all devices of a version with the release's code.
func Assess(r Rollout, code int64, members []Member, now time.Time) Progress {
	r = r.watched(now)
	p := Progress{nextRing: next(r.Ring, r.Goal)}
	var places []int64
	for _, m := range members {
		place, began := Place(m.DeviceID), !m.BeganAt.IsZero()
		if began {
			p.Began++
		}
		switch {
		case m.lost(r, now):
			p.Lost = append(p.Lost, m)
		case m.Outcome == Failed && m.Code < code:
			p.Failed = append(p.Failed, m)
		}
		if !began && (m.Held || m.Code < code && m.SeenAt.Before(now.Add(-absent))) {
			continue
		}
		places = append(places, place)
		if place <= r.Upto {
			p.Members++
			if m.Code >= code && !m.SeenAt.Before(now.Add(-silence)) {
				p.Updated++
			}
		}
	}
	p.Devices, p.nextUpto, p.ringUpto = len(places), upto(places, p.nextRing), upto(places, r.Ring)
	return p
}

// watched is the rollout with the time since when the service has looked: now, after a break or a clock that was ahead.
// The operator let it go on before.
func (r Rollout) watched(now time.Time) Rollout {
	if now.Sub(r.WatchedAt) > blind || r.WatchedFrom.After(now) {
		r.WatchedFrom = now
	}
	if r.ResumedAt.After(r.WatchedFrom) {
		r.ResumedAt = r.WatchedFrom
	}
	return r
}

// lost reports whether a device has begun and is silent, or went back. What was lost
// before the operator let the rollout go on does not count again, and what went back while the clock was ahead counted then.
func (m Member) lost(r Rollout, now time.Time) bool {
	if m.BeganAt.IsZero() {
		return false
	}
	if m.Outcome == WentBack {
		return m.EndedAt.After(r.ResumedAt) && m.EndedAt.Before(now.Add(blind))
	}
	since := m.SeenAt
	if r.WatchedFrom.After(since) {
		since = r.WatchedFrom
	}
	return m.Daily && !now.Before(since.Add(silence)) && m.SeenAt.Add(silence).After(r.ResumedAt) && m.SeenAt.Before(m.BeganAt.Add(dueTo))
}

// next is the ring after one that ends with so many percent; 0: it was the last.
func next(ring, goal int) int {
	for _, percent := range []int{1, 10, goal} {
		if percent > ring && percent <= goal {
			return percent
		}
	}
	return 0
}

// upto is the place that the percent of the places end with: at least one.
func upto(places []int64, percent int) int64 {
	if percent >= 100 {
		return math.MaxInt64
	}
	if len(places) == 0 || percent <= 0 {
		return -1
	}
	slices.Sort(places)
	return places[(len(places)*percent+99)/100-1]
}

// Proved reports whether enough of the present ring are in touch on the version: 95 % of it, rounded down (of ten
// one may lie in a drawer), at least five devices, or all of a smaller ring.
func (p Progress) Proved() bool {
	return p.Members > 0 && p.Updated >= max(p.Members*95/100, min(minProved, p.Members))
}

// Bad reports whether so many devices are lost that the rollout must pause.
func (p Progress) Bad() bool { return len(p.Lost) >= minLost && len(p.Lost)*50 >= p.Began }

// Next is the rollout as it should be now.
func (r Rollout) Next(p Progress, now time.Time) Rollout {
	n := r.watched(now)
	n.WatchedAt = now
	switch {
	case !r.State.Offers():
	case p.Bad():
		n.State, n.Reason = Paused, p.why()
	case r.State == Done && p.nextRing == 0 || p.Devices == 0:
	case r.Ring == 0 || p.Proved():
		if p.nextRing == 0 {
			n.State = Done
			break
		}
		n.State, n.Ring, n.Upto, n.RingAt = Running, p.nextRing, max(r.Upto, p.nextUpto), now
	case p.Members == 0: // all of the ring are gone, held back or away, and none of them has begun
		n.Upto, n.RingAt = max(r.Upto, p.ringUpto), now
	}
	return n
}

// replaced reports whether a rollout is done, and for each of its packages a higher version is
// done for all devices, whose last ring began after the operator last let this rollout go on.
func (r Rollout) replaced(rollouts []Rollout, releases []Release) bool {
	latest := map[string]int64{} // codes by package
	for _, h := range rollouts {
		if h.State != Done || h.Ring < 100 || !h.RingAt.After(r.ResumedAt) {
			continue
		}
		for _, f := range releases {
			if f.Version == h.Version {
				latest[f.Package] = max(latest[f.Package], f.Code)
			}
		}
	}
	return r.State == Done && !slices.ContainsFunc(releases, func(f Release) bool {
		return f.Version == r.Version && latest[f.Package] <= f.Code
	})
}

// maxNamed is how many lost devices the reason of a pause names.
const maxNamed = 20

func (p Progress) why() string {
	slices.SortFunc(p.Lost, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.CompanySlug, b.CompanySlug), cmp.Compare(a.AssetID, b.AssetID))
	})
	names := phrase.First(p.Lost, maxNamed, func(m Member) string { return m.CompanySlug + "/" + m.AssetID })
	return fmt.Sprintf("%d of %d devices that began have no contact, or went back: %s", len(p.Lost), p.Began, strings.Join(names, ", "))
}
