package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// How the agent behaves when it cannot reach the service.
const (
	// supersededRetry is how long it waits where only a person can change something.
	supersededRetry = 15 * time.Minute
	// goneRetry is how long it waits when the service says that the device has
	// ended. A check-in learns, signed, whether that is so.
	goneRetry = time.Minute
	// trialPause is the longest pause of a new version on trial: it has little time to prove itself.
	trialPause = 30 * time.Second
	// wakeSilence is how long the stream may be silent: the service comments on
	// it at least every minute.
	wakeSilence = 3 * time.Minute
)

// Run keeps the device in touch until ctx ends or the service lets it go
// (ErrEnded). It checks in when woken and at the intervals that the service
// sets; a lost wake-up costs time, nothing else. It listens for wake-ups once it
// has checked in for the first time: two requests at the same moment may arrive in
// the other order, and the service refuses the one with the lower number.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer a.working.Wait()
	defer cancel()
	a.gate.on = true
	a.options.Log.InfoContext(ctx, "agent started", "version", a.options.Version)
	network, longest := a.network(), maxNext
	if a.options.Trial {
		longest = trialPause
	}
	for first := true; ; first = false {
		next, err := a.Once(ctx)
		if first && !errors.Is(err, ErrEnded) {
			listening.Go(func() { a.listen(ctx) })
		}
		switch {
		case errors.Is(err, ErrEnded) || errors.Is(err, ErrRestart) || ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case err != nil:
			next = min(a.guarded(a.pace.failed(a.options.Now(), err, false), false), longest)
			hint(a.touched) // the service may have answered it nevertheless
			a.options.Log.WarnContext(ctx, "cannot check in", "retryIn", next, "error", err)
			a.pause(ctx, next, a.woken, &network)
		case a.options.Trial && a.updates.now.Stage != began: // that it is in touch is written down
			return ErrProved
		default:
			a.pace.answered()
			hint(a.touched)
			a.wait(ctx, a.guarded(jitter(min(next, longest)), true), a.woken)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// guarded is a wait under the lock-out guard. After a check-in that was answered it ends when
// the next one tells whether the device is still in touch, else when the guard's time is over, unless it
// is over already: a device that its policy cut off comes back then, and not when it happens to try again.
func (a *Agent) guarded(d time.Duration, answered bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.applied.Guard
	if g == nil {
		return d
	}
	left := g.Until - a.after(0)
	if answered {
		left = max(0, g.tells()-a.after(0))
	} else if left <= 0 {
		return d
	}
	return min(d, time.Duration(left)*time.Millisecond)
}

// wait returns false when ctx has ended.
func (a *Agent) wait(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	if a.options.Pace > 0 {
		d = time.Duration(float64(d) / a.options.Pace)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-woken:
	}
	return true
}

// lookEvery is how often a pause looks whether the device has changed its network.
const lookEvery = 5 * time.Second

// network is the one that the device is on; empty if that is not known.
func (a *Agent) network() string {
	if a.options.Network == nil {
		return ""
	}
	return a.options.Network()
}

// pause is wait after a failure: it ends early when the device is on another network than last, which it keeps.
func (a *Agent) pause(ctx context.Context, d time.Duration, woken <-chan struct{}, last *string) {
	if a.options.Network == nil {
		a.wait(ctx, d, woken)
		return
	}
	looking, stop := context.WithCancel(ctx)
	now := *last
	var looks sync.WaitGroup
	looks.Go(func() {
		for now == *last && a.wait(looking, lookEvery, nil) {
			now = a.options.Network()
		}
		stop()
	})
	a.wait(looking, d, woken)
	stop()
	looks.Wait()
	if now != *last {
		a.pace.moved()
		*last = now
	}
}

// jitter moves a wait by up to a fifth, so that a fleet does not come back at
// one moment.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
}

// listen keeps the wake stream open, or listens to push, and turns each hint
// into a check-in. Without wake-ups a command takes up to a quarter of an hour, so
// the log has one warning; the next comes after a stream has held for that long.
func (a *Agent) listen(ctx context.Context) {
	source := a.stream
	if a.options.Push != nil {
		source = a.pushed
	}
	warned, network := false, a.network()
	for failures := 0; a.awaitTouch(ctx); {
		began := a.options.Now()
		opened, err := source(ctx)
		if ctx.Err() != nil {
			return
		}
		if opened {
			failures = 0
			warned = warned && a.options.Now().Sub(began) < lastPause
		}
		next := a.afterStream(failures, err)
		failures++
		level := slog.LevelDebug
		if next > 0 && !warned {
			level, warned = slog.LevelWarn, true
		}
		a.options.Log.Log(ctx, level, "wake stream interrupted", "retryIn", next, "error", err)
		a.pause(ctx, next, nil, &network)
	}
}

// afterStream is how long to wait before the next stream. A refusal is treated as
// that of a check-in: clock and sequence are corrected at once, and what ends the
// relation is left to a check-in, which is also refused.
func (a *Agent) afterStream(failures int, err error) time.Duration {
	refused, ok := errors.AsType[*refusal](err)
	if ok && failures < 2 && a.link.correct(refused) {
		return 0
	}
	next := a.pace.failed(a.options.Now(), err, true)
	if ok && refused.Answer.Code == protocol.Ended {
		a.Hint()
		next = max(next, goneRetry)
	}
	return next
}

// awaitTouch returns once the latest check-in was answered: while the service is out
// of reach one thing alone tries, and the stream takes its connection. It returns
// false when ctx has ended.
func (a *Agent) awaitTouch(ctx context.Context) bool {
	for ctx.Err() == nil && !a.pace.inTouch() {
		select {
		case <-ctx.Done():
		case <-a.touched:
		}
	}
	return ctx.Err() == nil
}

// stream reads the wake stream until it ends or falls silent. It reports whether
// the service opened it.
func (a *Agent) stream(ctx context.Context) (opened bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(wakeSilence, cancel)
	defer silence.Stop()
	response, _, err := a.link.send(ctx, http.MethodGet, "/wake", nil,
		http.Header{"Accept": {"text/event-stream"}, protocol.HeaderWake: {protocol.WakeCommands}})
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	held := time.AfterFunc(holdTime, a.pace.held)
	defer held.Stop()
	return true, readEvents(response.Body, func(e wakeEvent) {
		silence.Reset(wakeSilence)
		switch {
		case e.command != nil:
			a.offered(*e.command)
		case e.hint:
			a.Hint()
		}
	})
}

func hint(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default: // a check-in is due already
	}
}

// Order is what another process asks of the agent that runs: only one process at
// a time may change what is in the state directory.
type Order string

// The orders.
const (
	RotateKey  Order = "rotate"
	SayGoodBye Order = "unenroll"
)

const orderFile = "order"

// Leave leaves an order in the state directory of an enrolled device. The agent
// carries it out before its next check-in.
func (o Order) Leave(dir string) error {
	s := store{dir}
	if _, err := s.identity(); err != nil {
		return err
	}
	return writeFile(s.path(orderFile), []byte(o))
}

// obey carries out the order that was left. The order goes once a crash can no
// longer lose it.
func (a *Agent) obey(ctx context.Context) error {
	text, err := os.ReadFile(a.store.path(orderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	switch Order(text) {
	case SayGoodBye:
		if err := a.unenroll(ctx); err != nil {
			return err
		}
		return ErrEnded
	case RotateKey:
		if _, err := a.link.nextKey(); err != nil { // on disk: rotation goes on from there
			return err
		}
	default:
		a.options.Log.WarnContext(ctx, "unknown order dropped", "order", string(text))
	}
	return a.store.remove(orderFile)
}
