package database_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

// try opens a database, closes it again, and returns why it was refused.
func (e *engine) try(ctx context.Context, use database.SchemaUse) error {
	db, err := database.Open(ctx, database.Options{URL: e.url, Now: e.clock.Now, Schema: use})
	if err != nil {
		return err
	}
	return db.Close()
}

// refused fails the test unless the error is a *database.SchemaError that says so.
func (f *fixture) refused(err error, says string) {
	f.Helper()
	if _, ok := errors.AsType[*database.SchemaError](err); !ok || !strings.Contains(err.Error(), says) ||
		strings.Contains(err.Error(), "\n") {
		f.Fatalf("error = %v, want a refusal in one line that says %q", err, says)
	}
}

func TestOpen_EmptyDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, engine: emptyEngine(t, engine)}
			f.refused(f.try(t.Context(), database.Existing), "the database is empty: `muster company create`")
			found, err := database.Inspect(t.Context(), f.url)
			f.ok(err)
			equal(f, "empty after reading", found.Empty(), true)
			if path, ok := strings.CutPrefix(f.url, "sqlite:"); ok {
				left, err := filepath.Glob(path + "*")
				f.ok(err)
				equal(f, "files", left, nil)
			}
			f.ok(f.try(t.Context(), database.SetUp))
			f.ok(f.try(t.Context(), database.Existing))
		})
	}
}

func TestOpen_OlderDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, engine: emptyEngine(t, engine)}
			f.ok(database.MigrateTo(t.Context(), f.url, 33, firstRows...))
			for _, use := range []database.SchemaUse{database.SetUp, database.Existing} {
				f.refused(f.try(t.Context(), use), "made by an older Muster")
			}
			found, err := database.Inspect(t.Context(), f.url)
			f.ok(err)
			equal(f, "schema after refusals", found.Schema, int64(1))
			f.ok(f.try(t.Context(), database.Upgrade))
			f.ok(f.try(t.Context(), database.Existing))
			found, err = database.Inspect(t.Context(), f.url)
			f.ok(err)
			equal(f, "version", found.Version, database.Version{Schema: database.SchemaNumber(), LowestWriter: database.LowestWriter})
		})
	}
}

// A failing migration leaves the database as it was, also for the older program.
func TestOpen_MigrationFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from          int64
		before, fails string // the migration meets what it makes itself
		was           database.Version
	}{
		{82, `ALTER TABLE commands ADD COLUMN sender TEXT NOT NULL DEFAULT ''`, "0084_senders.sql",
			database.Version{Schema: 1, LowestWriter: 1}},
		{341, `CREATE TABLE asset_contacts (a BIGINT)`, "0350_asset_contacts.sql", database.Version{Schema: 46, LowestWriter: 44}},
	} {
		for _, engine := range []string{"sqlite", "postgres"} {
			t.Run(engine+" "+c.fails, func(t *testing.T) {
				t.Parallel()
				f := &fixture{T: t, engine: emptyEngine(t, engine)}
				f.ok(database.MigrateTo(t.Context(), f.url, c.from, c.before))
				if c.was.Schema > 1 {
					f.ok(database.SetVersion(t.Context(), f.url, c.was.Schema, c.was.LowestWriter))
				}
				err := f.try(t.Context(), database.Upgrade)
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error = %v, want the migration's name", err)
				}
				found, err := database.Inspect(t.Context(), f.url)
				f.ok(err)
				equal(f, "version", found.Version, c.was)
			})
		}
	}
}

