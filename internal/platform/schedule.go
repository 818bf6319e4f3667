package platform

import (
	"cmp"
	"time"
)

// Schedule is how often background work looks. Zero members have defaults.
type Schedule struct {
	// Push is how often policies that are behind are looked for.
	Push time.Duration
}

func (s *Schedule) complete() {
	s.Push = cmp.Or(s.Push, time.Second)
}
