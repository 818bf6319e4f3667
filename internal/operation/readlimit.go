package operation

import (
	"sync"
	"time"
)

// ceiling is the limit of reads that protects the server. It counts on this
// replica alone and forgets everything at a restart: it is no contract, so it
// costs no round trip.
type ceiling struct {
	limit int

	mu      sync.Mutex
	windows map[string]window
}

type window struct {
	used   int
	closes time.Time
}

// maxWindows bounds the callers that are counted at the same time. One more
// takes the place of an arbitrary other, who then begins afresh.
const maxWindows = 10_000

// count counts one read and reports whether it is within the limit, else how
// long to wait.
func (c *ceiling) count(key string, now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.windows[key]
	if !now.Before(w.closes) {
		w = window{closes: now.Add(time.Minute)}
	}
	if w.used >= c.limit {
		return w.closes.Sub(now), false
	}
	if !known && len(c.windows) >= maxWindows {
		c.makeRoom(now)
	}
	w.used++
	c.windows[key] = w
	return 0, true
}

// peek reports whether another read would be within the limit, else how long to wait.
func (c *ceiling) peek(key string, now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[key]
	return w.closes.Sub(now), w.used < c.limit || !now.Before(w.closes)
}

// makeRoom drops every window that has closed, and arbitrary others if that is
// not enough, so that the next callers do not search again.
func (c *ceiling) makeRoom(now time.Time) {
	for key, w := range c.windows {
		if !now.Before(w.closes) {
			delete(c.windows, key)
		}
	}
	for key := range c.windows {
		if len(c.windows) < maxWindows*9/10 {
			return
		}
		delete(c.windows, key)
	}
}
