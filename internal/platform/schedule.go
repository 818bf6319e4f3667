package platform

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/wait"
)

// Schedule is how often background work looks. Zero members have defaults.
type Schedule struct {
	// Push is how often policies that are behind are looked for.
	Push time.Duration
	// Commands is how often commands to ask after are looked for.
	Commands time.Duration
	// FirstPoll is how old a command is when the vendor is first asked for its
	// outcome; Polls are the times between one question and the next, the last
	// of them forever.
	FirstPoll time.Duration
	Polls     []time.Duration
	// Devices is how often an enterprise's devices are listed.
	Devices time.Duration
	// Enterprises is how often the project's enterprises are listed: one query for
	// each hundred of them.
	Enterprises time.Duration
}

func (s *Schedule) complete() {
	s.Push = cmp.Or(s.Push, time.Second)
	s.Commands = cmp.Or(s.Commands, 10*time.Second)
	s.FirstPoll = cmp.Or(s.FirstPoll, 2*time.Minute)
	s.Devices = cmp.Or(s.Devices, 30*time.Minute)
	s.Enterprises = cmp.Or(s.Enterprises, 30*time.Second)
	if len(s.Polls) == 0 {
		s.Polls = []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour}
	}
}

// after is how long to wait until the next poll of a command, by its age: the
// number of polls before follows from it, and need not be kept.
func (s *Schedule) after(age time.Duration) time.Duration {
	due := s.FirstPoll
	for _, wait := range s.Polls {
		if due += wait; age < due {
			return wait
		}
	}
	return s.Polls[len(s.Polls)-1]
}

// Run does all background work until the context ends, and waits for it:
// Notifications, Pushes, Operations, Inventories and Enterprises. Without a way to
// the platform it does nothing.
func (p *Platform) Run(ctx context.Context) error {
	if !p.cfg.configured() {
		<-ctx.Done()
		return nil
	}
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{p.Notifications, p.Pushes, p.Operations, p.Inventories, p.Enterprises} {
		all.Go(func() { _ = run(ctx) }) // it ends with the context alone
	}
	all.Wait()
	return nil
}

// every does work now and then again after each pause, until the context ends.
// Trouble is logged; the next round tries again.
func (p *Platform) every(ctx context.Context, pause time.Duration, what string, work func(context.Context) error) error {
	var trouble wait.Trouble
	for {
		err := work(ctx)
		if err == nil {
			trouble.Ended(p.now())
		} else if _, tell := trouble.Failed(err, p.now()); tell && ctx.Err() == nil {
			level := slog.LevelWarn
			if codeOf(err) == outcome.NotSent {
				level = slog.LevelDebug // the quota, or the network: every call says so
			}
			p.log.Log(ctx, level, "background work on the platform failed and is repeated", "work", what, "error", err)
		}
		if !wait.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

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
