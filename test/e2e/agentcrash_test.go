package e2e_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// agentSteps are the durable steps of the agent at which it may die; "" is none.
func agentSteps() []string {
	return []string{"", "before received", "before started", "after started", "before done", "before confirm"}
}

// serverSteps are the steps of a command at the service, with how it ends where
// the caller does not repeat it; "" is none.
func serverSteps() []step {
	return []step{
		{"", 0, []string{"SUCCESS"}, 0},
		{command.BeforeIntent, 0, nil, 0},
		{command.AfterIntent, 0, []string{"SUCCESS"}, 0}, // kept for the device, which is not woken
		{command.AfterSend, 0, []string{"SUCCESS"}, 0},
		{command.AfterAnswer, 0, []string{"SUCCESS"}, 0},
	}
}

// The service dies at each step of a command, the agent at each of its own, and
// both together: the command ends as it must, and the device restarts once, or
// not at all if the service never sent it. Here the service's death
// is that of the request and the replica; see below for the real thing.
func TestAgentCommand_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		at, start := crashes(env)
		tenant, replica := env.NewAgentSite("acme"), start()
		var rounds []*round
		for _, s := range serverSteps() {
			for _, dies := range agentSteps() {
				r := &round{step: s, dies: dies, phone: tenant.AgentDevice(replica), key: env.Key(tenant.Company, access.All)}
				r.phone.MustCheckIn()
				rounds = append(rounds, r)
			}
		}
		for _, r := range rounds {
			at.Store(r.step.name)
			_, err := replica.As(r.key).Try("POST", r.path(), nil, "Idempotency-Key", r.name())
			if died := err != nil; died != (r.step.name != "") {
				t.Errorf("%s: %v", r.name(), err)
			}
			r.dieAndReturn(t)
		}
		replica.Stop()
		env.Advance(sweeping)
		replica = start()
		for _, r := range rounds {
			r.phone.Reach(replica)
			r.check(t, tenant, replica.As(r.key))
		}
	})
}

// round is one combination of deaths.
type round struct {
	step  step
	dies  string
	phone *servertest.AgentDevice
	key   string
}

func (r *round) name() string {
	return strings.ReplaceAll(fmt.Sprintf("service-%s-agent-%s", r.step.name, r.dies), " ", "-")
}

func (r *round) path() string { return "/assets/" + r.phone.AssetID + "/commands/reboot" }

// dieAndReturn has the agent die once it gets that far.
func (r *round) dieAndReturn(t *testing.T) {
	t.Helper()
	reaches := len(r.step.ends) > 0 && r.step.ends[0] == "SUCCESS"
	if r.dies == "" {
		_ = r.phone.CheckIn() // the service may be dying
		return
	}
	if crashed := r.phone.CrashAt(r.dies); crashed != (reaches || r.dies == "before confirm") {
		t.Errorf("%s: the agent died: %v", r.name(), crashed)
	}
}

// check has the agent check in until everything is as it must be, and then has
// the caller, who may have no answer, repeat the request.
func (r *round) check(t *testing.T, tenant *servertest.Tenant, client servertest.Client) {
	t.Helper()
	boots := 2
	if len(r.step.ends) == 0 || r.step.ends[0] != "SUCCESS" {
		boots = 1
	}
	tenant.Eventually(r.name(), func() error {
		if err := r.phone.CheckIn(); err != nil {
			return err
		}
		history := client.History(r.phone.AssetID)
		if boot := r.phone.Device.State().Boot; len(history) != len(r.step.ends) || boot != boots {
			return fmt.Errorf("the device is at boot %d, the history says %+v", boot, history)
		}
		if len(history) == 1 && history[0].Status != r.step.ends[0] {
			return fmt.Errorf("the history says %+v", history)
		}
		return nil
	})
	if got := client.Post(r.path(), nil, "Idempotency-Key", r.name()); got.Status != 200 && got.Status != 202 {
		t.Errorf("%s: the repetition is answered %d %s", r.name(), got.Status, got.Body)
	}
	for range 3 {
		r.phone.MustCheckIn()
	}
	if len(r.step.ends) == 0 {
		boots = 2 // it was never accepted: the repetition is the command
	}
	if boot := r.phone.Device.State().Boot; boot != boots {
		t.Errorf("%s: after the repetition the device is at boot %d, want %d", r.name(), boot, boots)
	}
	if history := client.History(r.phone.AssetID); len(history) != 1 {
		t.Errorf("%s: after the repetition the history says %+v", r.name(), history)
	}
}

// A real process, killed with SIGKILL at every step of a command to an agent.
func TestAgentCommand_ProcessKilled(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, first := env.NewAgentSite("acme"), env.Start()
		var rounds []*round
		for _, s := range serverSteps()[1:] {
			r := &round{step: s, phone: tenant.AgentDevice(first), key: env.Key(tenant.Company, access.All)}
			r.phone.MustCheckIn()
			rounds = append(rounds, r)
		}
		first.Stop()
		for _, r := range rounds {
			process, url := startProcess(t, env, r.step.name)
			client := servertest.Client{TB: t, URL: url, Key: r.key}
			r.phone.ReachURL(url)
			if answer, err := client.Try("POST", r.path(), nil, "Idempotency-Key", r.name()); err == nil {
				t.Errorf("%s: the request was answered %d", r.name(), answer.Status)
				_ = process.Process.Kill()
			}
			if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("%s: the process ended with %v, want a kill", r.name(), err)
			}
		}
		env.Advance(sweeping)
		second := env.Start()
		for _, r := range rounds {
			r.phone.Reach(second)
			r.check(t, tenant, second.As(r.key))
		}
	})
}

// crashes returns where the next request ends, a step, and how to start a replica that does so.
func crashes(env *servertest.Env) (at *atomic.Value, start func() *servertest.Replica) {
	at = new(atomic.Value)
	at.Store("")
	return at, func() *servertest.Replica {
		return env.Start(func(_ *config.Service, o *service.Options) {
			o.Crash = func(step string) {
				if at.CompareAndSwap(step, "") {
					runtime.Goexit() // nothing after this point runs
				}
			}
		})
	}
}
