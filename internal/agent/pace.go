package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	firstPause = 2 * time.Second
	lastPause  = 8 * time.Minute
	// holdTime is how long a stream must be open before its failures are forgotten.
	holdTime = time.Minute
)

// pace is how long an agent waits after failures: one growing pause for its check-ins
// and its stream. It is forgotten when both work again.
type pace struct {
	mu       sync.Mutex
	failures int
	until    time.Time // the end of the present pause
	away     bool      // the latest check-in failed, or there was none
	touched  bool      // there was a check-in
	reached  bool      // the service answered the latest check-in, whatever came of it
	holds    bool      // the stream has been open for holdTime
}

// failed notes a failure, of the stream or of a check-in, and returns how long to wait.
// While a pause runs, that is the rest of it.
func (p *pace) failed(now time.Time, err error, stream bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = p.away || !stream
	p.holds = p.holds && !stream
	if errors.Is(err, ErrSuperseded) {
		return jitter(supersededRetry) // only a person can change that
	}
	if left := p.until.Sub(now); left > 0 && left <= lastPause {
		return left
	}
	wait := spread(p.failures)
	p.failures++
	wait = max(wait, RetryAfter(err))
	p.until = now.Add(wait)
	return wait
}

// RetryAfter is how long to wait because the service asked for it in its answer, spread so that
// devices do not come back at one moment, and at most eight minutes; 0: it did not ask.
func RetryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refusal](err); ok && r.RetryAfter > 0 {
		return min(jitter(r.RetryAfter), lastPause)
	}
	return 0
}

// spread is the pause after so many failures before: from half of a limit that doubles
// to the whole, so that a fleet that was cut off at one moment does not come back at one.
func spread(failures int) time.Duration {
	limit := min(firstPause<<min(failures, 20), lastPause)
	return limit/2 + rand.N(limit/2+1)
}

// answered notes a check-in that the service answered.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away, p.touched = false, true
	p.settle()
}

// reach notes whether the service answered a check-in. One that fails after that, such as
// for a policy that cannot be applied, keeps its pause, and holds back no stream.
func (p *pace) reach(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = answered
}

// held notes that the stream has been open for holdTime.
func (p *pace) held() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = true
	p.settle()
}

func (p *pace) settle() {
	if p.holds && !p.away {
		p.failures = 0
	}
}

// moved notes that the device changed its network: what failed there may work here.
func (p *pace) moved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.until = 0, time.Time{}
}

func (p *pace) inTouch() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.touched && !p.away || p.reached
}

// maxPerSecond is how many check-ins hints may cause in any second.
const maxPerSecond = 5

// gate holds back check-ins of an agent that runs.
type gate struct {
	on    bool
	times [maxPerSecond]time.Time
	next  int
}

// pass waits until another check-in may begin.
func (g *gate) pass(ctx context.Context, a *Agent) {
	if !g.on {
		return
	}
	if left := time.Second - a.options.Now().Sub(g.times[g.next]); left > 0 && left <= time.Second {
		a.wait(ctx, left, nil)
	}
	g.times[g.next] = a.options.Now()
	g.next = (g.next + 1) % maxPerSecond
}
