package e2e_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
)

// Three processes start at once on an empty PostgreSQL database: one makes the
// tables, the others wait for it, and all serve.
func TestStartup_ConcurrentReplicas(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	env.Database = pgtest.DSN(t) // nothing has opened it
	var addresses []func() string
	for range 3 {
		process, address := launch(t, env, env.Config(), "nowhere")
		addresses = append(addresses, address)
		t.Cleanup(func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		})
	}
	var all []string
	for _, address := range addresses {
		all = append(all, address())
	}
	key := env.Key(env.Company("acme", servertest.Everything()), access.All)
	for _, url := range all {
		if status, text := servertest.Fetch(t, url+"/readyz"); status != http.StatusOK {
			t.Errorf("%s is not ready: %d %s", url, status, text)
		}
		servertest.Client{TB: t, URL: url, Key: key}.Get("/assets/count").Want(t, http.StatusOK)
	}
}

// A service that is stopped and started again on the same file goes on where it
// was: data, keys, budgets, and the codes that wait.
func TestRestart_KeepsItsState(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, first := env.NewTenant("acme"), env.Start()
		device := tenant.Devices(first, servertest.FullyManaged(), 1)[0]
		key := env.Key(tenant.Company, access.All)
		for range 9 {
			first.As(key).Post(servertest.LockPath(device), nil).Want(t, http.StatusOK)
		}
		before := first.As(key).Get("/assets/" + device.AssetID)
		first.Stop()

		again := env.Start().As(key)
		after := again.Get("/assets/"+device.AssetID).Want(t, http.StatusOK)
		if after.Members(t)["pathName"] != before.Members(t)["pathName"] {
			t.Errorf("the asset was %s and is %s", before.Body, after.Body)
		}
		if history := again.History(device.AssetID); len(history) != 9 {
			t.Errorf("%d commands in the history, want 9", len(history))
		}
		again.Post(servertest.LockPath(device), nil).Want(t, http.StatusOK)
		again.Post(servertest.LockPath(device), nil).Want(t, http.StatusTooManyRequests)
	})
}

// A copy that was made while the service runs is a service of its own.
func TestBackup_ServesAsADatabase(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, first := env.NewTenant("acme"), env.Start()
	device := tenant.Devices(first, servertest.FullyManaged(), 1)[0]
	key := env.Key(tenant.Company, access.All)
	first.As(key).Post(servertest.LockPath(device), nil).Want(t, http.StatusOK)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := env.DB().Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	first.Stop()
	env.Database = "sqlite:" + path
	second := env.Start().As(key)
	if history := second.History(device.AssetID); len(history) != 1 {
		t.Errorf("%d commands in the history, want 1", len(history))
	}
	second.Post(servertest.LockPath(device), nil).Want(t, http.StatusOK)
}
