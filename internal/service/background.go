package service

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/service/mail"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/wait"
	"github.com/musterhq/muster/internal/webhook"
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
	dueInterval        = 5 * time.Second
	outageInterval     = 15 * time.Second
)

// background lists what runs beside the requests.
func (w *wiring) background() {
	proposals := &proposal.Reconciler{Store: w.db, Policies: w.db, Companies: w.db, Publisher: w.platform, Now: w.db.Now,
		Log: w.options.Logger}
	w.loops = []Loop{
		w.every("presence", database.PresentEvery, w.reportPresence),
		w.every("command sweeper", sweepInterval, w.commands.Sweep),
		w.every("stopped commands", sweepInterval, w.commands.CancelStopped),
		w.every("loosened controls", sweepInterval, w.db.ApplyLoosenings),
		w.every("database sweeper", expiryInterval, w.aged(w.db.Sweep)),
		w.every("deletions of companies", expiryInterval, w.db.FinishDeletions),
		w.every("retention", expiryInterval, w.aged(w.db.Retain)),
		w.every("inactivity", inactivityInterval, func(ctx context.Context) error {
			_, err := w.enrollments.SweepInactive(ctx)
			return err
		}),
		w.every("agent sweeper", agentserver.SweepEvery, w.link.Sweep),
		w.every("agent rollouts", rollout.WatchEvery, rollout.Watcher{Store: w.db, Now: w.db.Now, Log: w.options.Logger}.Watch),
		{Name: "events", Run: w.db.NumberEvents},
		{Name: "event waiters", Run: w.feed.Watch},
		w.every("events due", dueInterval, w.db.TellDue),
		w.every("platform outage", outageInterval, w.outages.Look),
		w.every("proposal reconciler", reconcileInterval, proposals.Settle),
		w.every("policy figures", figuresInterval, func(ctx context.Context) error {
			waiting, failing, err := w.db.PoliciesBehind(ctx)
			if err == nil {
				w.metrics.PoliciesBehind(waiting, failing)
			}
			return err
		}),
		w.every("operator figures", figuresInterval, w.operatorFigures),
		w.every("activity chain", sealInterval, w.records.Seal),
		w.every("activity heads", inspectInterval, w.records.Inspect),
		w.every("activity head log", noteInterval, w.records.Note),
		w.every("activity retention", forgetInterval, w.aged(w.records.Forget)),
		{Name: "platform", Run: w.platform.Run},
		w.every("enrollment codes", provisioning.DropEvery, provisioning.Dropper{Codes: w.db, Issuer: w.platform, Now: w.db.Now,
			Log: w.options.Logger}.Round),
		{Name: "jobs", Run: job.NewRunner(job.Config{Queue: w.db, Operations: w.jobs.Operations, Now: w.db.Now, Log: w.options.Logger,
			Stands: w.db.PermitStands}).Run},
		w.webhookLoop(),
	}
	if settings, err := w.config.Mail(); err == nil && settings.On() {
		sender := &mail.Sender{Client: mail.Client{Config: settings}, Store: w.db, Leases: w.db, Holder: resource.NewID(),
			Open: w.keys.Open, PublicURL: w.public, Observer: w.metrics, Now: w.db.Now, Log: w.options.Logger}
		rounds := w.every("mail", mail.Every, sender.Round)
		w.loops = append(w.loops, Loop{Name: rounds.Name, Run: func(ctx context.Context) error {
			defer sender.Leave(ctx)
			return rounds.Run(ctx)
		}})
	}
	if w.isLarge() {
		w.loops = append(w.loops, Loop{Name: "integrity", Run: w.checkDatabase})
	}
}

// aged is work that removes what is old at a time.
func (w *wiring) aged(work func(ctx context.Context, asOf time.Time) error) func(context.Context) error {
	return func(ctx context.Context) error {
		asOf, err := w.db.AgedBy(ctx)
		if err != nil {
			return err
		}
		return work(ctx, asOf)
	}
}

// operatorFigures notes what the operator is to look after.
func (w *wiring) operatorFigures(ctx context.Context) error {
	troubles, err := w.db.EnterpriseTroubles(ctx)
	if err != nil {
		return err
	}
	made, err := w.db.BackedUp(ctx)
	if err != nil {
		return err
	}
	disabled, failing, err := w.db.WebhookFigures(ctx)
	if err != nil {
		return err
	}
	rollouts, err := w.db.Rollouts(ctx)
	if err != nil {
		return err
	}
	all := len(rollouts)
	w.metrics.RolloutsPaused(all - len(slices.DeleteFunc(rollouts, rollout.Rollout.PausedItself)))
	w.metrics.Webhooks(disabled, failing)
	w.metrics.EnterprisesLost(lostOf(troubles))
	w.metrics.BackedUp(made)
	return nil
}

