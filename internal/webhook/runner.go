package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

const (
	// Every is how often a Runner looks, beside being woken.
	Every = time.Second
	// MaxSlots is how many webhooks a replica serves at a time at most.
	MaxSlots = 64
	// graceTime is for how long calls go on once the service stops.
	graceTime = 2 * time.Second
	gone      = 410 // the status with which a receiver ends its webhook
)

// Config is what a Runner needs.
type Config struct {
	Queue  Queue
	Sender *Sender
	Sealer access.Sealer
	// Observer counts calls, by whether the receiver took the event.
	Observer interface{ WebhookCalled(delivered bool) }
	Slots    int // webhooks that are served at a time, each with up to 8 connections; 0: MaxSlots
	Now      func() time.Time
	Log      *slog.Logger
}

// Runner sends what is due. Any number of replicas have one.
type Runner struct {
	Config
	woken chan struct{}
	free  chan struct{} // one for each webhook that may be served
	work  sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool
	// idle has the state of each webhook that had nothing to send.
	idle map[string]idleState
}

// idleState is the version of a webhook and the last event of its company. While both stay,
// a webhook that had nothing to send has nothing to send.
type idleState struct{ version, last int64 }

// NewRunner returns a runner.
func NewRunner(c Config) *Runner {
	return &Runner{Config: c, woken: make(chan struct{}, 1), free: make(chan struct{}, cmp.Or(c.Slots, MaxSlots)), busy: map[string]bool{},
		idle: map[string]idleState{}}
}

// Wake has the runner look at once. It does not block.
func (r *Runner) Wake([]string) { wait.Wake(r.woken) }

// Run works until the context ends, and returns when what was begun has ended.
func (r *Runner) Run(ctx context.Context) error {
	defer r.Wait()
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	return wait.Rounds{Name: "webhooks", Work: r.Round, Ticks: ticker.C, Woken: r.woken, Now: r.Now, Log: r.Log}.Run(ctx)
}

// Wait returns when what the rounds have begun has ended.
func (r *Runner) Wait() { r.work.Wait() }

// Round begins to serve the webhooks for which something is due, each in the background.
func (r *Runner) Round(ctx context.Context) error {
	due, err := r.Queue.DueWebhooks(ctx, r.Now())
	if err != nil {
		return err
	}
	for _, d := range r.pick(due) {
		select {
		case r.free <- struct{}{}:
		default: // the next that ends begins another round
			r.end(d.ID)
			continue
		}
		r.work.Go(func() {
			defer r.Wake(nil)
			defer func() { <-r.free }()
			defer r.end(d.ID)
			defer fault.Rescue(func(panicked error) {
				r.Log.ErrorContext(ctx, "serving a webhook panicked", "webhook", d.ID, "error", panicked)
			})
			if err := r.serve(ctx, d); err != nil && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "cannot serve a webhook", "webhook", d.ID, "error", err)
			}
		})
	}
	return nil
}

// pick returns the webhooks that are to be looked at, and marks them as busy.
func (r *Runner) pick(due []Due) (all []Due) {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle, now := map[string]idleState{}, r.Now()
	for _, d := range due {
		same := idleState{d.Version, d.Last} == r.idle[d.ID]
		if same {
			idle[d.ID] = r.idle[d.ID]
		}
		// What was passed over long ago is looked at again, so that its position is kept.
		passed := d.Position == d.Last || now.Sub(d.MovedAt) < passWithin
		if waits := d.NextAt.After(now) || d.NextAt.IsZero() && passed; same && waits || r.busy[d.ID] {
			continue
		}
		r.busy[d.ID] = true
		all = append(all, d)
	}
	r.idle = idle
	return all
}

func (r *Runner) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, id)
}

// serve sends for one webhook until there is nothing more, or it was long enough.
func (r *Runner) serve(ctx context.Context, d Due) error {
	w := d.Webhook
	next, err := r.load(ctx, w, nil, r.Now())
	if err != nil {
		return err
	}
	if next.empty() {
		return r.noteIdle(ctx, d, next.record.Position)
	}
	claim := resource.NewID()
	if mine, err := r.Queue.ClaimWebhook(ctx, w, claim, r.Now().Add(claimFor)); err != nil || !mine {
		return err
	}
	keys, err := w.secrets(r.Sealer, r.Now())
	if err != nil {
		r.Log.WarnContext(ctx, "cannot open the secret of a webhook", "webhook", w.ID, "error", err)
	}
	calls, stop := withGrace(ctx)
	t := claimed{Runner: r, webhook: w, claim: claim, begun: r.Now(),
		flights: &flights{call: func(s send) result { return r.call(calls, w, s, keys) }, keys: map[string]bool{},
			ended: make(chan flight, waveSize)}}
	defer t.flights.running.Wait()
	defer stop()
	return t.run(ctx, next)
}

// noteIdle notes that a webhook has nothing to send up to a position. It saves the position
// after passAfter events or passWithin.
func (r *Runner) noteIdle(ctx context.Context, d Due, position int64) error {
	r.mu.Lock()
	r.idle[d.ID] = idleState{d.Version, d.Last}
	r.mu.Unlock()
	if position-d.Position < passAfter && (position == d.Position || r.Now().Sub(d.MovedAt) < passWithin) {
		return nil
	}
	return r.Queue.PassEvents(ctx, d.Webhook, position)
}

// withGrace returns a context that ends graceTime after ctx, or with stop.
func withGrace(ctx context.Context) (longer context.Context, stop func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(graceTime, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		unwatch()
		cancel()
	}
}
