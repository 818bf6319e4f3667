package database_test

import (
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/fault"
)

// expired reads with a cursor from before a restore or a copy: it is refused, and oldest
// goes on from the oldest event that is there, to the events that come after.
func (f *fixture) expired(cursor string, kept []string) {
	f.Helper()
	r := f.reader(f.db, all())
	r.after = cursor
	_, err := r.read(f.Context())
	f.code(fault.CursorExpired, err)
	r.after = fault.From(err).Oldest
	equal(f, "events after oldest", f.texts(r.rest(f)), kept)
	f.ok(f.lose(f.Context(), f.db, "d", true))
	equal(f, "events after the next change", f.texts(r.rest(f)), append(kept, "device.lost_mode ON"))
	r.after = cursor
	_, err = r.read(f.Context())
	f.code(fault.CursorExpired, err)
}

// A reader that is ahead of a backup, or exactly where it is, reads again after a restore.
func TestEvents_RestoredDatabaseExpiresCursors(t *testing.T) {
	t.Parallel()
	for _, ahead := range []bool{true, false} {
		r := newRestoring(t)
		r.enroll("d", "")
		reader := r.reader(r.db, all())
		reader.rest(r.fixture)
		r.backup += ".events"
		r.ok(r.db.Backup(t.Context(), r.backup))
		if ahead {
			r.ok(r.lose(t.Context(), r.db, "d", true))
			r.ok(r.lose(t.Context(), r.db, "d", false))
			reader.rest(r.fixture)
		}
		r.ok(r.db.Close())
		_, err := r.restore()
		r.ok(err)
		r.db = r.openOnce()
		r.expired(reader.after, []string{"device.enrolled"})
		r.ok(r.db.Close())
	}
}

// A copy on the other engine is another history, also when it is copied back.
func TestEvents_CopiedDatabaseExpiresCursors(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	f.enroll("d", "")
	before := f.reader(f.db, all())
	before.rest(f)
	kept := []string{"device.enrolled"}
	post := &engine{"postgres", pgtest.DSN(t), f.clock}
	_, err := database.Copy(t.Context(), database.Options{URL: f.url, Now: f.clock.Now}, post.url)
	f.ok(err)
	there := &fixture{T: t, engine: post, db: post.open(t), company: f.company}
	there.expired(before.after, kept)
	other := there.reader(there.db, all())
	other.rest(there)

	lite := &engine{"sqlite", emptyEngine(t, "sqlite").url, f.clock}
	_, err = database.Copy(t.Context(), database.Options{URL: post.url, Now: f.clock.Now}, lite.url)
	f.ok(err)
	back := &fixture{T: t, engine: lite, db: lite.open(t), company: f.company}
	for _, cursor := range []string{before.after, other.after} {
		r := back.reader(back.db, all())
		r.after = cursor
		_, err := r.read(t.Context())
		back.code(fault.CursorExpired, err)
	}
	back.ok(back.lose(t.Context(), back.db, "d", false))
	equal(t, "events of the copy", back.texts(back.reader(back.db, all()).rest(back)),
		append(kept, "device.lost_mode ON", "device.lost_mode OFF"))
}

// What PostgreSQL's own tools restored expires cursors by the statement that
// docs/how-to/recovery.md prescribes.
func TestEvents_RestoredPostgresExpiresCursors(t *testing.T) {
	t.Parallel()
	f := newFixture(t, postgresEngine(t))
	f.enroll("d", "")
	before := f.reader(f.db, all())
	before.rest(f)
	const statement = `DELETE FROM event_history`
	text, err := os.ReadFile("../../docs/how-to/recovery.md")
	f.ok(err)
	if !strings.Contains(string(text), statement) {
		t.Errorf("docs/how-to/recovery.md does not prescribe %q", statement)
	}
	f.tamper(statement)
	f.expired(before.after, []string{"device.enrolled"})
}
