package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

const (
	// flushEvery is how late a coalesced note is written at most, save for the
	// time that the writing takes.
	flushEvery = 5 * time.Second
	// flushMost is how many notes wait at most; one more writes them at once.
	flushMost = 10_000
	// flushRows is how many rows one statement updates.
	flushRows = 200
)

// LastUsed collects "last seen" notes, one an id, and writes them in batches, so
// that a busy key or device costs a row a few seconds instead of one a call.
type LastUsed struct {
	db    *DB
	table string
	key   string // the column with the id
	field string // the column with the time

	mu    sync.Mutex
	notes map[string]int64
	full  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

// NewLastUsed starts the collector of a column, whose rows have their ids in key; Close writes
// what is left.
func (db *DB) NewLastUsed(table, key, field string) *LastUsed {
	t := &LastUsed{db: db, table: table, key: key, field: field, notes: map[string]int64{},
		full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go t.loop()
	db.onClose(t.close)
	return t
}

// Note keeps the newest time of an id. It never waits for the database.
func (t *LastUsed) Note(id string, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.notes[id]; !known && len(t.notes) >= 2*flushMost {
		return // the database is that far behind: a last-seen time is what may be lost
	}
	t.notes[id] = max(t.notes[id], at)
	if len(t.notes) >= flushMost {
		wait.Wake(t.full)
	}
}

func (t *LastUsed) loop() {
	defer close(t.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var trouble wait.Trouble
	for {
		select {
		case <-tick.C:
		case <-t.full:
		case <-t.stop:
			return
		}
		err := t.flush()
		if err == nil {
			trouble.Ended(t.db.now())
		} else if _, tell := trouble.Failed(err, t.db.now()); tell {
			t.db.logger.Error("cannot write last-seen times; they are tried again", slog.String("table", t.table), slog.Any("error", err))
		}
	}
}

// close writes the notes. That they are lost, as on a full disk, is no reason for a stop to fail.
func (t *LastUsed) close() error {
	close(t.stop)
	<-t.done
	if err := t.flush(); err != nil {
		t.db.logger.Error("last-seen times are lost", slog.String("table", t.table), slog.Any("error", err))
	}
	return nil
}

// flush writes the notes; those that fail are kept for the next time.
func (t *LastUsed) flush() error {
	t.mu.Lock()
	notes := t.notes
	t.notes = map[string]int64{}
	t.mu.Unlock()
	if len(notes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit) // of all, so that a stop ends
	defer cancel()
	ids := slices.Sorted(maps.Keys(notes)) // replicas lock the rows in the same order
	for n := 0; n < len(ids); n += flushRows {
		if err := t.write(ctx, ids[n:min(n+flushRows, len(ids))], notes); err != nil {
			for _, id := range ids[n:] {
				t.Note(id, notes[id])
			}
			return err
		}
	}
	return nil
}

// write writes the notes of some ids, of which flushRows at most, in a transaction of its own:
// who changes one of the rows waits for that alone.
func (t *LastUsed) write(ctx context.Context, ids []string, notes map[string]int64) error {
	rows := 1
	if len(ids) > 1 { // filled up with rows that match nothing: two texts to prepare instead of two hundred
		rows = flushRows
	}
	args := make([]any, 0, 2*rows)
	for _, id := range ids {
		args = append(args, id, notes[id])
	}
	for len(args) < cap(args) {
		args = append(args, "", int64(0))
	}
	values := strings.TrimSuffix(strings.Repeat("(CAST(? AS TEXT), CAST(? AS BIGINT)), ", rows), ", ")
	_, err := t.db.ExecRelaxed(ctx, `UPDATE `+t.table+` SET `+t.field+` = v.column2 FROM (VALUES `+values+`) AS v
		WHERE `+t.table+`.`+t.key+` = v.column1 AND `+t.table+`.`+t.field+` < v.column2`, args...)
	return err
}
