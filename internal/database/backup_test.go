package database_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	f.ok(f.db.Backup(f.Context(), path))
	all.Wait()
	f.code(fault.Refused, f.db.Backup(f.Context(), path))
	made, err := f.db.BackedUp(f.Context())
	f.ok(err)
	equal(f, "backed up", made.Equal(f.clock.Now().Truncate(time.Millisecond)), true)

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

// A backup to another disk is complete also if the database, whose disk is full, cannot note its time: the error says so.
func TestBackup_WhoseTimeCannotBeNoted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	f.tamper(`CREATE TRIGGER full BEFORE INSERT ON operator_acts BEGIN SELECT RAISE(ABORT, 'no room'); END`)
	path := filepath.Join(t.TempDir(), "backup.db")
	err := f.db.Backup(f.Context(), path)
	if err == nil || !strings.HasPrefix(err.Error(), "the backup "+path+" is complete, but") || !strings.Contains(err.Error(), "no room") {
		t.Errorf("error = %v, want that the backup is complete", err)
	}
	found, err := database.Inspect(f.Context(), "sqlite:"+path)
	f.ok(err)
	equal(f, "schema of the backup", found.Schema, database.SchemaNumber())
}

// What a backup under another name left when it was killed goes with the next one. What
// another backup writes, and files of other programs, stay.
func TestBackup_RemovesLeftovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		f.ok(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const header = "SQLite format 3\x00"
	write("muster-2026-11-01.db.muster-backup-17.partial", header+"the first pages")
	write("muster-2026-11-01.db.muster-backup-17.partial-journal", "")
	write("muster-2026-11-02.db.muster-backup-4.partial", "")
	write("download.db.partial", header+"of another program")
	write("empty.partial", "")
	write("new.db.partial", "of another program, too")
	write("muster-2026-11-03.db", header)
	const beingMade = "muster-2026-11-04.db.muster-backup-5.partial"
	other, err := os.OpenFile(write(beingMade, header), os.O_RDWR, 0)
	f.ok(err)
	f.ok(database.LockFile(other))
	f.ok(f.db.Backup(f.Context(), filepath.Join(dir, "new.db")))
	f.ok(other.Close())
	var left []string
	entries, err := os.ReadDir(dir)
	f.ok(err)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	equal(f, "left", left, []string{"download.db.partial", "empty.partial", "muster-2026-11-03.db", beingMade, "new.db",
		"new.db.partial"})
}

// Backups into one directory at a time do not remove each other's files, and leave only themselves.
func TestBackup_Concurrent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	const count = 8
	dir, failed := t.TempDir(), make([]error, count)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() { failed[i] = f.db.Backup(f.Context(), filepath.Join(dir, fmt.Sprintf("%d.db", i))) })
	}
	all.Wait()
	f.ok(errors.Join(failed...))
	entries, err := os.ReadDir(dir)
	f.ok(err)
	equal(f, "files", len(entries), count)
}

func TestBackup_PostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, postgresEngine(t))
	f.code(fault.Unsupported, f.db.Backup(f.Context(), filepath.Join(t.TempDir(), "x")))
}