// A program that waited while another one failed, and let older programs in, ends those again.
func TestOpen_OlderProgramsWereLetIn(t *testing.T) {
	t.Parallel()
	f := &fixture{T: t, engine: emptyEngine(t, "sqlite")}
	f.ok(database.MigrateTo(t.Context(), f.url, 341, `CREATE TABLE told (n BIGINT)`, `CREATE TRIGGER let_in AFTER UPDATE ON versions
		WHEN NEW.schema_number = 46 AND NEW.lowest_writer > 44 BEGIN INSERT INTO told VALUES (1);
		UPDATE versions SET lowest_writer = 44 WHERE (SELECT COUNT(*) FROM told) = 1; END`))
	f.ok(database.SetVersion(t.Context(), f.url, 46, 44))
	db := f.openAs(t, database.Upgrade)
	told, err := db.Text(t.Context(), `SELECT n FROM told`)
	f.ok(err)
	equal(f, "times that older programs were told to end", len(told), 2)
	tells, err := db.Text(t.Context(), `SELECT holder FROM leases WHERE name = 'upgrade'`)
	f.ok(err)
	equal(f, "programs that told them", len(tells), 1)
}

func TestOpen_NewerDatabase(t *testing.T) {
	withCompany(t, func(f *fixture) {
		own := database.SchemaNumber()
		version := func(schema, lowest int64) {
			f.ok(database.SetVersion(f.Context(), f.url, schema, lowest))
		}
		version(own+3, own) // the newer program lets this one write
		f.ok(f.try(f.Context(), database.Upgrade))
		f.refused(f.try(f.Context(), database.SetUp), "changed by a newer Muster")
		f.refused(f.try(f.Context(), database.Existing), "changed by a newer Muster")
		f.ok(f.db.Current(f.Context()))

		version(own, own+1) // a newer program told this one to end, and may have been killed
		_, err := f.db.Lease(f.Context(), "upgrade", "newer", 2*time.Minute)
		f.ok(err)
		f.refused(f.try(f.Context(), database.Upgrade), "a newer Muster began to change the database")
		f.clock.Advance(2 * time.Minute)
		f.ok(f.try(f.Context(), database.Existing))
		f.ok(f.try(f.Context(), database.Upgrade))
		found, err := database.Inspect(f.Context(), f.url)
		f.ok(err)
		equal(f, "version", found.Version, database.Version{Schema: own, LowestWriter: database.LowestWriter})

		version(own+3, own+1)
		for _, use := range []database.SchemaUse{database.Upgrade, database.SetUp, database.Existing} {
			f.refused(f.try(f.Context(), use), "use the newer program, or restore a backup")
		}
		f.code(fault.Unavailable, f.db.Present(f.Context()))
		equal(f, "outdated", f.db.Outdated(), true)
		f.code(fault.Unavailable, f.db.CreateCompany(f.Context(), f.company))
		_, err = f.db.Lease(f.Context(), "work", "me", time.Minute)
		f.code(fault.Unavailable, err)
		if _, err := f.db.Companies(f.Context()); err != nil {
			f.Errorf("reading: %v", err)
		}
		version(own, database.LowestWriter)
	})
}

// speak runs a program of the first version, which has said that it is present, until
// the context ends. What it ends in is sent.
func (f *fixture) speak(ctx context.Context) <-chan error {
	f.Helper()
	spoken, present := make(chan error, 1), make(chan struct{})
	go func() { spoken <- database.Speak(ctx, f.url, f.clock.Now, func() { close(present) }) }()
	select {
	case <-present:
	case err := <-spoken:
		f.Fatalf("the older program could not say that it is present: %v", err)
	}
	return spoken
}

// A program of the first version cannot be told to end; one that has ended is
// not waited for beyond its last word.
func TestOpen_FirstVersionStillServes(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, engine: emptyEngine(t, engine)}
			f.ok(database.MigrateTo(t.Context(), f.url, 84))
			speaking, stop := context.WithCancel(t.Context())
			spoken := f.speak(speaking)
			f.refused(f.try(t.Context(), database.Upgrade), "stop every older `muster serve`")
			stop()
			f.ok(<-spoken)
			found, err := database.Inspect(t.Context(), f.url)
			f.ok(err)
			equal(f, "schema", found.Schema, int64(1))
			f.ok(f.try(t.Context(), database.Upgrade)) // after its silence, by a clock that stands
		})
	}
}

