package agent

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

// How the agent behaves when it cannot reach the service.
const (
	firstBackoff = time.Second
	lastBackoff  = 15 * time.Minute
	// wakeRetry is how long it waits before it opens the wake stream again.
	wakeRetry = 5 * time.Second
	// goneRetry is how long it waits when the service says that the device has
	// ended. A check-in learns, signed, whether that is so.
	goneRetry = time.Minute
	// wakeSilence is how long the stream may be silent: the service comments on
	// it at least every minute.
	wakeSilence = 3 * time.Minute
)

// Run keeps the device in touch until ctx ends or the service lets it go
// (ErrEnded). It checks in when woken and at the intervals that the service
// sets; a lost wake-up costs time, nothing else.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	woken := make(chan struct{}, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.listen(ctx, woken)
	}()
	defer func() {
		cancel()
		<-stopped
	}()
	for failures := 0; ; {
		next, err := a.Once(ctx)
		switch {
		case errors.Is(err, ErrEnded) || ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case err != nil:
			next = a.guarded(backoff(failures, err))
			failures++
			a.options.Log.WarnContext(ctx, "cannot check in", "retryIn", next, "error", err)
		default:
			failures = 0
			next = jitter(next)
		}
		if !a.wait(ctx, next, woken) {
			return context.Cause(ctx)
		}
	}
}

// guarded is a wait that ends when the lock-out guard's time does: a device that
// its policy cut off comes back then, and not when it happens to try again.
func (a *Agent) guarded(d time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied.Guard == nil {
		return d
	}
	left := a.applied.Guard.Until - a.options.Now().UnixMilli()
	return min(d, time.Duration(max(0, left))*time.Millisecond)
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

// backoff is the wait after a failure: what the service asked for, else
// anything up to a limit that doubles.
func backoff(failures int, err error) time.Duration {
	var r *refusal
	if errors.As(err, &r) && r.RetryAfter > 0 {
		return jitter(min(r.RetryAfter, lastBackoff))
	}
	if errors.Is(err, ErrSuperseded) {
		return jitter(lastBackoff) // only a person can change that
	}
	limit := min(firstBackoff<<min(failures, 20), lastBackoff)
	return firstBackoff/2 + rand.N(limit)
}

// jitter moves a wait by up to a fifth, so that a fleet does not come back at
// one moment.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
}

// listen keeps the wake stream open, or listens to push, and turns each hint
// into a check-in.
func (a *Agent) listen(ctx context.Context, woken chan<- struct{}) {
	source := a.stream
	if a.options.Push != nil {
		source = a.pushed
	}
	for ctx.Err() == nil {
		pause := wakeRetry
		if err := source(ctx, woken); err != nil && ctx.Err() == nil {
			a.options.Log.DebugContext(ctx, "wake-ups ended", "error", err)
			var r *refusal
			if errors.As(err, &r) && r.Answer.Error == agentproto.Ended {
				pause = goneRetry
			}
		}
		a.wait(ctx, jitter(pause), nil)
	}
}

// stream reads the wake stream until it ends or falls silent.
func (a *Agent) stream(ctx context.Context, woken chan<- struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(wakeSilence, cancel)
	defer silence.Stop()
	response, err := a.link.send(ctx, http.MethodGet, "/wake", nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 256)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // padding against proxies that buffer
		}
		if err != nil {
			return err
		}
		silence.Reset(wakeSilence)
		if strings.HasPrefix(string(line), "data:") {
			hint(woken)
		}
	}
}

func hint(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default: // a check-in is due already
	}
}
