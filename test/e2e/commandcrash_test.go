package e2e_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// steps are the moments of a command's life at which a process may die, with
// what must be true afterwards.
type step struct {
	name   string
	sent   int      // calls that reached the vendor
	ends   []string // statuses that the command may end in; none: it was never accepted
	repeat int      // calls that a repetition under the same Idempotency-Key adds
}

// key is the Idempotency-Key of the request that dies at the step.
func (s step) key() string { return "once-" + strings.ReplaceAll(s.name, " ", "-") }

func steps() []step {
	return []step{
		{command.BeforeIntent, 0, nil, 1},
		{command.AfterIntent, 0, []string{"UNCONFIRMED"}, 0},
		{command.AfterSend, 1, []string{"SUCCESS"}, 0},
		{command.AfterAnswer, 1, []string{"SUCCESS"}, 0},
	}
}

// sweeping is longer than the time after which an intent without an outcome is
// given up.
const sweeping = 5 * time.Minute

// Whatever step the process dies at: no accepted command is lost, none is sent
// twice, every one ends final or UNCONFIRMED. Here the dying is that the
// request's goroutine ends at the step and the replica with it; see
// TestCommand_ProcessKilled for the real thing.
func TestCommand_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		var at atomic.Value
		at.Store("")
		tenant := env.NewTenant("acme")
		replica := env.Start(func(_ *config.Service, o *service.Options) {
			o.Crash = func(step string) {
				if at.CompareAndSwap(step, "") {
					runtime.Goexit() // nothing after this point runs
				}
			}
		})
		devices := tenant.Devices(replica, servertest.FullyManaged(), len(steps()))
		keys := make([]string, len(devices))
		for i, s := range steps() {
			keys[i] = env.Key(tenant.Company, access.All)
			at.Store(s.name)
			if answer, err := replica.As(keys[i]).Try("POST", servertest.LockPath(devices[i]), nil, "Idempotency-Key",
				s.key()); err == nil {
				t.Errorf("%s: the request was answered %d", s.name, answer.Status)
			}
		}
		replica.Stop()
		env.Advance(sweeping)
		second := env.Start()
		for i, s := range steps() {
			checkAfterwards(t, tenant, second.As(keys[i]), devices[i], s)
		}
	})
}

func checkAfterwards(t *testing.T, tenant *servertest.Tenant, client servertest.Client, device servertest.Device, s step) {
	t.Helper()
	tenant.Eventually("the command interrupted "+s.name, func() error {
		history := client.History(device.AssetID)
		if len(s.ends) == 0 && len(history) == 0 {
			return nil
		}
		if len(history) != 1 || !slices.Contains(s.ends, history[0].Status) {
			return fmt.Errorf("the history says %+v, want %v", history, s.ends)
		}
		return nil
	})
	if sent := issued(tenant, device); sent != s.sent {
		t.Errorf("%s: %d calls reached the vendor, want %d", s.name, sent, s.sent)
	}
	// The caller, who has no answer, repeats the request under its key.
	answer := client.Post(servertest.LockPath(device), nil, "Idempotency-Key", s.key())
	if answer.Status != 200 && answer.Status != 202 {
		t.Errorf("%s: the repetition is answered %d %s", s.name, answer.Status, answer.Body)
	}
	if sent := issued(tenant, device); sent != s.sent+s.repeat {
		t.Errorf("%s: after the repetition %d calls reached the vendor, want %d", s.name, sent, s.sent+s.repeat)
	}
	if history := client.History(device.AssetID); len(history) != 1 {
		t.Errorf("%s: after the repetition the history says %+v", s.name, history)
	}
}

// issued counts the commands that reached the vendor for one device.
func issued(tenant *servertest.Tenant, device servertest.Device) (n int) {
	for _, call := range tenant.Emulator.Calls(0, "devices.issueCommand") {
		if call.Path == "/v1/"+device.Name+":issueCommand" {
			n++
		}
	}
	return n
}
