// Package poll waits for what a test can only look at: another process, a browser,
// or a whole service with goroutines of its own. Tests of one package do not need it:
// they use testing/synctest, a channel or a hook.
package poll

import (
	"testing"
	"time"
)

// Patience is how long Until waits. It is for a busy machine; a test that passes
// waits no longer than it must.
const Patience = 45 * time.Second

// The first pause is short, because most things have happened by then. Later pauses
// are longer, because a look may be a request, and requests are limited.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Until waits until check returns nil, and fails the test with its last error if it
// does not within Patience.
func Until(tb testing.TB, what string, check func() error) {
	tb.Helper()
	if err := For(Patience, check); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// For waits until check returns nil, and returns its last error if it does not in time.
func For(patience time.Duration, check func() error) error {
	pause, deadline := firstPause, time.Now().Add(patience)
	for {
		err := check()
		if err == nil || !time.Now().Before(deadline) {
			return err
		}
		time.Sleep(pause)
		pause = min(2*pause, lastPause)
	}
}

// Pause passes a time in which another process works, or in which something happens
// that must not. No result depends on its length: a shorter one finds less.
func Pause(d time.Duration) { time.Sleep(d) }
