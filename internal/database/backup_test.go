package database_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

func TestBackup_IsACompleteDatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	a := f.enroll("d", f.newPolicy("p").ID)
	c := f.begin(a, command.Lock)
	path := filepath.Join(t.TempDir(), "it's a copy.db")

	// Writers go on at the same time.
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			o := f.joined(fmt.Sprint("other", n), "")
			if _, err := f.db.Observe(f.Context(), o); err != nil {
				f.Error(err)
			}
		})
	}
	f.ok(os.WriteFile(path+".partial", []byte("of a backup that was killed"), 0o600))
	f.ok(f.db.Backup(f.Context(), path))
	all.Wait()
	if _, err := os.Stat(path + ".partial"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left beside the copy: %v", err)
	}
	f.code(fault.Refused, f.db.Backup(f.Context(), path))

	restored, err := database.Open(f.Context(), database.Options{URL: "sqlite:" + path, Now: f.clock.Now})
	f.ok(err)
	defer func() { f.ok(restored.Close()) }()
	got, err := restored.Command(f.Context(), c.ID)
	f.ok(err)
	equal(f, "command", got, c)
	problems, err := restored.Text(f.Context(), `PRAGMA integrity_check`)
	f.ok(err)
	equal(f, "integrity", problems, []string{"ok"})
}

func TestBackup_PostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, postgresEngine(t))
	f.code(fault.Unsupported, f.db.Backup(f.Context(), filepath.Join(t.TempDir(), "x")))
}
