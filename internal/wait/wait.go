// Package wait waits until a time has passed or a context has ended, does work again and again, and wakes who does it.
package wait

import (
	"context"
	"time"
)

// For waits for d. It returns false if ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Wake sends to a buffered channel unless it is full: what waits in it wakes the receiver as well. It never blocks.
func Wake(signals chan<- struct{}) {
	select {
	case signals <- struct{}{}:
	default:
	}
}
