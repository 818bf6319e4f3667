package fleetsim_test

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fleetsim"
)

// pace is how fast the clock of the service and of the devices runs here: what
// takes a minute (a lease) takes seven seconds. A sweep, every 15 s of real
// time, still sees two minutes of theirs.
const pace = 8

var faultyAgents = flag.Int("faulty-agents", 400, "agents of TestFleet_UnderFaults; 2000 for the long run")

// Many agents whose answers are lost and come twice, whose clocks are
// off, who die between any two steps and go away: nothing is lost, nothing is
// done twice, and every device has its policy in the end. Halfway the service
// is killed as well.
func TestFleet_UnderFaults(t *testing.T) {
	t.Parallel()
	agents := *faultyAgents
	p := startProcess(t, agents, max(1, agents/5))
	o := options(t, p.Access, fleetsim.Clock(time.Now, p.start, pace))
	o.Ramp, o.Commands, o.Patience = 10*time.Second, 2, 90*time.Second
	o.Offline, o.OfflineFor, o.Skew = 0.1, 2*time.Second, 48*time.Hour
	o.Lost, o.Duplicated, o.Crashes, o.Endings = 0.02, 0.02, 0.005, 0.01
	o.Halfway = func(context.Context) error { return p.kill() }
	report := run(t, o)
	// Of what was being sent when the service was killed, eight at the most, it is
	// unknown whether it was.
	const underWay = 8
	if report.Commands < agents*9/5 || report.Succeeded+report.Unconfirmed != report.Commands || report.Unconfirmed > underWay ||
		report.Departed != agents/100 {
		t.Errorf("not every command succeeded: %+v", report)
	}
	if report.LostRequests == 0 || report.DuplicatedRequests == 0 || report.Crashes == 0 || report.Absences == 0 {
		t.Errorf("a fault never happened: %+v", report)
	}
}

// The same with every command, much worse faults, and both halves in this
// process, under the race detector.
func TestFleet_InOneProcess(t *testing.T) {
	t.Parallel()
	const agents = 40
	clock := fleetsim.Clock(time.Now, time.Now(), pace)
	settings := fleetsim.ServiceSettings{Dir: t.TempDir(), Agents: agents, Keys: 60, Now: clock, Log: slog.New(slog.DiscardHandler)}
	g, err := fleetsim.OpenService(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	o := options(t, g.Access, clock)
	o.Ramp, o.Commands, o.Patience = time.Second, 7, 90*time.Second
	o.Offline, o.OfflineFor, o.Skew = 0.3, time.Second, time.Hour
	o.Lost, o.Duplicated, o.Crashes, o.Endings = 0.1, 0.1, 0.03, 0.1
	o.Halfway = func(ctx context.Context) (err error) {
		settings.Agents, settings.Listen = 0, strings.TrimPrefix(g.Server, "http://")
		if err = g.Close(); err == nil {
			g, err = fleetsim.OpenService(ctx, settings)
		}
		return err
	}
	report := run(t, o)
	if report.Succeeded != report.Commands || report.Commands != agents*7+agents/10 {
		t.Errorf("not every command succeeded: %+v", report)
	}
}

// A run on a service that an earlier one used, with the same keys, sends its own commands.
func TestFleet_OnTheSameService(t *testing.T) {
	t.Parallel()
	clock := fleetsim.Clock(time.Now, time.Now(), pace)
	g, err := fleetsim.OpenService(t.Context(), fleetsim.ServiceSettings{Dir: t.TempDir(), Agents: 4, Keys: 4, Now: clock,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	for _, tokens := range [][]string{g.Tokens[:2], g.Tokens[2:]} {
		o := options(t, g.Access, clock)
		o.Tokens, o.Commands = tokens, 1
		if report := run(t, o); report.Succeeded != 2 {
			t.Errorf("%d commands succeeded, want 2", report.Succeeded)
		}
	}
}

func options(t *testing.T, g fleetsim.Access, clock func() time.Time) fleetsim.Options {
	t.Helper()
	return fleetsim.Options{Access: g, Dir: t.TempDir(),
		Say: func(string, ...any) {}, Progress: func(fleetsim.Progress) {},
		Load: fleetsim.Load{Seed: 1, Pace: pace}, Now: clock, Clock: time.Now, Log: slog.New(slog.DiscardHandler)}
}

func run(t *testing.T, o fleetsim.Options) fleetsim.Report {
	t.Helper()
	report, err := fleetsim.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if report.Lost != 0 || report.Doubled != 0 || len(report.Problems) != 0 {
		t.Error("what must not happen happened; see above")
	}
	return report
}
