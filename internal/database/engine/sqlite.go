package engine

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"runtime"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/wait"
)

// openSQLite opens the pool of readers and the one writing connection.
func (db *DB) openSQLite(ctx context.Context, path string, o Options) error {
	use := o.Schema
	db.dialect = SQLite()
	seen, err := peekSQLite(ctx, path)
	if err != nil {
		return err
	}
	if err := seen.Check(use); err != nil && (!seen.told() || seen.Schema != SchemaNumber()) { // else resume decides
		return err
	}
	if err := adopt(ctx, path); err != nil {
		return err
	}
	if err := makeSQLite(path); err != nil {
		return err
	}
	if o.Alone {
		if err := db.takeAlone(ctx, path); err != nil {
			return err
		}
	}
	pragmas := []string{"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "wal_autocheckpoint(4000)"}
	if use == Upgrade || seen.Empty() { // to say so writes to the file, and must be first
		pragmas = append([]string{"auto_vacuum(INCREMENTAL)"}, pragmas...)
	}
	writing, err := sql.Open("sqlite", sqliteDSN(path, "immediate", pragmas...))
	if err != nil {
		return err
	}
	db.onClose(writing.Close)
	writing.SetMaxOpenConns(1)
	if err := db.resume(ctx, writing, use, seen); err != nil {
		return err
	}
	if seen.Schema < SchemaNumber() {
		if err := db.upgrade(ctx, writing, use, seen); err != nil {
			return err
		}
	}
	if use == Upgrade {
		db.makeShrinkable(ctx, writing, path)
	}
	if db.writer, err = newWriter(ctx, db, writing); err != nil {
		return err
	}
	db.onClose(db.writer.close)

	db.pool, err = sql.Open("sqlite", sqliteDSN(path, "deferred", "query_only(1)"))
	if err != nil {
		return err
	}
	db.onClose(db.pool.Close)
	readers := max(4, 2*runtime.GOMAXPROCS(0))
	db.pool.SetMaxOpenConns(readers)
	db.pool.SetMaxIdleConns(readers)
	statements := &prepared{on: db.pool, statements: map[string]*sql.Stmt{}}
	db.onClose(statements.Close)
	db.reader = statements
	return db.Ping(ctx)
}

// makeSQLite makes the file that does not exist, for who owns the directory if root
// makes it. SQLite gives the files beside it the same owner.
func makeSQLite(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(durable.Inherit(file), file.Close())
}

// A service that ends gives its file back at once; another may begin at that moment.
const alonePatience, alonePause = 3 * time.Second, 100 * time.Millisecond

// takeAlone keeps other services from the file until the database is closed. Commands
// are not kept from it. The file is closed last: to close it ends SQLite's own locks.
func (db *DB) takeAlone(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += alonePause {
		if !errors.Is(lockFile(file), syscall.EWOULDBLOCK) { // it is locked, or its file system has no such locks
			db.onClose(file.Close)
			return nil
		}
		if waited >= alonePatience || !wait.For(ctx, alonePause) {
			return errors.Join(errors.New("another service has it open: a SQLite file serves one `muster serve`; stop the other, or use "+
				"PostgreSQL for several"), file.Close())
		}
	}
}

// busyLimit is how long SQLite waits for other connections to the file before a statement fails.
const busyLimit = 10 * time.Second

// sqliteDSN makes a URI of a path. Its busy_timeout is busyLimit; the mapping lets readers
// look at the file without copying pages. LIKE tells capitals from small letters, as in PostgreSQL: a tag is sought to the letter.
func sqliteDSN(path, lock string, pragmas ...string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": append([]string{
		"busy_timeout(10000)", "cache_size(-16000)", "mmap_size(1073741824)", "temp_store(MEMORY)", "case_sensitive_like(1)"}, pragmas...)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}
