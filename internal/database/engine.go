package database

import (
	"context"
	"os"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
)

// The names by which the queries of this package, and its callers, use package engine.
type (
	// Options configure a database. Open and Copy set Changed.
	Options = engine.Options
	// Cost is what work costs at the database.
	Cost = engine.Cost
	// Version is what a database says of itself. The zero value is of an empty one.
	Version = engine.Version
	// SchemaUse says what Open may do with a database that is not at SchemaNumber.
	SchemaUse = engine.SchemaUse
	// SchemaError refuses a database because of its version.
	SchemaError = engine.SchemaError
	// AccessError says why this process cannot use a file, and what to do.
	AccessError = engine.AccessError
	// TableCopy is one table that was copied: the same rows on both sides.
	TableCopy = engine.TableCopy

	conn = engine.Conn
	row  = engine.Row
)

// The uses of Open; see package engine.
const (
	SetUp    = engine.SetUp
	Existing = engine.Existing
	Upgrade  = engine.Upgrade
)

// PresentEvery is how often a replica that sends commands calls Present.
const PresentEvery = engine.PresentEvery

const fromFirst, ifFirst = engine.FromFirst, engine.IfFirst

// SchemaNumber is the number of this program and of the tables that it knows.
func SchemaNumber() int64 { return engine.SchemaNumber() }

// Remedy says what to do about an error of Open, Inspect or Look.
func Remedy(err error) string { return engine.Remedy(err) }

// QuickCheck reports damage of a SQLite file: pages that are lost, shared, or out of
// order. It reads the whole file and changes nothing. PostgreSQL checks itself.
func QuickCheck(ctx context.Context, url string) error { return engine.QuickCheck(ctx, url) }

// Foreign reports what a SQLite file has besides Muster's tables and indexes, or instead of
// them. It changes nothing. PostgreSQL is the business of those who run it.
func Foreign(ctx context.Context, url string) error { return engine.Foreign(ctx, url) }

// LockedBy returns the id of another process that keeps a SQLite file locked; 0: there is
// none. It must not be called while this process writes to the file.
func LockedBy(ctx context.Context, path string) (pid int, err error) {
	return engine.LockedBy(ctx, path)
}

// Linked returns the file that a link names, beside which its log is; any other path as it is.
func Linked(path string) string { return engine.Linked(path) }

// DiskFree is how many bytes the disk of a SQLite file has left for this user; false:
// that is not known.
func DiskFree(path string) (int64, bool) { return engine.DiskFree(path) }

// Usable returns an *AccessError if this process cannot write to a SQLite file, to the
// files beside it, or to its directory. What does not exist is usable.
func Usable(path string) error { return engine.Usable(path) }

// NoAccess is the error of a file that exists and that this user may not use.
func NoAccess(path string) error { return engine.NoAccess(path) }

// May reports whether a user can read a file, and write to it, by its owner and mode.
func May(info os.FileInfo, uid, gid uint32, write bool) bool {
	return engine.May(info, uid, gid, write)
}

// OwnerOf returns the user and the group of a file; false: they are not known.
func OwnerOf(path string) (uid, gid uint32, known bool) { return engine.OwnerOf(path) }

// Close finishes writes under way, writes what was coalesced and closes the
// database. No method may be called afterwards.
func (db *DB) Close() error { return db.engine.Close() }

// Ping reports whether the database can be read.
func (db *DB) Ping(ctx context.Context) error { return db.engine.Ping(ctx) }

// Engine is the name of the database's engine.
func (db *DB) Engine() string { return db.engine.Engine() }

// Size is how much the database takes on its disk, in bytes, without SQLite's log.
func (db *DB) Size(ctx context.Context) (int64, error) { return db.engine.Size(ctx) }

// Now is the time by which what is kept in the database begins and ends.
func (db *DB) Now() time.Time { return db.engine.Now() }

// ClockAhead is how far the server's clock is ahead of a local one. An embedded
// database has no clock of its own.
func (db *DB) ClockAhead(ctx context.Context, local func() time.Time) (time.Duration, error) {
	return db.engine.ClockAhead(ctx, local)
}

// Notify hints to every replica that something about ids changed. It does not
// wait for the other replicas. Call it after the change is committed.
func (db *DB) Notify(topic string, ids ...string) { db.engine.Notify(topic, ids...) }

// Listen has wake called with the ids of a topic's hints, from several
// goroutines; nil ids mean that hints may have been missed, and anything may
// have changed. wake must not block. stop ends it; a call under way may still
// finish.
func (db *DB) Listen(topic string, wake func(ids []string)) (stop func()) {
	return db.engine.Listen(topic, wake)
}

// Lease gives name to holder for ttl, or gives it longer to the holder that has
// it, and reports whether it did. What one replica at a time may do is done
// under a lease, and must be harmless should two think that they hold it: a
// replica that stalls longer than ttl does not know.
func (db *DB) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	return db.engine.Lease(ctx, name, holder, ttl)
}

// Release gives a lease back before it ends.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	return db.engine.Release(ctx, name, holder)
}

// Present says that this process is alive, unless a newer program ended its
// work, which is an error then (see Current). From the first call on its commands
// carry its name, and are Abandoned soon after the last.
func (db *DB) Present(ctx context.Context) error { return db.engine.Present(ctx) }

// Absent takes back what Present said. A newer program waits for that before it
// changes the tables, so it is done also when this program may write nothing else.
func (db *DB) Absent(ctx context.Context) error { return db.engine.Absent(ctx) }

// Replicas returns how many replicas of the service said within their lease that they run.
func (db *DB) Replicas(ctx context.Context) (int, error) { return db.engine.Replicas(ctx) }

// Current returns an error, and refuses every write from then on, if a newer
// program has changed the tables so that this one may no longer write.
func (db *DB) Current(ctx context.Context) error { return db.engine.Current(ctx) }

// Outdated reports whether a newer program ended this one's writing.
func (db *DB) Outdated() bool { return db.engine.Outdated() }

// StorageTrouble says, in words without names, why the disk refused a write within the
// last seconds; empty: it did not.
func (db *DB) StorageTrouble() string { return db.engine.StorageTrouble() }

// WriteFailures counts the writes that the disk refused since the database was opened.
func (db *DB) WriteFailures() int64 { return db.engine.WriteFailures() }

func (db *DB) now() time.Time { return db.engine.Now() }
func (db *DB) read() conn     { return db.engine.Read() }

// list returns every row of a query.
func list[T any](ctx context.Context, c conn, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	return engine.List(ctx, c, scan, query, args...)
}

// one returns the only row of a query, or sql.ErrNoRows.
func one[T any](ctx context.Context, c conn, scan func(row) (T, error), query string, args ...any) (T, error) {
	return engine.One(ctx, c, scan, query, args...)
}

// value returns the only column of a query's only row, or sql.ErrNoRows.
func value[T any](ctx context.Context, c conn, query string, args ...any) (T, error) {
	return engine.Value[T](ctx, c, query, args...)
}

func scanValue[T any](r row) (T, error) { return engine.ScanValue[T](r) }

func marks(n int) string { return engine.Marks(n) }
