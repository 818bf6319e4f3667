package fleetsim

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/wait"
)

// member is one device of the fleet, with all sessions of its agent.
type member struct {
	fleet   *fleet
	number  int
	token   string
	serial  string
	dir     string
	random  *random
	skew    time.Duration
	device  *recordingDevice
	network *network

	converged atomic.Bool  // it is enrolled and has had its policy once
	ended     atomic.Bool  // the service has ended its enrollment
	sessions  atomic.Int64 // of its agent: how many have begun
	lastError atomic.Value // the latest error: string

	mu         sync.Mutex
	asset      string // the asset's short id
	policy     string // the path name of the policy that it is to have
	orders     []order
	deliveries map[string]delivery // by command id
	// history is the list that the service returned last.
	history []entry
}

func newMember(f *fleet, number int, token string) *member {
	m := &member{fleet: f, number: number, token: token, serial: "SIM-" + strconv.FormatUint(f.Seed, 36) + "-" + strconv.Itoa(number),
		dir: filepath.Join(f.Dir, strconv.Itoa(number)), random: &random{rng: rand.New(rand.NewPCG(f.Seed, uint64(number)+1))},
		deliveries: map[string]delivery{}}
	m.skew = time.Duration((m.random.share()*2 - 1) * float64(f.Skew))
	m.device = &recordingDevice{Device: simulated.New(simulated.Default(m.serial), m.now), member: m, executions: map[string][]execution{}}
	m.network = &network{m}
	if len(f.Policies) > 0 {
		m.policy = f.Policies[0]
	}
	return m
}

// now is the device's own clock, which may be off.
func (m *member) now() time.Time { return m.fleet.Now().Add(m.skew) }

func (m *member) options() agent.Options {
	client := &http.Client{Transport: m.network, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return agent.Options{Dir: m.dir, Version: "simulated", Device: m.device, Client: client, Now: m.now,
		Pace: m.fleet.Pace, Log: m.fleet.Log, Crash: m.crash}
}

// run enrolls the device, and runs its agent until the service ends the enrollment or ctx ends.
func (m *member) run(ctx context.Context) {
	wait.For(ctx, time.Duration(m.random.share()*float64(m.fleet.Ramp)))
	for n := 0; ctx.Err() == nil; n++ {
		err := m.enroll(ctx)
		if err == nil {
			break
		}
		m.lastError.Store(err.Error())
		wait.For(ctx, max(m.random.about(pause(n)), m.fleet.paced(agent.RetryAfter(err))))
	}
	for ctx.Err() == nil {
		err := m.session(ctx)
		switch {
		case errors.Is(err, agent.ErrEnded):
			m.ended.Store(true)
			return
		case errors.Is(err, errCrash):
			m.fleet.faults.crashes.Add(1)
		case errors.Is(err, errAway):
			m.fleet.faults.absences.Add(1)
			wait.For(ctx, m.random.about(m.fleet.OfflineFor))
		case err != nil && ctx.Err() == nil:
			m.lastError.Store(err.Error())
			if errors.Is(err, agent.ErrNotEnrolled) { // it died while its enrollment ended
				m.ended.Store(true)
				return
			}
			wait.For(ctx, m.random.about(time.Second))
		}
	}
}

func (m *member) enroll(ctx context.Context) error {
	_, err := agent.Enroll(ctx, agent.Enrollment{Options: m.options(), Server: m.fleet.Server, Token: m.token, Role: protocol.Manager})
	if errors.Is(err, agent.ErrEnrolled) {
		return nil // by a run before, on the same directory
	}
	return err
}

var (
	errCrash = errors.New("the agent was killed")
	errAway  = errors.New("the device is away")
)

// session is one run of the agent's process. A crash is a panic at one of its steps: the next session has only what was
// written before it.
func (m *member) session(ctx context.Context) (err error) {
	m.sessions.Add(1)
	a, err := agent.New(m.options())
	if err != nil {
		return err
	}
	defer func() {
		if killed := recover(); killed != nil {
			if crash, ok := killed.(error); !ok || !errors.Is(crash, errCrash) {
				panic(killed)
			}
			err = errCrash
		}
		err = errors.Join(err, a.Close())
	}()
	if m.random.share() < m.fleet.Offline && !m.fleet.settling.Load() {
		away, leave := context.WithTimeoutCause(ctx, m.random.about(m.fleet.OfflineFor), errAway)
		defer leave()
		ctx = away
	}
	return a.Run(ctx)
}

func (m *member) crash(string) {
	if m.random.share() < m.fleet.Crashes {
		panic(errCrash)
	}
}

// execution is one time that a device carried out a command.
type execution struct {
	kind    string // of the command
	session int64  // of the agent
}

// recordingDevice is a simulated device that records which commands it carries out.
type recordingDevice struct {
	*simulated.Device
	member *member

	mu         sync.Mutex
	executions map[string][]execution // by command id
}

// Do implements agent.Device.
func (w *recordingDevice) Do(ctx context.Context, a agent.Action) (string, error) {
	outcome, err := w.Device.Do(ctx, a)
	if err == nil && a.CommandID != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.executions[a.CommandID] = append(w.executions[a.CommandID], execution{a.Type, w.member.sessions.Load()})
	}
	return outcome, err
}

// doubled returns the commands that took effect twice: a restart more than
// once ever, anything else more than once in one session of the agent. (An agent
// that died over a command whose effect is the same each time runs it again.)
func (w *recordingDevice) doubled() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, all := range w.executions {
		sessions := map[int64]bool{}
		for i, e := range all {
			once := e.kind == agent.Restart || e.kind == agent.PowerOff
			if sessions[e.session] || once && i > 0 {
				ids = append(ids, id)
				break
			}
			sessions[e.session] = true
		}
	}
	return ids
}
