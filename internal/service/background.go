package service

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/proposal"
)

// How often background work looks.
const (
	sweepInterval      = 2 * time.Second
	reconcileInterval  = 2 * time.Second
	figuresInterval    = 15 * time.Second
	expiryInterval     = 5 * time.Minute
	inactivityInterval = time.Minute
	sealInterval       = 2 * time.Second
	inspectInterval    = time.Minute
	forgetInterval     = time.Hour
	noteInterval       = time.Hour
)

// background lists what runs beside the requests.
func (w *wiring) background() {
	proposals := &proposal.Reconciler{Store: w.db, Policies: w.db, Companies: w.db, Publisher: w.platform, Log: w.options.Logger}
	w.loops = []Loop{
		w.every("presence", database.PresentEvery, w.present),
		w.every("command sweeper", sweepInterval, w.commands.Sweep),
		w.every("stopped commands", sweepInterval, w.commands.CancelStopped),
		w.every("loosened controls", sweepInterval, w.db.ApplyLoosenings),
		w.every("database sweeper", expiryInterval, w.db.Sweep),
		w.every("inactivity", inactivityInterval, func(ctx context.Context) error {
			_, err := w.enrollments.SweepInactive(ctx)
			return err
		}),
		w.every("agent sweeper", agentserver.SweepEvery, w.link.Sweep),
		w.every("proposal reconciler", reconcileInterval, proposals.Settle),
		w.every("policy figures", figuresInterval, func(ctx context.Context) error {
			waiting, failing, err := w.db.PoliciesBehind(ctx)
			if err == nil {
				w.metrics.PoliciesBehind(waiting, failing)
			}
			return err
		}),
		w.every("activity chain", sealInterval, w.records.Seal),
		w.every("activity heads", inspectInterval, w.records.Inspect),
		w.every("activity head log", noteInterval, w.records.Note),
		w.every("activity retention", forgetInterval, w.records.Forget),
		{Name: "platform", Run: w.platform.Run},
	}
}

// every is a loop that works at once and then at intervals. A failure is
// logged and the next round tries again.
func (s *Service) every(name string, interval time.Duration, work func(context.Context) error) Loop {
	return Loop{Name: name, Run: func(ctx context.Context) error {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			if err := work(ctx); err != nil && ctx.Err() == nil {
				s.options.Logger.WarnContext(ctx, "background work failed and is tried again", "loop", name, "error", err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
		}
	}}
}
