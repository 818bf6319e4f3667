package database_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database"
)

// restoring is a place with a database, and a backup of it.
type restoring struct {
	*fixture
	path, backup string
}

func newRestoring(t *testing.T) restoring {
	f := &fixture{T: t, engine: sqliteEngine(t)}
	r := restoring{f, strings.TrimPrefix(f.url, "sqlite:"), filepath.Join(t.TempDir(), "backup.db")}
	db := r.openOnce()
	f.db = db
	f.company = f.newCompany("acme")
	f.ok(db.Backup(t.Context(), r.backup))
	f.newCompany("later")
	return r
}

// openOnce opens the database; the test closes it.
func (r restoring) openOnce() *database.DB {
	r.Helper()
	db, err := database.Open(r.Context(), database.Options{URL: r.url, Now: r.clock.Now, Schema: database.Upgrade})
	r.ok(err)
	return db
}

func (r restoring) restore() (aside string, err error) {
	prepared, err := database.PrepareRestore(r.Context(), r.path, r.backup)
	if err != nil {
		return "", err
	}
	return prepared.Commit(r.Context(), r.clock.Now())
}

func (r restoring) companies(url string) (slugs string) {
	r.Helper()
	db, err := database.Open(r.Context(), database.Options{URL: url, Now: r.clock.Now, Schema: database.Existing})
	r.ok(err)
	all, err := db.Companies(r.Context())
	r.ok(err)
	for _, c := range all {
		slugs += " " + c.Slug
	}
	r.ok(db.Close())
	return strings.TrimSpace(slugs)
}

func TestRestore(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	if _, err := r.restore(); err == nil || !strings.Contains(err.Error(), "stop `muster serve`") {
		t.Fatalf("error = %v, want a refusal while the database is open", err)
	}
	r.ok(r.db.Close())
	aside, err := r.restore()
	r.ok(err)
	beside, err := filepath.Glob(strings.ReplaceAll(r.path, "%", "?") + "*")
	r.ok(err)
	equal(t, "files", strings.Join(beside, " "), r.path+" "+aside)
	equal(t, "restored", r.companies(r.url), "acme")
	equal(t, "kept", r.companies("sqlite:"+aside), "acme later")
	equal(t, "backup", r.companies("sqlite:"+r.backup), "acme")
	r.ok(r.openOnce().Close())
}

// A process that was killed leaves its log, which belongs to the old database.
func TestRestore_AfterAKill(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	main, err := os.ReadFile(r.path)
	r.ok(err)
	log, err := os.ReadFile(r.path + "-wal")
	r.ok(err)
	r.ok(r.db.Close())
	r.ok(os.WriteFile(r.path, main, 0o600))
	r.ok(os.WriteFile(r.path+"-wal", log, 0o600))
	aside, err := r.restore()
	r.ok(err)
	equal(t, "restored", r.companies(r.url), "acme")
	equal(t, "kept", r.companies("sqlite:"+aside), "acme later")
	r.ok(database.QuickCheck(t.Context(), r.url))
}

// Through a link, a database has the log that is beside its file: a backup beside the log of
// another database is refused.
func TestLook_ThroughALink(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	link := filepath.Join(t.TempDir(), "link.db")
	r.ok(os.Symlink(r.path, link))
	log, err := os.ReadFile(r.path + "-wal")
	r.ok(err)
	r.ok(r.db.Close())
	backup, err := os.ReadFile(r.backup)
	r.ok(err)
	r.ok(os.WriteFile(r.path, backup, 0o600))
	r.ok(os.WriteFile(r.path+"-wal", log, 0o600))
	if _, err := database.Inspect(t.Context(), "sqlite:"+link); err == nil || !strings.Contains(err.Error(), "it is a backup") {
		t.Errorf("error = %v, want the refusal of a log that belongs to another database", err)
	}
}

func TestRestore_OverADamagedDatabase(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	r.ok(r.db.Close())
	r.ok(os.WriteFile(r.path, []byte(strings.Repeat("not a database ", 1000)), 0o600))
	err := r.try(t.Context(), database.Upgrade)
	if err == nil || !strings.Contains(err.Error(), "put a backup in its place with `muster restore FILE`") {
		t.Fatalf("error = %v, want the remedy", err)
	}
	aside, err := r.restore()
	r.ok(err)
	equal(t, "restored", r.companies(r.url), "acme")
	kept, err := os.ReadFile(aside)
	r.ok(err)
	equal(t, "kept", string(kept[:14]), "not a database")
}

func TestRestore_WithoutAnOldDatabase(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	r.ok(r.db.Close())
	r.ok(os.Remove(r.path))
	aside, err := r.restore()
	r.ok(err)
	equal(t, "aside", aside, "")
	equal(t, "restored", r.companies(r.url), "acme")
}

func TestRestore_DamagedBackup(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	r.ok(r.db.Close())
	content, err := os.ReadFile(r.backup)
	r.ok(err)
	for name, damage := range map[string][]byte{
		"no database": []byte("hello"),
		"cut off":     content[:len(content)/2],
		"overwritten": append(append(append([]byte{}, content[:20_000]...), make([]byte, 30_000)...), content[50_000:]...),
		"empty":       {},
	} {
		t.Run(name, func(t *testing.T) {
			r.ok(os.WriteFile(r.backup, damage, 0o600))
			if _, err := r.restore(); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error = %v, want one line", name, err)
			}
			equal(t, name, r.companies(r.url), "acme later")
			left, err := filepath.Glob(r.path + ".restoring*")
			r.ok(err)
			equal(t, name+": left behind", left, nil)
		})
	}
}
