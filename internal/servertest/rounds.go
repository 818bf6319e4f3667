package servertest

import (
	"sync"
	"testing"
	"time"
)

// Rounds has the background work of a service happen when a test says so, and what is to
// happen every few seconds also by itself. The zero value is ready.
type Rounds struct {
	mu    sync.Mutex
	loops map[chan time.Time]bool
}

// Ticker is service.Options.Ticker.
func (r *Rounds) Ticker(interval time.Duration) (<-chan time.Time, func()) {
	const often = 15 * time.Second
	ticks, done := make(chan time.Time), make(chan struct{})
	r.mu.Lock()
	if r.loops == nil {
		r.loops = map[chan time.Time]bool{}
	}
	r.loops[ticks] = true
	r.mu.Unlock()
	if interval <= often {
		go func() {
			real := time.NewTicker(interval)
			defer real.Stop()
			for {
				select {
				case now := <-real.C:
					select {
					case ticks <- now:
					case <-done:
						return
					}
				case <-done:
					return
				}
			}
		}()
	}
	return ticks, sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.loops, ticks)
		r.mu.Unlock()
		close(done)
	})
}

// All has each loop work once, and waits until it has: a loop that takes a second tick has
// ended what the first began.
func (r *Rounds) All(tb testing.TB) {
	tb.Helper()
	r.mu.Lock()
	loops := make([]chan time.Time, 0, len(r.loops))
	for ticks := range r.loops {
		loops = append(loops, ticks)
	}
	r.mu.Unlock()
	for range 2 {
		for _, ticks := range loops {
			select {
			case ticks <- time.Time{}:
			case <-time.After(time.Minute):
				tb.Fatal("a background loop does not end a round within a minute")
			}
		}
	}
}
