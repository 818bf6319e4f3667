package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/ops"
)

// Each way in which a database cannot be used has its own remedy, and is reported in
// one line that says nothing twice.
func TestDoctor_DatabaseThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	if err := os.WriteFile(other, []byte(strings.Repeat("this is a letter, not a database. ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := servertest.New(t)
	env.Admin() // makes the tables
	for title, row := range map[string]struct{ database, says, remedy string }{
		"not a database":    {"sqlite:" + other, "no database", "restore FILE"},
		"a directory":       {"sqlite:" + dir, "directory", "correct MUSTER_DATABASE"},
		"missing directory": {"sqlite:" + filepath.Join(dir, "nowhere", "muster.db"), "nowhere", "make the directory"},
		"no listener":       {"postgres://missing@127.0.0.1:1/none", "connection refused", "start the database"},
		"unknown host":      {"postgres://missing@muster.invalid/none", "muster.invalid", "correct the host"},
	} {
		t.Run(title, func(t *testing.T) {
			settings := env.Config()
			settings.Database = row.database
			says := failed(t, title, "database", ops.Diagnose(t.Context(), settings, env.Now))
			if !strings.Contains(says.Detail, row.says) || !strings.Contains(says.Remedy, row.remedy) {
				t.Errorf("%s: %+v", title, says)
			}
			lines := strings.Split(says.Detail, "; ")
			slices.Sort(lines)
			if strings.Contains(says.Detail, "\n") || len(slices.Compact(slices.Clone(lines))) != len(lines) {
				t.Errorf("%s: not one line that says each thing once: %q", title, says.Detail)
			}
		})
	}
}

// On PostgreSQL the doctor reports names and clocks that are wrong.
func TestDoctor_PostgreSQL(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		env.Admin() // makes the tables
		diagnose := func(change func(*config.Service), now func() time.Time) []ops.Finding {
			settings := env.Config()
			change(&settings)
			return ops.Diagnose(t.Context(), settings, now)
		}
		if strings.HasPrefix(env.Database, "sqlite:") {
			return
		}
		late := func() time.Time { return time.Now().Add(-10 * time.Minute) }
		if says := failed(t, "clock", "clock", diagnose(func(*config.Service) {}, late)); !strings.Contains(says.Detail, "10m behind") {
			t.Errorf("%+v", says)
		}
		for _, f := range diagnose(func(*config.Service) {}, time.Now) {
			if f.Check == "clock" && f.Status != ops.Fine {
				t.Errorf("%+v", f)
			}
		}
		alter := func(part func(*url.URL)) func(*config.Service) {
			return func(c *config.Service) {
				address, err := url.Parse(c.Database)
				if err != nil {
					t.Fatal(err)
				}
				part(address)
				c.Database = address.String()
			}
		}
		says := failed(t, "database", "database", diagnose(alter(func(u *url.URL) { u.Path = "/nowhere" }), time.Now))
		if !strings.Contains(says.Remedy, "create the database") {
			t.Errorf("missing database: %+v", says)
		}
		says = failed(t, "role", "database", diagnose(alter(func(u *url.URL) { u.User = url.UserPassword("missing", "wrong") }), time.Now))
		if !strings.Contains(says.Remedy, "the user or the password") {
			t.Errorf("unknown role: %+v", says)
		}
		says = failed(t, "password", "database",
			diagnose(alter(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "not the pass word") }), time.Now))
		if !strings.Contains(says.Remedy, "the user or the password") || strings.Contains(says.Detail, "pass word") {
			t.Errorf("wrong password: %+v", says)
		}
	})
}

// failed is the check's one failure.
func failed(t *testing.T, title, check string, findings []ops.Finding) ops.Finding {
	t.Helper()
	var found []ops.Finding
	for _, f := range findings {
		if f.Check == check && f.Status == ops.Failed {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d failures of %q in %+v", title, len(found), check, findings)
	}
	return found[0]
}
