// Package fleetsim is N devices with the real agent (internal/agent) that speak
// the real protocol over real HTTP, for load and for proof (muster
// simulate).
//
// The network and the devices misbehave as told: answers are lost or come
// twice, clocks are off, agents die between any two steps, devices go away for a
// while. At the end nothing may show of that: every command is final, none was
// carried out twice, every device has its policy. A Report says so, or what is
// wrong.
package fleetsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/script"
)

// Load is what the devices do, and which faults they have, as flags of a command
// line. Shares are between 0 and 1. Half of the lost requests are lost on the way there. A session is about as
// long as an absence.
type Load struct {
	Commands int           `name:"commands" default:"3" help:"Commands for each agent. Default: ${default}."`
	Duration time.Duration `name:"duration" default:"0s" help:"Time over which the commands are sent; 0: as fast as can be."`
	Ramp     time.Duration `name:"ramp" default:"2s" help:"Time over which the agents appear. Default: ${default}."`
	Patience time.Duration `name:"patience" default:"5m" help:"How long to wait for everything to settle. Default: ${default}."`

	Offline    float64       `name:"offline" default:"0" help:"Share of an agent's sessions that end in an absence, 0 to 1."`
	OfflineFor time.Duration `name:"offline-for" default:"5s" help:"How long an absence is, about. Default: ${default}."`
	Skew       time.Duration `name:"skew" default:"0s" help:"Clocks are off by up to this, either way."`
	Lost       float64       `name:"lost" default:"0" help:"Share of requests that are lost on the way there or back, 0 to 1."`
	Duplicated float64       `name:"duplicated" default:"0" help:"Share of requests that arrive twice, 0 to 1."`
	Crashes    float64       `name:"crashes" default:"0" help:"Share of the agents' durable steps before which the agent dies, 0 to 1."`
	Endings    float64       `name:"endings" default:"0" help:"Share of devices that are wiped or relinquished in the end, 0 to 1."`
	Seed       uint64        `name:"seed" default:"1" help:"The same seed gives the same faults. Default: ${default}."`
	Pace       float64       `name:"pace" default:"1" help:"How many times faster than real time the clock runs, at most 8; for a service of its own alone."`
}

// Options are a run's load, and what it stands on.
type Options struct {
	Access
	Load
	Dir string // where devices keep their state

	// Now is the clock of the devices, and of the service. It runs Pace times faster than Clock.
	Now func() time.Time
	// Clock measures. Required, as Now is.
	Clock func() time.Time
	// Halfway, if set, is called when half of the commands were sent.
	Halfway func(context.Context) error
	Log     *slog.Logger
	// Say is told what the run does next.
	Say func(format string, args ...any)
	// Progress is told every half second how far it is, from one goroutine.
	Progress func(Progress)
	// Metrics are the addresses of the metrics of each replica, for the report's sizing. None:
	// it lacks the service's CPU time and memory.
	Metrics []string
}

// fleet is one run.
type fleet struct {
	Options
	members  []*member
	faults   faults
	settling atomic.Bool // all commands are sent, and no device goes away any more
	http     *http.Transport
	rest     *rest
	work     atomic.Pointer[work]
	// requests counts all calls of the service, sent the commands, settled the devices in order.
	requests, sent, settled atomic.Int64
	checkIns                histogram // how long they took
	started                 time.Time // real time

	mu       sync.Mutex
	problems []string
	refusals map[string]int // see Report.Refusals
}

// faults count what was done to the devices.
type faults struct {
	lost, duplicated, crashes, absences, checkIns atomic.Int64
}

// Run brings the fleet up, sends the commands, waits until everything has
// settled, and reports. The error is about the run itself; what the service or
// an agent did wrong is in the report's Problems.
func Run(ctx context.Context, o Options) (report Report, err error) {
	f, err := newFleet(o)
	if err != nil {
		return report, err
	}
	before := liveMemory()
	var m measured
	m.read(ctx, f, &m.before)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { f.reportProgress(running) })
	for _, m := range f.members {
		all.Go(func() { m.run(running) })
	}
	err = script.Attempt(func() { report = f.drive(ctx, before, &m) })
	stop()
	all.Wait()
	f.http.CloseIdleConnections()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return report, err
}