func TestRecount(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		f.observe(f.joined("d2", a.Device.PolicyID))
		// An older program wrote beside a newer one. There is nothing to explain the statements
		// of this connection, which read everything.
		db, err := database.Open(f.Context(), database.Options{URL: f.url, Now: f.clock.Now})
		f.ok(err)
		f.ok(db.Write(f.Context(), nil, `UPDATE patch_counts SET count = count + 7`, `DELETE FROM asset_counts`,
			`INSERT INTO asset_counts (company_id, status, policy_id, count) VALUES ('gone', 'ACTIVE', '', 3)`))
		wrong, err := db.Recount(f.Context())
		f.ok(err)
		if wrong == 0 {
			f.Error("no count was wrong")
		}
		f.checkCounts()
		n, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID, Status: asset.Active})
		f.ok(err)
		equal(f, "active", n, int64(2))
		wrong, err = db.Recount(f.Context())
		f.ok(err)
		equal(f, "wrong counts the second time", wrong, int64(0))
		f.ok(db.Close())
	})
}

func TestAdmitKeys(t *testing.T) {
	withCompany(t, func(f *fixture) {
		admit := func(accept bool, ids ...string) ([]string, error) {
			return f.db.AdmitKeys(f.Context(), ids, accept)
		}
		_, err := admit(false, "a", "b")
		f.ok(err)
		_, err = admit(false, "b", "a", "c") // a rotation
		f.ok(err)
		_, err = admit(false, "a", "b") // the file from before the rotation
		missing, ok := errors.AsType[*database.MissingKeys](err)
		if !ok {
			f.Fatalf("error = %v, want MissingKeys", err)
		}
		equal(f, "missing", missing.IDs, []string{"c"})
		given, err := admit(true, "x")
		f.ok(err)
		equal(f, "given up", given, []string{"a", "b", "c"})
		_, err = admit(false, "x")
		f.ok(err)
		if _, err := admit(false, "a", "b", "c"); err == nil {
			f.Error("the former file is taken although it lacks the key that is used now")
		}
		_, err = admit(false, "a", "x") // a lost key was found
		f.ok(err)
		found, err := database.Inspect(f.Context(), f.url)
		f.ok(err)
		equal(f, "needed", found.Keys, []string{"a", "x"})
	})
}

func TestBackup_BesideAnotherLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	backup := filepath.Join(t.TempDir(), "backup.db")
	f.ok(f.db.Backup(f.Context(), backup))
	f.newCompany("later")
	path := strings.TrimPrefix(f.url, "sqlite:")
	log, err := os.ReadFile(path + "-wal")
	f.ok(err)
	if len(log) == 0 {
		t.Fatal("there is no log to leave behind")
	}
	e := &engine{"sqlite", "sqlite:" + filepath.Join(t.TempDir(), "muster.db"), f.clock}
	place := strings.TrimPrefix(e.url, "sqlite:")
	content, err := os.ReadFile(backup)
	f.ok(err)
	f.ok(os.WriteFile(place, content, 0o600))
	f.ok(os.WriteFile(place+"-wal", log, 0o600))
	for _, use := range []database.SchemaUse{database.Upgrade, database.SetUp, database.Existing} {
		if err := e.try(t.Context(), use); err == nil || !strings.Contains(err.Error(), "muster restore") {
			t.Fatalf("error = %v, want a refusal that names muster restore", err)
		}
	}
	if _, err := database.Inspect(t.Context(), e.url); err == nil {
		t.Error("Inspect took a backup beside another database's log")
	}
	after, err := os.ReadFile(place)
	f.ok(err)
	equal(t, "changed", string(after) != string(content), false)

	f.ok(os.Remove(place + "-wal"))
	db := e.openAs(t, database.Upgrade) // the mark goes
	f.ok(db.CreateCompany(t.Context(), f.newCompanyValue("second")))
	if _, err := os.Stat(place + "-wal"); err != nil {
		t.Fatal(err)
	}
	f.ok(e.try(t.Context(), database.Existing)) // beside its own log
}

func (f *fixture) newCompanyValue(slug string) (c company.Company) {
	c = f.company
	c.ID, c.Slug, c.Enterprise = c.ID+"2", slug, ""
	return c
}
