package fleetsim

import (
	"math"
	"sync/atomic"
	"time"
)

// spread counts durations in buckets, each 5 % wider than the one before, from a microsecond to
// five minutes: a run of any length takes the same memory. The zero value is empty. It may be
// used concurrently.
type spread struct {
	buckets [buckets]atomic.Int64
}

const (
	buckets = 400
	growth  = 1.05
)

func (s *spread) add(d time.Duration) {
	at := int(math.Log(float64(max(1, d.Microseconds()))) / math.Log(growth))
	s.buckets[min(at, buckets-1)].Add(1)
}

// latency returns the percentiles, which are at most 5 % too high.
func (s *spread) latency() Latency {
	var counts [buckets]int64
	var l Latency
	for i := range s.buckets {
		counts[i] = s.buckets[i].Load()
		l.Count += int(counts[i])
	}
	at := func(share float64) float64 {
		left := int64(math.Ceil(share * float64(l.Count)))
		for i, n := range counts {
			if left -= n; left <= 0 {
				return math.Pow(growth, float64(i+1)) / 1000
			}
		}
		return 0
	}
	if l.Count > 0 {
		l.P50, l.P99 = at(0.50), at(0.99)
	}
	return l
}
