// Package drill starts a service, attacks it through its real surfaces, and reports which
// control refused which call, and whether harm was done (muster drill).
//
// Each scenario has the demo's company on a fresh database: the emulator of the
// vendor's platform, simulated devices, real agents, REST, MCP over HTTP and over
// standard input and output, OAuth and the portal. The scenario moves its clock forward, so
// that minutes of an attack take seconds. The state of the database and of the policies after
// the attack decides whether there is harm, not the answers to the attacker.
package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service/demo"
	"github.com/musterhq/muster/internal/slice"
)

// Settings say what to run.
type Settings struct {
	Scenarios []string // names; empty: all
	Now       func() time.Time
	Log       *slog.Logger
}

// scenario is one attack on a company.
type scenario struct {
	name string
	// prepare sets the company's controls, before the attack.
	prepare func(ctx context.Context, d *drill)
	// attack does what the attacker can do. A refused call is no error.
	attack func(ctx context.Context, d *drill)
}

func scenarios() []scenario {
	return []scenario{
		{"stolen-administrator", defaults, stolenAdministrator},
		{"compromised-model", approvals, compromisedModel},
		{"confused-retry", defaults, confusedRetry},
	}
}

// Names are the scenarios' names.
func Names() []string { return slice.Map(scenarios(), func(s scenario) string { return s.name }) }

// Run runs the scenarios one after another, each in a temporary directory that it removes. It
// returns an error if a scenario cannot run. Harm is no error: the report lists it.
func Run(ctx context.Context, s Settings) (Report, error) {
	var report Report
	for _, one := range scenarios() {
		if len(s.Scenarios) > 0 && !slices.Contains(s.Scenarios, one.name) {
			continue
		}
		result, err := s.company(ctx, one.name, func(ctx context.Context, d *drill) {
			one.prepare(ctx, d)
			one.attack(ctx, d)
		})
		if err != nil {
			return report, fmt.Errorf("cannot run the scenario %s: %w", one.name, err)
		}
		report.Scenarios = append(report.Scenarios, result)
	}
	return report, nil
}

// company starts a service with one company in a temporary directory, and calls work on it. name is
// that of the result.
func (s Settings) company(ctx context.Context, name string, work func(context.Context, *drill)) (result Scenario, err error) {
	dir, err := os.MkdirTemp("", "muster-drill-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &drill{dir: dir, log: s.Log, clock: &clock{base: s.Now}, result: Scenario{Name: name, Facts: []string{}, Harm: []string{}}}
	settings := demo.Settings{Data: dir, Listen: "127.0.0.1:0"}
	err = demo.Use(ctx, settings, d.clock.now, s.Log, func(ctx context.Context, running *demo.Running) error {
		d.Running = running
		db, err := database.Open(ctx, database.Options{URL: running.Store.Database, Now: d.clock.now})
		if err != nil {
			return err
		}
		d.db = db
		working, stop := context.WithCancel(ctx)
		err = script.Attempt(func() { work(working, d) })
		stop()
		d.added.Wait()
		return errors.Join(err, db.Close())
	})
	return d.result, err
}

// drill is a running scenario.
type drill struct {
	*demo.Running
	clock   *clock
	db      *database.DB
	dir     string
	log     *slog.Logger
	added   sync.WaitGroup // waits for the devices that the attacker adds; the company's own are in Running
	hurried bool           // set by tests: the attack ends with errHarm at the first harm; see enough
	result  Scenario
	// person plays the person who decides, when the answer to a call asks for one; nil: no person decides.
	person func(context.Context, answer)
}

// live enrolls a device of the attacker under a policy, and runs its agent until ctx ends. Its state
// is in the directory name below d.dir.
func (d *drill) live(ctx context.Context, name string, device agent.Device, under policy.Policy) {
	options := agent.Options{Dir: filepath.Join(d.dir, name), Version: "drill", Device: device, Client: agent.NewClient(),
		Now: d.clock.now, Log: d.log}
	script.Need(simulated.Live(ctx, &d.added, options, d.Service.PublicURL(), func() (string, error) { return d.AgentToken(ctx, under) }))
}

var errHarm = errors.New("harm was done")

// enough ends a hurried drill with errHarm if there is harm, or judge, unless it is nil, finds it. Otherwise it restores
// the facts, because judge runs again at the end of the attack.
func (d *drill) enough(ctx context.Context, judge func(context.Context)) {
	if !d.hurried {
		return
	}
	facts := d.result.Facts
	if judge != nil {
		judge(ctx)
	}
	if len(d.result.Harm) > 0 {
		script.Need(errHarm)
	}
	d.result.Facts = facts
}

// clock is a clock that can be moved forward. Any number of goroutines may use it.
type clock struct {
	base  func() time.Time
	ahead atomic.Int64 // nanoseconds
}

func (c *clock) now() time.Time { return c.base().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(by time.Duration) { c.ahead.Add(int64(by)) }

// harm records harm that was done.
func (d *drill) harm(format string, args ...any) {
	d.result.Harm = append(d.result.Harm, fmt.Sprintf(format, args...))
}

// fact records what was found, harm or not.
func (d *drill) fact(format string, args ...any) {
	d.result.Facts = append(d.result.Facts, fmt.Sprintf(format, args...))
}

// row adds a line to the report, for one way of attacking.
func (d *drill) row(attack string) *Attack {
	a := &Attack{Attack: attack, RefusedBy: map[string]int{}}
	d.result.Attacks = append(d.result.Attacks, a)
	return a
}
