package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// awaitStreams waits until a service holds so many wake streams.
func awaitStreams(t *testing.T, tenant *servertest.Tenant, url string, want int) {
	t.Helper()
	tenant.Eventually("the streams are open", func() error {
		if _, text := servertest.Fetch(t, url+"/metrics"); metric(t, text, "muster_agent_streams") != want {
			return errors.New("they are not")
		}
		return nil
	})
}

// written is how many commands a service has written to streams.
func written(t *testing.T, url string) int {
	t.Helper()
	_, text := servertest.Fetch(t, url+"/metrics")
	return metric(t, text, `muster_agent_stream_commands_total\{outcome="written"\}`)
}

// listens runs the round's agent, which dies at its step once it is armed.
func (r *round) listens(armed *atomic.Bool) (stop func()) {
	p := r.phone
	p.Kill()
	var died atomic.Bool
	p.Options.Crash = func(at string) {
		if at == r.dies && armed.Load() && died.CompareAndSwap(false, true) {
			runtime.Goexit() // nothing after this point runs
		}
	}
	p.Start()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		_ = p.Agent.Run(ctx)
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-ended
		p.Kill()
		p.Options.Crash = nil
		p.Start()
	})
}

// The service dies at each step of a command that goes out on a stream, the agent at each
// of its own, and both together: between commit and write the device gets it once the
// lease has ended, and after the write it is carried out once.
func TestAgentStream_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		at, start := crashes(env)
		tenant, replica := env.NewAgentSite("acme"), start()
		var rounds []*round
		var armed atomic.Bool
		var stops []func()
		for _, s := range serverSteps() {
			for _, dies := range agentSteps() {
				r := &round{step: s, dies: dies, phone: tenant.AgentDevice(replica), key: env.Key(tenant.Company, access.All)}
				r.phone.MustCheckIn()
				rounds, stops = append(rounds, r), append(stops, r.listens(&armed))
			}
		}
		awaitStreams(t, tenant, replica.PublicURL(), len(rounds))
		armed.Store(true)
		for _, r := range rounds {
			at.Store(r.step.name)
			_, err := replica.As(r.key).Try("POST", r.path(), nil, "Idempotency-Key", r.name())
			if died := err != nil; died != (r.step.name != "") {
				t.Errorf("%s: %v", r.name(), err)
			}
		}
		// Before the commit nothing goes out, and between commit and write nothing does.
		goOut := slices.DeleteFunc(slices.Clone(rounds), func(r *round) bool {
			return r.step.name == command.BeforeIntent || r.step.name == command.AfterIntent
		})
		env.Eventually("the commands are written", func() error {
			if n := written(t, replica.PublicURL()); n != len(goOut) {
				return fmt.Errorf("%d of %d", n, len(goOut))
			}
			return nil
		})
		for _, stop := range stops {
			stop()
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

// A real process, killed with SIGKILL at every step of a command to an agent that listens.
func TestAgentStream_ProcessKilled(t *testing.T) {
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
			stop := r.listens(new(atomic.Bool))
			awaitStreams(t, tenant, url, 1)
			if answer, err := client.Try("POST", r.path(), nil, "Idempotency-Key", r.name()); err == nil {
				t.Errorf("%s: the request was answered %d", r.name(), answer.Status)
				_ = process.Process.Kill()
			}
			if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("%s: the process ended with %v, want a kill", r.name(), err)
			}
			stop()
		}
		env.Advance(sweeping)
		second := env.Start()
		for _, r := range rounds {
			r.phone.Reach(second)
			r.check(t, tenant, second.As(r.key))
		}
	})
}

// A command goes out on the stream of the replica that it is posted to; at another replica,
// a hint does it. A stream that the device has left for another replica gets no command.
func TestAgentStream_TwoReplicas(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	tenant, here, there := env.NewAgentSite("acme"), env.Start(), env.Start()
	phone := tenant.AgentDevice(here)
	phone.MustCheckIn()
	client := tenant.Client(here, access.All)
	send := func() {
		t.Helper()
		began := time.Now()
		client.Post("/assets/"+phone.AssetID+"/commands/launch-app", spec.CommandOf("launch-app").Request()).Want(t, 200)
		tenant.Settled(client, phone.AssetID, "SUCCESS")
		// The sweep comes after five seconds at the earliest.
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	stop := phone.Run()
	awaitStreams(t, tenant, here.PublicURL(), 1)
	send()
	if n := written(t, here.PublicURL()); n != 1 {
		t.Errorf("%d commands were written to the stream of this replica", n)
	}
	_ = stop()
	phone.Reach(there)
	stop = phone.Run()
	awaitStreams(t, tenant, there.PublicURL(), 1)
	awaitStreams(t, tenant, here.PublicURL(), 0) // told by the other replica: the agent has closed it in silence
	send()
	if n := written(t, here.PublicURL()) + written(t, there.PublicURL()); n != 1 {
		t.Errorf("%d commands were written in all", n)
	}
	if err := stop(); err == nil {
		t.Error("the agent ended by itself")
	}
}