// lostOf counts the enterprises that the platform does not have.
func lostOf(troubles map[string]company.Trouble) (n int) {
	for _, trouble := range troubles {
		if !trouble.LostSince.IsZero() {
			n++
		}
	}
	return n
}

// every is a loop that works at once and then at intervals.
func (s *Service) every(name string, interval time.Duration, work func(context.Context) error) Loop {
	return Loop{Name: name, Run: func(ctx context.Context) error {
		ticks, stop := s.ticker(interval)
		defer stop()
		return wait.Rounds{Name: name, Work: work, Ticks: ticks, Now: s.options.Now, Log: s.options.Logger}.Run(ctx)
	}}
}

func (s *Service) ticker(interval time.Duration) (ticks <-chan time.Time, stop func()) {
	if s.options.Ticker != nil {
		return s.options.Ticker(interval)
	}
	t := time.NewTicker(interval)
	return t.C, t.Stop
}

// Maintenance implements cli.Maintenance.
type Maintenance struct{ Log *slog.Logger }

// Migrate implements cli.Maintenance.
func (k Maintenance) Migrate(env *cli.Env, store config.Store) (done cli.Migrated, err error) {
	found, err := database.Inspect(env.Context, store.Database)
	if err != nil {
		return done, err
	}
	db, err := database.Open(env.Context, database.Options{URL: store.Database, Now: env.Now, Schema: database.Upgrade, Logger: k.Log})
	if err != nil {
		return done, err
	}
	done = cli.Migrated{From: found.Schema, To: max(found.Schema, database.SchemaNumber())}
	if found.Schema <= database.SchemaNumber() { // a newer program may count otherwise
		done.Corrected, err = db.Recount(env.Context)
	}
	return done, cmp.Or(err, db.Close())
}

// Restore implements cli.Maintenance.
func (k Maintenance) Restore(env *cli.Env, settings config.Service, file string) (done cli.Restored, err error) {
	path, _ := settings.SQLitePath()
	prepared, err := database.PrepareRestore(env.Context, path, file)
	if err != nil {
		return done, err
	}
	defer func() { _ = prepared.Discard() }()
	if err := prepared.Found.Check(database.Upgrade); err != nil {
		return done, err
	}
	keys, err := k.keysOf(settings, prepared.Found)
	if err != nil {
		return done, err
	}
	if err := keys.Belong(prepared.Found); err != nil {
		if !settings.AcceptLostKeys {
			return done, keyFileError(settings.KeyFile, err)
		}
		k.Log.WarnContext(env.Context, "lost keys accepted", "reason", err.Error(), "file", settings.KeyFile)
	}
	aside, err := prepared.Commit(env.Context, env.Now())
	return cli.Restored{Path: path, Aside: aside, Schema: prepared.Found.Schema, Own: database.SchemaNumber()}, err
}

// keysOf reads the key file, which a database that needs no keys may lack.
func (k Maintenance) keysOf(settings config.Service, found database.Inspection) (*ops.Keys, error) {
	keys, err := ops.LoadKeys(settings.KeyFile)
	if err != nil && ((&ops.Keys{}).Belong(found) == nil || settings.AcceptLostKeys) {
		return &ops.Keys{}, nil
	}
	return keys, err
}

// Copy implements cli.Maintenance.
func (k Maintenance) Copy(env *cli.Env, from, to config.Store) (done cli.Copied, err error) {
	tables, err := database.Copy(env.Context, database.Options{URL: from.Database, Now: env.Now, Logger: k.Log}, to.Database)
	for _, t := range tables {
		done.Rows += t.Rows
		done.Tables = append(done.Tables, cli.CopiedTable(t))
	}
	return done, err
}

// webhookService is what administrators do with webhooks, in the portal and on the command
// line.
func webhookService(db *database.DB, sealer access.Sealer, networks []netip.Prefix, now func() time.Time) webhook.Service {
	return webhook.Service{Store: db, Sealer: sealer, Sender: webhook.NewSender(networks, nil), Networks: networks, Now: now}
}

// webhookLoop sends events to webhooks. It is woken when events got their positions.
func (w *wiring) webhookLoop() Loop {
	runner := webhook.NewRunner(webhook.Config{Queue: w.db, Sender: w.webhooks.Sender, Sealer: w.keys, Observer: w.metrics,
		Slots: w.shares.Webhooks(), Now: w.db.Now, Log: w.options.Logger})
	w.listen(event.Topic, runner.Wake)
	return Loop{Name: "webhooks", Run: runner.Run}
}
