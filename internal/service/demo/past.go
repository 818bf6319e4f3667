package demo

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// daysOfHistory is how long the demo's company has been in use when it is first shown.
const daysOfHistory = 30

// past is a clock behind another. It is moved on until it has caught up.
type past struct {
	now    func() time.Time
	behind atomic.Int64
}

// Now is the time by the clock.
func (p *past) Now() time.Time { return p.now().Add(-time.Duration(p.behind.Load())) }

// until moves the clock on to a time. It never goes back, and never ahead of the other.
func (p *past) until(t time.Time) {
	if d := t.Sub(p.Now()); d > 0 {
		p.behind.Store(max(0, p.behind.Load()-int64(d)))
	}
}

// isNew reports whether the demo's directory holds no company yet.
func (d *Demo) isNew() (bool, error) {
	_, err := os.Stat(filepath.Join(d.settings.Data, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// livePast brings up the emulator and the service with a clock that is behind, has the
// company use them for a month, and ends them. What is done is done by the same
// operations, and is recorded in the same way, as whatever comes after it.
func (d *Demo) livePast(ctx context.Context) error {
	clock := &past{now: d.now}
	clock.behind.Store(int64(daysOfHistory * 24 * time.Hour))
	before := &Demo{settings: d.settings, now: clock.Now, log: slog.New(slog.DiscardHandler), out: d.out, past: clock}
	before.settings.History = false
	return before.run(ctx)
}
