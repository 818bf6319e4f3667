package access

import "time"

// ClockStep is how far the clock may be set back before times count as those of a clock that was ahead. Replicas' clocks may
// be as far apart.
const ClockStep = time.Minute

// Holds reports whether what began at since and lasts for life holds at now. What began while the clock was ahead does not:
// it would hold for as much longer.
func Holds(since time.Time, life time.Duration, now time.Time) bool {
	return !since.After(now.Add(ClockStep)) && now.Before(since.Add(life))
}
