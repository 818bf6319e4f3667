package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/musterhq/muster/internal/resource"
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
	// Changed is run in the transaction that changed the tables; nil: nothing is.
	Changed Work
	// Spent is told what each piece of work cost, with the context of the work, from
	// several goroutines; tests count with it. Nil in production.
	Spent func(ctx context.Context, c Cost)
	// Logger gets the errors that no caller waits for; nil: they are dropped.
	Logger *slog.Logger

	patient bool // see DB
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	now     func() time.Time
	clock   *clock // nil: now is this machine's
	logger  *slog.Logger
	dialect Dialect
	changed Work // see Options
	patient bool // statements on PostgreSQL may take as long as they need

	pool    *sql.DB // PostgreSQL's only pool; SQLite's readers
	reader  runner  // runs statements on pool
	writer  *writer // SQLite only
	trace   atomic.Pointer[func(query string, args []any)]
	spent   func(ctx context.Context, c Cost) // nil: no one counts
	closers []func() error                    // run by Close in reverse order

	wakes    *wakes
	replica  atomic.Pointer[string] // see Present
	outdated atomic.Pointer[error]  // see Current
	storage  storage
}

// Open opens the database. What it does with an empty one, with a SQLite file
// that does not exist, and with one of another version, Options.Schema says; an
// error about the version is a *SchemaError, and then nothing was written. Its
// errors name the setting at fault, never a password.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{now: o.Now, logger: o.Logger, changed: o.Changed, patient: o.patient, spent: o.Spent, wakes: &wakes{id: resource.NewID(),
		logger: o.Logger, quiet: 20 * time.Second, listeners: map[string][]*listener{},
		pending: map[string]map[string]struct{}{}, everyone: map[string]bool{}}}
	if err := db.open(ctx, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if o.ServerClock && !db.Embedded() {
		db.clock = &clock{local: o.Now}
		db.now = db.clock.Now
	}
	if err := db.SetClock(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
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

// Dialect is what differs between the engines.
func (db *DB) Dialect() Dialect { return db.dialect }

// Embedded reports whether the engine is SQLite.
func (db *DB) Embedded() bool {
	_, embedded := db.dialect.(sqliteDialect)
	return embedded
}

// OneWriter reports whether a writing transaction is alone, as on a SQLite file that was
// opened for writing.
func (db *DB) OneWriter() bool { return db.writer != nil }

// OnStatement has f told of every statement that db runs; tests look at them.
func (db *DB) OnStatement(f func(query string, args []any)) { db.trace.Store(&f) }

// Ping reports whether the database can be read.
func (db *DB) Ping(ctx context.Context) error {
	_, err := Value[int64](ctx, db.Read(), `SELECT 1`)
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
