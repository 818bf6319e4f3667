package e2e_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A read that cannot reach its data may be repeated, and says so, as commands do.
func TestReads_DatabaseIsAway(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client, raw := tenant.Client(replica, access.All), rawDatabase(t, env)
	for table, paths := range map[string][]string{
		"assets":   {"/assets", "/assets/" + device.AssetID, "/assets/" + device.AssetID + "/commands"},
		"policies": {"/policies"},
	} {
		for _, path := range paths {
			client.Get(path).Want(t, 200)
		}
		// Without this table the database does not answer about them.
		alter(t, raw, `ALTER TABLE `+table+` RENAME TO table_away`)
		for _, path := range paths {
			got := client.Get(path).Want(t, 503)
			if m := got.Members(t); m["code"] != "unavailable" || m["retryable"] != true {
				t.Errorf("%s: %s", path, got.Body)
			}
		}
		alter(t, raw, `ALTER TABLE table_away RENAME TO `+table)
		for _, path := range paths {
			client.Get(path).Want(t, 200)
		}
	}
}

// A sign-out that cannot end the session says so, and still takes it from the browser.
func TestSignOut_DatabaseIsAway(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica, raw := env.Start(), rawDatabase(t, env)
	user := env.Browser(env.Company("acme", access.Settings{}), account.Viewer).User
	portal := replica.PortalClient(t, user)
	alter(t, raw, `ALTER TABLE sessions RENAME TO sessions_away`)
	page := portal.Post("/signout").Want(t, 500)
	if !strings.Contains(page.Body, "could not end the session") {
		t.Errorf("the page does not say that the session goes on: %s", page.Body)
	}
	alter(t, raw, `ALTER TABLE sessions_away RENAME TO sessions`)
	if page := portal.Get("/account"); !strings.HasPrefix(page.Path, "/signin") {
		t.Errorf("the browser is at %s, want /signin", page.Path)
	}
}
