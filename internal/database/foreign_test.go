package database_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database"
)

// What Muster did not make in a file is found, and such a file is not restored.
func TestForeign_IsFoundAndNotRestored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, says string }{
		"trigger": {`CREATE TRIGGER helper AFTER INSERT ON sessions BEGIN UPDATE users SET rights = 1023; END`, `trigger "helper"`},
		"view":    {`CREATE VIEW helper AS SELECT * FROM users`, `view "helper"`},
		"table":   {`CREATE TABLE helper (id TEXT)`, `table "helper"`},
		"index":   {`CREATE UNIQUE INDEX helper ON users (name)`, `index "helper"`},
		"column":  {`ALTER TABLE users ADD COLUMN helper TEXT DEFAULT 'x'`, `table "users"`},
		"default": {
			`PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'DEFAULT ''''', 'DEFAULT ''x''') WHERE name = 'activity'`, `table "activity"`},
		"missing": {`DROP TABLE sessions`, `lacks the`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestoring(t)
			r.ok(r.db.Close())
			r.ok(database.Foreign(t.Context(), "sqlite:"+r.backup))
			hostile := &fixture{T: t, engine: &engine{"sqlite", "sqlite:" + r.backup, r.clock}}
			hostile.tamper(c.statement)
			if err := database.Foreign(t.Context(), "sqlite:"+r.backup); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want one that says %q", err, c.says)
			}
			if _, err := r.restore(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("restore: error = %v, want one that says %q", err, c.says)
			}
			equal(t, "the database is as it was", r.companies(r.url), "acme later")
		})
	}
}

// A database of every earlier version has nothing foreign, before and after its upgrade.
func TestForeign_KnowsEveryVersion(t *testing.T) {
	t.Parallel()
	e := emptyEngine(t, "sqlite")
	r := restoring{&fixture{T: t, engine: e}, "", ""}
	for _, version := range []int64{84, 150, 191, 205} {
		r.url = "sqlite:" + filepath.Join(t.TempDir(), "old.db")
		r.ok(database.MigrateTo(t.Context(), r.url, version))
		if err := database.Foreign(t.Context(), r.url); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
		r.ok(r.openOnce().Close())
		if err := database.Foreign(t.Context(), r.url); err != nil {
			t.Errorf("version %d after the upgrade: %v", version, err)
		}
	}
}
