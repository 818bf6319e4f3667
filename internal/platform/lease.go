package platform

import (
	"context"
	"log/slog"
	"time"
)

// release gives a lease back; one that cannot be given back runs out.
func (p *Platform) release(ctx context.Context, name, holder string) {
	if err := p.store.Leases.Release(context.WithoutCancel(ctx), name, holder); err != nil {
		p.log.WarnContext(ctx, "cannot give back a lease", slog.String("lease", name), slog.Any("error", err))
	}
}

// sendLimit bounds everything that one order may need: at most three calls.
const sendLimit = 40 * time.Second

// detached returns a context that outlives the caller, but not the caller's
// deadline, nor sendLimit.
func (p *Platform) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	free := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		bounded, cancel := context.WithDeadline(free, deadline)
		limited, cancelToo := context.WithTimeout(bounded, sendLimit)
		return limited, func() { cancelToo(); cancel() }
	}
	return context.WithTimeout(free, sendLimit)
}
