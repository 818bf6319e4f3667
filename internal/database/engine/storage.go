package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// storage counts the writes that failed because of the database's disk, and keeps the last. Concurrent use is safe.
type storage struct {
	failures atomic.Int64
	trouble  atomic.Pointer[storageTrouble]
}

// storageTrouble is a write that the disk refused.
type storageTrouble struct {
	why string // see refusedByDisk
	at  time.Time
}

// troubleFor is how long StorageTrouble reports a refused write. A later write that succeeds does not end it: a full disk
// still accepts some small writes.
const troubleFor = 15 * time.Second

// note counts err if the disk refused a write, and returns it unchanged. now is the time of the write; err may be nil.
func (s *storage) note(err error, now time.Time) error {
	if why := refusedByDisk(err); why != "" {
		s.failures.Add(1)
		s.trouble.Store(&storageTrouble{why, now})
	}
	return err
}

// refusedByDisk returns what is wrong with the disk, such as "full"; empty: err has another cause.
func refusedByDisk(err error) string {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_FULL:
		return "full"
	case sqlite3.SQLITE_IOERR:
		return "full or failing"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return "not writable"
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return ""
	case refused.Code == "53100": // disk_full
		return "full"
	case refused.Code == "25006": // read_only_sql_transaction
		return "not writable"
	case strings.HasPrefix(refused.Code, "58"): // system errors, such as io_error
		return "failing"
	}
	return ""
}

// StorageTrouble returns why the disk refused a write within troubleFor, without names of files or hosts; empty: it did not.
func (db *DB) StorageTrouble() string {
	last := db.storage.trouble.Load()
	if last == nil || db.now().Sub(last.at) >= troubleFor {
		return ""
	}
	return last.why
}

// WriteFailures counts the writes that the disk refused since the database was opened.
func (db *DB) WriteFailures() int64 { return db.storage.failures.Load() }

// Engine is the name of the database's engine.
func (db *DB) Engine() string {
	if db.Embedded() {
		return "SQLite"
	}
	return "PostgreSQL"
}

// Size is how much the database takes on its disk, in bytes, without SQLite's log.
func (db *DB) Size(ctx context.Context) (int64, error) {
	if !db.Embedded() {
		return Value[int64](ctx, db.Read(), `SELECT pg_database_size(current_database())`)
	}
	return Value[int64](ctx, db.Read(), `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`)
}
