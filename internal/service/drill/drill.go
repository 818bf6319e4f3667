// Package drill attacks a service of its own through its real surfaces, and
// reports which control refused what, and whether harm was done (muster drill).
//
// Each scenario has the demo's company on a fresh database: the emulator of the
// vendor's platform, simulated devices, real agents, REST, MCP over HTTP and over
// standard input and output, OAuth and the portal. Its clock is moved on, so that
// minutes of an attack take seconds. Whether there is harm is decided by what the
// database and the policies are afterwards, never by what the attacker was answered.
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
	"github.com/musterhq/muster/internal/service/demo"
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
	prepare func(ctx context.Context, d *drill) error
	// attack does all that the attacker can; what was refused is no error.
	attack func(ctx context.Context, d *drill) error
}

func scenarios() []scenario {
	return []scenario{
		{"stolen-administrator", defaults, stolenAdministrator},
		{"compromised-model", approvals, compromisedModel},
		{"confused-retry", defaults, confusedRetry},
	}
}

// Names are the scenarios' names.
func Names() (all []string) {
	for _, s := range scenarios() {
		all = append(all, s.name)
	}
	return all
}

// Run runs scenarios, each in a temporary folder that it removes. The error is
// that a scenario could not be run; harm is in the report.
func Run(ctx context.Context, s Settings) (Report, error) {
	var report Report
	for _, one := range scenarios() {
		if len(s.Scenarios) > 0 && !slices.Contains(s.Scenarios, one.name) {
			continue
		}
		result, err := s.within(ctx, one.name, func(ctx context.Context, d *drill) error {
			return errors.Join(one.prepare(ctx, d), one.attack(ctx, d))
		})
		if err != nil {
			return report, fmt.Errorf("cannot run the scenario %s: %w", one.name, err)
		}
		report.Scenarios = append(report.Scenarios, result)
	}
	return report, nil
}

// within calls work on a fresh company of its own.
func (s Settings) within(ctx context.Context, name string, work func(context.Context, *drill) error) (result Scenario, err error) {
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
		err = work(working, d)
		stop()
		d.running.Wait()
		return errors.Join(err, db.Close())
	})
	return d.result, err
}

// drill is one scenario under way.
type drill struct {
	*demo.Running
	clock   *clock
	db      *database.DB
	dir     string
	log     *slog.Logger
	running sync.WaitGroup // of the devices that the attacker adds; those of the company are in Running
	hurried bool           // ends with errHarm as soon as harm is found
	result  Scenario
	// person plays the person who decides, when the answer to a call asks for one; nil: no person decides.
	person func(context.Context, answer) error
}

// live has a device of the attacker's enroll and run, with its state in a directory of this name.
func (d *drill) live(ctx context.Context, name string, device agent.Device, under policy.Policy) error {
	options := agent.Options{Dir: filepath.Join(d.dir, name), Version: "drill", Device: device, Client: agent.NewClient(),
		Now: d.clock.now, Log: d.log}
	issue := func() (string, error) { return d.AgentToken(ctx, under) }
	return simulated.Live(ctx, &d.running, options, d.Service.PublicURL(), issue)
}

var errHarm = errors.New("harm was done")

// enough ends an attack that is in a hurry and has done harm, by what the judge finds.
func (d *drill) enough(ctx context.Context, judge func(context.Context) error) error {
	if !d.hurried {
		return nil
	}
	facts := d.result.Facts
	if err := judge(ctx); err != nil {
		return err
	}
	if len(d.result.Harm) > 0 {
		return errHarm
	}
	d.result.Facts = facts
	return nil
}

// clock is real time that can be moved on.
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

// row is a line of the report, for one way of attacking.
func (d *drill) row(attack string) *Attack {
	a := &Attack{Attack: attack, RefusedBy: map[string]int{}}
	d.result.Attacks = append(d.result.Attacks, a)
	return a
}
