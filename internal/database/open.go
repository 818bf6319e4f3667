package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/musterhq/muster/internal/activity"
)

// Options configure a database.
type Options struct {
	// URL is "sqlite:PATH" or "postgres://…".
	URL string
	// Now is the clock. Required.
	Now func() time.Time
	// ServerClock corrects Now by a PostgreSQL server's clock, so that replicas
	// agree on the time whatever their machines' clocks say.
	ServerClock bool
	// Schema says what may be done with a database of another version.
	Schema SchemaUse
	// Alone refuses a SQLite file that another process has opened so. It is for what
	// serves.
	Alone bool
	// Prover proves entries of the activity log where they are written, and signs
	// heads if it is an activity.Signer; nil: they have no proof.
	Prover activity.Prover
	// Spent is told what each piece of work cost, with the context of the work, from
	// several goroutines; tests count with it. Nil in production.
	Spent func(ctx context.Context, c Cost)
	// Logger gets the errors that no caller waits for; nil: they are dropped.
	Logger *slog.Logger
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	now     func() time.Time
	clock   *clock // nil: now is this machine's
	logger  *slog.Logger
	prover  activity.Prover // nil: entries have no proof
	dialect dialect

	pool    *sql.DB // PostgreSQL's only pool; SQLite's readers
	reader  runner  // runs statements on pool
	writer  *writer // SQLite only
	trace   atomic.Pointer[func(query string, args []any)]
	spent   func(ctx context.Context, c Cost) // nil: no one counts
	closers []func() error                    // run by Close in reverse order

	keyUse, deviceUse *lastUsed
	wakes             *wakes
	deepFrom          int64                  // see Assets
	few               int                    // see whole
	replica           atomic.Pointer[string] // see Present
	outdated          atomic.Pointer[error]  // see Current
	storage           storage
}

// Open opens the database. What it does with an empty one, with a SQLite file
// that does not exist, and with one of another version, Options.Schema says; an
// error about the version is a *SchemaError, and then nothing was written. Its
// errors name the setting at fault, never a password.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{now: o.Now, logger: o.Logger, prover: o.Prover, spent: o.Spent, wakes: newWakes(o.Logger), deepFrom: deepFrom, few: few}
	if err := db.open(ctx, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, embedded := db.dialect.(sqliteDialect); o.ServerClock && !embedded {
		db.clock = &clock{local: o.Now}
		db.now = db.clock.Now
	}
	if err := db.setClock(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if o.Schema == Upgrade {
		if err := db.indexAssets(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	db.deviceUse = db.newLastUsed("assets", "last_seen_at")
	db.keyUse = db.newLastUsed("api_keys", "last_used_at")
	return db, nil
}

func (db *DB) open(ctx context.Context, o Options) error {
	if path, ok := strings.CutPrefix(o.URL, "sqlite:"); ok && path != "" {
		return wrapSQLite(path, db.openSQLite(ctx, path, o))
	}
	if postgresURL(o.URL) {
		return wrapPostgres(db.openPostgres(ctx, o))
	}
	return errNoDatabase
}

var errNoDatabase = errors.New("the database must be sqlite:PATH or a postgres:// URL")

func postgresURL(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

func wrapSQLite(path string, err error) error {
	if err == nil {
		return nil
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
		if unusable := Usable(path); unusable != nil {
			err = unusable
		}
	}
	return fmt.Errorf("cannot open the SQLite database %s: %w", path, explainSQLite(err))
}

func wrapPostgres(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot open the PostgreSQL database: %w", err)
}

// Ping reports whether the database can be read.
func (db *DB) Ping(ctx context.Context) error {
	_, err := value[int64](ctx, db.read(), `SELECT 1`)
	return err
}

// Close finishes writes under way, writes what was coalesced and closes the
// database. No method may be called afterwards.
func (db *DB) Close() error {
	var errs []error
	for i := len(db.closers) - 1; i >= 0; i-- {
		errs = append(errs, db.closers[i]())
	}
	db.closers = nil
	return errors.Join(errs...)
}

// onClose adds a step to Close; the last added runs first.
func (db *DB) onClose(f func() error) { db.closers = append(db.closers, f) }

// Remedy says what to do about an error of Open, Inspect or Look.
func Remedy(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return remedyPostgres(refused)
	}
	if unusable, ok := errors.AsType[*AccessError](err); ok {
		return unusable.Remedy
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "end the program that has locked the file, or try again"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "correct the path in MUSTER_DATABASE, or put a backup in the file's place with `muster restore FILE`"
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return "look whether the disk is full or failing; nothing that was answered for is lost"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
		return "let this user read and write the file and its directory, or correct the path in MUSTER_DATABASE"
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return "correct the host in MUSTER_DATABASE"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the database, or correct host and port in MUSTER_DATABASE"
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return "make the directory, or correct the path in MUSTER_DATABASE"
	case errors.Is(err, syscall.EACCES):
		return "let this user read and write the file and its directory, or correct the path in MUSTER_DATABASE"
	}
	return "correct MUSTER_DATABASE, or what it names"
}

// remedyPostgres goes by PostgreSQL's error codes.
func remedyPostgres(e *pgconn.PgError) string {
	switch {
	case e.Code == "3D000":
		return "create the database (`createdb`), or correct its name in MUSTER_DATABASE"
	case strings.HasPrefix(e.Code, "28"):
		return "correct the user or the password in MUSTER_DATABASE, or let the user in by pg_hba.conf"
	case e.Code == "42501":
		return "give the user of MUSTER_DATABASE the right to use the database and to create tables in it"
	case e.Code == "53300":
		return "raise max_connections of PostgreSQL, or end what uses its connections"
	case strings.HasPrefix(e.Code, "57P"):
		return "wait until PostgreSQL has started, or start it"
	case strings.HasPrefix(e.Code, "53"):
		return "give PostgreSQL's machine more disk or memory"
	}
	return "correct MUSTER_DATABASE, or what PostgreSQL complains of"
}
