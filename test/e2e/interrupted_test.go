package e2e_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/servertest"
)

// A service that is alone with its database need not wait to know that what was
// being sent when it was killed is no longer being sent: its first answer says so.
func TestRestart_InterruptedCommandsOnSQLite(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		if !strings.HasPrefix(env.Database, "sqlite:") {
			return // there another replica may be sending it
		}
		tenant, first := env.NewTenant("acme"), env.Start()
		device := tenant.Devices(first, servertest.FullyManaged(), 1)[0]
		first.Stop()
		key := env.Key(tenant.Company, access.All)
		process, url := startProcess(t, env, command.AfterIntent)
		if answer, err := (servertest.Client{TB: t, URL: url, Key: key}).Try("POST", servertest.LockPath(device), nil); err == nil {
			t.Errorf("answered %d: %s", answer.Status, answer.Body)
			_ = process.Process.Signal(syscall.SIGTERM)
		}
		_ = process.Wait()
		var history struct {
			Content []struct{ Type, Status string }
		}
		env.Start().As(key).Get(strings.TrimSuffix(servertest.LockPath(device), "/lock")).Want(t, 200).JSON(t, &history)
		if len(history.Content) != 1 || history.Content[0].Status != "UNCONFIRMED" {
			t.Errorf("the history is %+v", history.Content)
		}
	})
}
