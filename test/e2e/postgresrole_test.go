package e2e_test

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// The two roles of docs/operating.md: one serves and cannot change the tables, the
// other changes them.
func TestPostgreSQL_RoleThatOnlyServes(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	dsn := pgtest.DSN(t)
	owner, serving := documentedRoles(t, dsn)
	env.Database = serving
	keys := env.Config().KeyFile // replaced by the fixture's below
	refused := func(title string) {
		t.Helper()
		before := firsttest.Digest(t, dsn)
		settings := env.Config()
		settings.KeyFile = keys
		s, err := service.New(t.Context(), settings, service.Options{Now: env.Now, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			_ = s.Close()
			t.Fatalf("%s: the role that only serves is not refused", title)
		}
		if says := err.Error(); !strings.Contains(says, "run `muster migrate` with the role that owns") || strings.Contains(says, "\n") {
			t.Errorf("%s: the refusal is %q", title, says)
		}
		if firsttest.Digest(t, dsn) != before {
			t.Errorf("%s: refused, and yet written", title)
		}
	}
	migrate := func() {
		t.Helper()
		db, err := database.Open(t.Context(), database.Options{URL: owner, Now: env.Now, Schema: database.Upgrade})
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatalf("the role that owns the tables cannot change them: %v", err)
		}
	}
	refused("empty")
	old := firsttest.Load(t, owner, true)
	env.Advance(old.Now.Add(time.Minute).Sub(env.Now()))
	keys = filepath.Join(env.Dir, "first.keys")
	old.Keys(t, keys)
	refused("the first version's")
	migrate()
	// Older replicas would be told to end, if the change could begin.
	firsttest.Exec(t, dsn, `UPDATE versions SET schema_number = schema_number - 1, lowest_writer = 1`)
	refused("older")
	firsttest.Exec(t, dsn, `UPDATE versions SET schema_number = schema_number + 1`)

	replica := env.Start(func(c *config.Service, _ *service.Options) {
		c.KeyFile, c.PlatformEndpoint = keys, "http://127.0.0.1:1"
	})
	sameAnswers(t, env, replica, old)
	sameCredentials(t, replica, old)
	for _, a := range old.Agents {
		checksIn(t, env, replica, old, a)
	}
}

// documentedRoles makes the roles of docs/operating.md, under names of their own,
// and returns the database's address for each.
func documentedRoles(t *testing.T, dsn string) (owner, serving string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	statements, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/operating.md has no SQL")
	}
	// Roles belong to the server, on which other tests run.
	own := strings.ToLower(resource.NewID())
	roles := strings.NewReplacer("muster_owner", "owner_"+own, "muster_serve", "serve_"+own)
	firsttest.Exec(t, dsn, roles.Replace(statements))
	t.Cleanup(func() {
		firsttest.Exec(t, dsn, roles.Replace("DROP OWNED BY muster_serve, muster_owner; DROP ROLE muster_serve, muster_owner"))
	})
	as := func(role string) string {
		address, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword(roles.Replace(role), "secret")
		return address.String()
	}
	return as("muster_owner"), as("muster_serve")
}
