package engine

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// storage is what is known of the disk from the writes that failed for it.
type storage struct {
	failures atomic.Int64
	trouble  atomic.Pointer[storageTrouble]
}

type storageTrouble struct {
	why string
	at  time.Time
}

// troubleFor is how long a write that the disk refused counts: a full disk still takes
// some small ones.
const troubleFor = 15 * time.Second

// note counts a write that the disk refused. It returns the error.
func (s *storage) note(err error, now time.Time) error {
	if why := refusedByDisk(err); why != "" {
		s.failures.Add(1)
		s.trouble.Store(&storageTrouble{why, now})
	}
	return err
}

// refusedByDisk says why a write failed, if it was for the disk; else it is empty.
func refusedByDisk(err error) string {
	if err == nil {
		return ""
	}
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
	case refused.Code == "53100":
		return "full"
	case refused.Code == "25006":
		return "not writable"
	case strings.HasPrefix(refused.Code, "58"):
		return "failing"
	}
	return ""
}

// StorageTrouble says, in words without names, why the disk refused a write within the
// last seconds; empty: it did not.
func (db *DB) StorageTrouble() string {
	last := db.storage.trouble.Load()
	if last == nil || db.now().Sub(last.at) >= troubleFor {
		return ""
	}
	return last.why
}

// WriteFailures counts the writes that the disk refused since the database was opened.
func (db *DB) WriteFailures() int64 { return db.storage.failures.Load() }
