package database_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/event"
)

// What a reader sees while the process that writes and numbers is killed is there
// afterwards, in the same places, and its cursor goes on with the rest.
func TestEvents_ReadWhileTheWriterIsKilled(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		f := newFixture(t, e)
		r := f.reader(f.db, all())
		for round := range 2 {
			var seen, killed atomic.Bool
			ended := make(chan error)
			go func() {
				for {
					last := killed.Load()
					some, err := r.read(f.Context())
					if some || err != nil {
						seen.Store(true)
					}
					if err != nil || last {
						ended <- err
						return
					}
				}
			}()
			killWriterWhen(t, e.url, func(lines int) bool { return lines >= 20+round*17 && seen.Load() })
			killed.Store(true)
			f.ok(<-ended)
			before, read := r.after, append([]event.View{}, r.events...)

			fresh := f.reader(f.open(f), all())
			fresh.rest(f)
			equal(f, "events that were read before the kill", fresh.events[:len(read)], read)
			r.rest(f)
			equal(f, "events by the old cursor "+before, r.events, fresh.events)
		}
	})
}

// Positions are committed with SQLite's full synchronization, whatever was written before,
// so that a power cut takes back no event that a reader has seen.
func TestEvents_PositionsAreDurable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	f.enroll("d", "")
	mode := func(relaxed bool) string {
		f.Helper()
		text, err := f.db.Synchronous(f.Context(), relaxed)
		f.ok(err)
		return text
	}
	equal(f, "synchronous of a relaxed write (NORMAL)", mode(true), "1")
	equal(f, "synchronous of any other write (FULL)", mode(false), "2")
	mode(true)
	numbered := 0
	f.db.OnStatement(func(query string, _ []any) {
		if strings.HasPrefix(query, "UPDATE events SET pos") {
			numbered++
			if f.db.Relaxed() {
				f.Error("positions are written in a relaxed transaction")
			}
		}
	})
	n, err := f.db.NumberRound(f.Context())
	f.ok(err)
	equal(f, "events that were numbered", n, 1)
	equal(f, "statements that were seen", numbered, 1)
}
