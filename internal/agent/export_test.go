package agent

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// ApplyTo applies one setting to a device and reads it back, as converging does.
func ApplyTo(ctx context.Context, d Device, id, value string) protocol.SettingReport {
	return (&Agent{options: Options{Device: d}}).apply(ctx, id, value)
}

// WaitUnderGuard is how long an agent waits instead of d while what it changed
// is under guard until a time, in Unix milliseconds.
func WaitUnderGuard(d time.Duration, until int64, now func() time.Time) time.Duration {
	return (&Agent{options: Options{Now: now}, applied: applied{Guard: &guard{Until: until}}}).guarded(d)
}

// Connectivity are the settings under the lock-out guard.
func Connectivity() []string { return connectivity[:] }

// KeepReserve and WithReserve are the room that an agent holds back.
func KeepReserve(dir string) { keepReserve(dir) }

// WithReserve tries a write that failed again, in the place of the reserve.
func WithReserve(dir string, write func() error) error { return withReserve(dir, write) }

// Settled reports whether what a device shows is what was asked for.
func Settled(want, got string) bool { return settled(want, got) }

// Compact rewrites the journal, and from then on makes its directory durable by sync.
func (j *Journal) Compact(sync func(dir string) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.syncDir = sync
	j.compact()
}