func newFleet(o Options) (*fleet, error) {
	if len(o.Tokens) == 0 {
		return nil, errors.New("no enrollment tokens: each agent needs one")
	}
	o.Patience = cmp.Or(max(o.Patience, 0), 5*time.Minute)
	o.OfflineFor = cmp.Or(max(o.OfflineFor, 0), 2*time.Second)
	f := &fleet{Options: o, http: newTransport(len(o.Tokens)), started: o.Clock(), refusals: map[string]int{}}
	f.rest = &rest{fleet: f, client: &http.Client{Transport: f, Timeout: time.Minute}, keys: make(chan string, max(1, len(o.Keys)))}
	for _, key := range o.Keys {
		f.rest.keys <- key
	}
	for i, token := range o.Tokens {
		token, err := protocol.TokenOf(token)
		if err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		f.members = append(f.members, newMember(f, i, token))
	}
	return f, nil
}

// drive takes the fleet through its run.
func (f *fleet) drive(ctx context.Context, before int64, m *measured) Report {
	agents := len(f.members)
	commands, devices := f.Commands*agents+f.endings(), agents
	if len(f.Keys) == 0 { // nothing is sent, and verify looks at none
		commands, devices = 0, 0
	}
	f.begin("Enrolling agents", agents, func() int64 { return int64(agents - f.notReady()) })
	err := f.await(ctx, "every agent is enrolled and has its policy", f.notReady)
	if errors.Is(err, errLate) { // the summary says how far it came
		f.problem("%v", err)
		return f.report(0)
	}
	script.Need(err)
	memory := (liveMemory() - before) / int64(agents)
	f.rest.findAssets(ctx)
	f.begin("Sending commands", commands, f.sent.Load)
	m.read(ctx, f, &m.connected)
	m.began, m.requests = f.Clock(), f.requests.Load()
	f.rest.sendAll(ctx)
	f.settling.Store(true)
	f.acknowledged(ctx)
	ended, sent := f.Clock(), int(f.sent.Load())
	m.read(ctx, f, &m.after)
	sizing := f.sizing(*m, ended, sent)
	f.begin("Waiting until everything has settled", devices, f.settled.Load)
	f.rest.verify(ctx)
	report := f.report(memory)
	report.Sizing = &sizing
	return report
}

// notReady counts the agents that are not yet enrolled, or have no policy.
func (f *fleet) notReady() (missing int) {
	for _, m := range f.members {
		if !m.converged.Load() {
			missing++
		}
	}
	return missing
}

const pollInterval = 100 * time.Millisecond

// errLate is in the error of what was not reached within the patience.
var errLate = errors.New("not in time")

// await waits, for as long as there is patience, until nothing is missing.
func (f *fleet) await(ctx context.Context, what string, missing func() int) error {
	limit := time.NewTimer(f.Ramp + f.Patience)
	defer limit.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		left := missing()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("%w: %s (%d are missing): %s", errLate, what, left, cmp.Or(f.lastError(), "no agent reports an error"))
		case <-tick.C:
		}
	}
}

// lastError is the latest error of some agent; empty: there is none.
func (f *fleet) lastError() string {
	for _, m := range f.members {
		if text, _ := m.lastError.Load().(string); text != "" {
			return fmt.Sprintf("the last error of agent %d is %q", m.number, text)
		}
	}
	return ""
}

func (f *fleet) problem(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// random is a member's own source of random numbers, so that a run with the same seed does the same.
type random struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// share is at least 0 and less than 1.
func (r *random) share() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.Float64()
}

// about is a duration between a half and one and a half of d.
func (r *random) about(d time.Duration) time.Duration {
	return d/2 + time.Duration(r.share()*float64(d))
}
