package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/test/poll"
)

// A transaction that holds a row delays the notes of few others: notes are not one transaction.
func TestLastUsed_HeldRowDelaysFew(t *testing.T) {
	t.Parallel()
	db := onPostgres(t).open(t) // SQLite has one writer at a time
	if err := write(t.Context(), db, nil, `CREATE TABLE seen (id TEXT PRIMARY KEY, at BIGINT NOT NULL)`,
		`INSERT INTO seen (id, at) VALUES ('a', 0), ('z', 0)`); err != nil {
		t.Fatal(err)
	}
	notes := db.NewLastUsed("seen", "id", "at")
	written := func(id string) func() error {
		return func() error {
			at, err := engine.Value[int64](t.Context(), db.Read(), `SELECT at FROM seen WHERE id = ?`, id)
			if err == nil && at != 2 {
				err = errors.New("is not written")
			}
			return err
		}
	}
	err := db.Write(t.Context(), func(ctx context.Context, tx engine.Tx) error {
		if err := tx.Exec(ctx, `UPDATE seen SET at = 1 WHERE id = 'z'`); err != nil {
			return err
		}
		notes.Note("a", 2)
		notes.Note("z", 2)
		for n := range 10_000 { // so many are written at once
			notes.Note(fmt.Sprint("b", n), 2)
		}
		poll.Until(t, "the note of a row that is free", written("a"))
		return nil
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the note of the row that was held", written("z"))
}

// Notes that cannot be written do not make a stop fail; they are logged.
func TestLastUsed_LostAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		var log strings.Builder
		db, err := engine.Open(t.Context(), engine.Options{URL: p.url, Now: now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		db.NewLastUsed("missing", "id", "at").Note("a", 2)
		if err := db.Close(); err != nil || !strings.Contains(log.String(), `msg="last-seen times are lost" table=missing`) {
			t.Errorf("%v was returned, and logged: %s", err, &log)
		}
	})
}
