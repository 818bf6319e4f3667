package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rollout"
)

var start = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// fleet is n devices in touch at a time, on the version before.
func fleet(n int, seen time.Time) []rollout.Member {
	all := make([]rollout.Member, n)
	for i := range all {
		all[i] = rollout.Member{DeviceID: fmt.Sprintf("device-%04d", i), AssetID: fmt.Sprintf("asset-%04d", i), CompanySlug: "acme",
			SeenAt: seen, Daily: true}
	}
	return all
}

// move looks once and returns the rollout as it then is.
func move(r rollout.Rollout, all []rollout.Member, now time.Time) (rollout.Rollout, rollout.Progress) {
	p := rollout.Assess(r, 2, all, now)
	return r.Next(p, now), p
}

func begun(goal int) rollout.Rollout {
	return rollout.Rollout{Version: "2.0", State: rollout.Running, Goal: goal, Upto: -1, BeganAt: start,
		WatchedFrom: start, WatchedAt: start}
}

// inRing are the devices of the present ring, by their place among all.
func inRing(r rollout.Rollout, all []rollout.Member) (ring []int) {
	for i, m := range all {
		if rollout.Place(m.DeviceID) <= r.Upto {
			ring = append(ring, i)
		}
	}
	return ring
}

func TestRings_GrowWhenTheOneBeforeIsInTouch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ devices, goal, first, second, third int }{
		{1000, 100, 10, 100, 1000}, {1000, 50, 10, 100, 500}, {1000, 10, 10, 100, 100}, {1000, 5, 10, 50, 50},
		{30, 100, 1, 3, 30}, {1, 100, 1, 1, 1},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			t.Parallel()
			all, r, now := fleet(test.devices, start), begun(test.goal), start
			for _, want := range []int{test.first, test.second, test.third} {
				if r.Ring == r.Goal { // there is no third ring
					break
				}
				r, _ = move(r, all, now)
				ring := inRing(r, all)
				if len(ring) != want || r.State != rollout.Running {
					t.Fatalf("%s with %d devices, want %d", r.State, len(ring), want)
				}
				if again, _ := move(r, all, now); again.Ring != r.Ring && all[ring[len(ring)-1]].Code < 2 {
					t.Fatal("it goes on although no device is in touch on the version")
				}
				for _, i := range ring {
					all[i].Code, all[i].Outcome, all[i].BeganAt = 2, rollout.Installed, now
				}
			}
			if r, _ = move(r, all, now); r.State != rollout.Done {
				t.Errorf("it ends %s", r.State)
			}
		})
	}
}

// 95 % of a ring, at least five devices, or all of a smaller one.
func TestRings_NeedMostOfTheRing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ ring, updated, want int }{{1, 0, 1}, {1, 1, 10}, {4, 3, 1}, {4, 4, 10}, {5, 4, 1}, {5, 5, 10},
		{10, 8, 1}, {10, 9, 10}, {100, 94, 1}, {100, 95, 10}} {
		all, r := fleet(test.ring*100, start), begun(100)
		r, _ = move(r, all, start)
		for _, i := range inRing(r, all)[:test.updated] {
			all[i].Code = 2
		}
		if r, _ = move(r, all, start); r.Ring != test.want {
			t.Errorf("%d of %d: %d percent, want %d", test.updated, test.ring, r.Ring, test.want)
		}
	}
}

