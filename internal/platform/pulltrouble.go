package platform

import (
	"github.com/musterhq/muster/internal/outcome"

	"context"
	"log/slog"
	"sync"
	"time"
)

// remindAfter is how often pulls that go on failing in the same way are told.
const remindAfter = 15 * time.Minute

// pullTrouble reports failing pulls: once for all pullers, not at each try,
// then again when the reason is another, and now and then.
type pullTrouble struct {
	mu    sync.Mutex
	why   string    // told last; empty: pulls succeed
	since time.Time // of the first failure
	told  time.Time
}

func (t *pullTrouble) failed(ctx context.Context, log *slog.Logger, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == "" {
		t.since = now
	}
	if t.why == err.Error() && now.Sub(t.told) < remindAfter {
		return
	}
	t.why, t.told = err.Error(), now
	level := slog.LevelWarn
	if codeOf(err) == outcome.Denied { // waiting does not help
		level = slog.LevelError
	}
	log.LogAttrs(ctx, level, "cannot pull the platform's notifications", slog.Any("error", err), slog.Time("since", t.since))
}

func (t *pullTrouble) ended(ctx context.Context, log *slog.Logger, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == "" {
		return
	}
	t.why = ""
	log.InfoContext(ctx, "the platform's notifications are pulled again", slog.Duration("after", now.Sub(t.since)))
}