// Devices in drawers pause nothing and hold nothing up; three that were in touch every
// day do, or 2 % of those that began.
func TestPause_CountsTheLost(t *testing.T) {
	t.Parallel()
	now, ahead := start.Add(30*time.Hour), start.Add(300*24*time.Hour)
	for name, test := range map[string]struct {
		devices, lost int
		change        func(m *rollout.Member)
		adjust        func(r *rollout.Rollout)
		paused        bool
	}{
		"one":                       {devices: 100, lost: 1},
		"two":                       {devices: 100, lost: 2},
		"three":                     {devices: 100, lost: 3, paused: true},
		"three of 200 is below 2 %": {devices: 200, lost: 3},
		"four of 200":               {devices: 200, lost: 4, paused: true},
		"silent for less than a day": {devices: 100, lost: 9, change: func(m *rollout.Member) {
			m.SeenAt = start.Add(7 * time.Hour)
		}},
		"not in touch every day before": {devices: 100, lost: 9, change: func(m *rollout.Member) { m.Daily = false }},
		"not begun":                     {devices: 100, lost: 9, change: func(m *rollout.Member) { m.BeganAt = time.Time{} }},
		"went back": {devices: 100, lost: 3, change: func(m *rollout.Member) {
			m.SeenAt, m.Outcome, m.EndedAt = now, rollout.WentBack, now
		}, paused: true},
		"failed, and in touch": {devices: 100, lost: 9, change: func(m *rollout.Member) {
			m.SeenAt, m.Outcome, m.EndedAt = now, rollout.Failed, now
		}},
		"long after it was in touch": {devices: 100, lost: 9, change: func(m *rollout.Member) {
			m.BeganAt = start.Add(-10 * 24 * time.Hour)
		}},
		"lost before the operator goes on": {devices: 100, lost: 9, change: func(m *rollout.Member) {
			m.BeganAt, m.SeenAt = start.Add(-20*time.Hour), start.Add(-20*time.Hour)
		}, adjust: func(r *rollout.Rollout) {
			r.ResumedAt, r.WatchedFrom = start.Add(5*time.Hour), start.Add(5*time.Hour)
		}},
		"silent when the operator goes on, and a day later": {devices: 100, lost: 9, adjust: func(r *rollout.Rollout) {
			r.ResumedAt, r.WatchedFrom = start.Add(5*time.Hour), start.Add(5*time.Hour)
		}, paused: true},
		"silent after the clock was ahead": {devices: 100, lost: 9, adjust: func(r *rollout.Rollout) {
			r.ResumedAt, r.WatchedFrom, r.WatchedAt = ahead, ahead, ahead
			looked, _ := move(*r, nil, start.Add(2*time.Hour)) // when it was right again
			r.WatchedFrom = looked.WatchedFrom
		}, paused: true},
		"went back, before the operator goes on, while the clock was ahead": {devices: 100, lost: 9, change: func(m *rollout.Member) {
			m.SeenAt, m.Outcome, m.EndedAt = now, rollout.WentBack, ahead
		}},
		"no replica has looked": {devices: 100, lost: 9, adjust: func(r *rollout.Rollout) {
			r.WatchedAt = now.Add(-2 * time.Hour)
		}},
		"a replica looks again for hours": {devices: 100, lost: 9, adjust: func(r *rollout.Rollout) {
			r.WatchedFrom = now.Add(-5 * time.Hour)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, r := fleet(test.devices, now), begun(100)
			r.Ring, r.Upto, r.WatchedAt = 100, 1<<62, now.Add(-time.Minute)
			if test.adjust != nil {
				test.adjust(&r)
			}
			for i := range all {
				all[i].Code, all[i].Outcome, all[i].BeganAt = 2, rollout.Installed, start
				if i < test.lost {
					all[i].Outcome, all[i].SeenAt = rollout.Began, start
					if test.change != nil {
						test.change(&all[i])
					}
				}
			}
			got, p := move(r, all, now)
			if (got.State == rollout.Paused) != test.paused {
				t.Errorf("%s (%s) with %d lost", got.State, got.Reason, len(p.Lost))
			}
			if test.paused && (got.Reason == "" || len(p.Lost) != test.lost) {
				t.Errorf("it names %q", got.Reason)
			}
		})
	}
}

// A ring waits for no device that was away for a week before it began, nor for one that
// its company holds back; it waits for one that began.
func TestRings_WaitForWhomTheyCan(t *testing.T) {
	t.Parallel()
	now := start.Add(8 * 24 * time.Hour)
	for name, test := range map[string]struct {
		change func(m *rollout.Member)
		goesOn bool
	}{
		"in a drawer": {func(m *rollout.Member) { m.SeenAt = start }, true},
		"held back":   {func(m *rollout.Member) { m.Held = true }, true},
		"began":       {func(m *rollout.Member) { m.SeenAt, m.BeganAt, m.Outcome = start, start, rollout.Began }, false},
		"failed":      {func(m *rollout.Member) { m.BeganAt, m.Outcome = start, rollout.Failed }, false},
		"a day away":  {func(m *rollout.Member) { m.SeenAt = now.Add(-25 * time.Hour) }, false},
	} {
		all, r := fleet(300, now), begun(100)
		r, _ = move(r, all, now)
		ring := inRing(r, all)
		for n, i := range ring {
			if n == 0 {
				test.change(&all[i])
			} else {
				all[i].Code = 2
			}
		}
		if got, _ := move(r, all, now); (got.Ring > 1) != test.goesOn || got.State != rollout.Running {
			t.Errorf("%s: %s, %d percent", name, got.State, got.Ring)
		}
	}
}

// A ring of which no device is left, because each was released, held back or away before it began, is taken
// again from those who are there.
func TestRings_RefilledWhenAllAreGone(t *testing.T) {
	t.Parallel()
	now := start.Add(8 * 24 * time.Hour)
	for name, gone := range map[string]func(all []rollout.Member, ring []int) []rollout.Member{
		"held back": func(all []rollout.Member, ring []int) []rollout.Member {
			for _, i := range ring {
				all[i].Held = true
			}
			return all
		},
		"released": func(all []rollout.Member, ring []int) []rollout.Member {
			var left []rollout.Member
			for i, m := range all {
				if !slices.Contains(ring, i) {
					left = append(left, m)
				}
			}
			return left
		},
	} {
		all, r := fleet(60, now), begun(100)
		r, _ = move(r, all, now)
		ring := slices.Clone(inRing(r, all))
		all = gone(all, ring)
		got, _ := move(r, all, now)
		if got.Ring != 1 || got.Upto <= r.Upto || got.State != rollout.Running {
			t.Errorf("%s: ring %d up to %d, %s, want ring 1 beyond %d", name, got.Ring, got.Upto, got.State, r.Upto)
		}
		if again, _ := move(got, all, now); again.Upto != got.Upto {
			t.Errorf("%s: the ring is taken again though it has a device", name)
		}
	}
}
