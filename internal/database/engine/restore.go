package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/musterhq/muster/internal/durable"
)

// Restoring is a backup that lies, checked, beside the database whose place it is
// to take. Discard or Commit ends it.
type Restoring struct {
	path, fresh string
}

var errServed = errors.New("the database is in use: stop `muster serve` and every other program that has it open, then restore")

// PrepareRestore copies a backup beside the SQLite database at path and checks
// the copy. The backup is only read, and the database is not touched. look is called with
// the copy's URL as the last of the checks.
func PrepareRestore(ctx context.Context, path, backup string, look func(ctx context.Context, url string) error) (r *Restoring, err error) {
	if err := directory(path); err != nil {
		return nil, err
	}
	path = Linked(path) // the link stays
	from, err := os.Stat(backup)
	if err != nil {
		return nil, fmt.Errorf("cannot read the backup: %w", err)
	}
	if to, err := os.Stat(path); err == nil && os.SameFile(from, to) {
		return nil, fmt.Errorf("%s is the database itself: name a backup of it", backup)
	}
	// Commit refuses for certain; here, it is only said before a long copy.
	if inUse, err := heldByOther(path); err == nil && inUse {
		return nil, errServed
	}
	r = &Restoring{path: path, fresh: path + ".restoring"}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot restore %s: %w", backup, errors.Join(explainBackup(err), r.Discard()))
		}
	}()
	if err := r.take(ctx, backup); err != nil {
		return r, err
	}
	seen, err := seenAt(ctx, "sqlite:"+r.fresh)
	if err == nil && seen.Empty() {
		err = errors.New("it holds no data of Muster: name a file that `muster backup` made")
	}
	if err != nil {
		return r, err
	}
	return r, look(ctx, "sqlite:"+r.fresh)
}

// explainBackup says of a damaged backup what explainSQLite says of a database.
func explainBackup(err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the backup is damaged, or is no database: use another one (%w)", err)
	}
	return explainSQLite(err)
}

// take copies the backup, with a log if it has one of its own, and checks it.
func (r *Restoring) take(ctx context.Context, backup string) error {
	if err := r.Discard(); err != nil { // of a restore that was killed
		return err
	}
	logged, err := walSize(backup)
	if err != nil {
		return err
	}
	if err := refuseForeignLog(ctx, backup, logged); err != nil {
		return err
	}
	if err := copyFile(backup, r.fresh, r.path); err != nil {
		return err
	}
	if logged > 0 {
		if err := copyFile(backup+"-wal", r.fresh+"-wal", r.path); err != nil {
			return err
		}
	}
	// Setting the mark takes in the log.
	if err := mark(ctx, r.fresh); err != nil {
		return err
	}
	pool, err := lookSQLite(ctx, r.fresh)
	if err != nil {
		return err
	}
	if err := sound(ctx, pool, "integrity_check"); ctx.Err() != nil {
		return errors.Join(ctx.Err(), pool.Close()) // broken off: nothing is known of the backup
	} else if err != nil {
		return errors.Join(fmt.Errorf("the backup is damaged: use another one (%w)", err), pool.Close())
	}
	if err := foreign(ctx, pool); err != nil {
		return errors.Join(fmt.Errorf("it is not a backup of Muster alone: use another one (%w)", err), pool.Close())
	}
	return errors.Join(pool.Close(), durable.Sync(r.fresh))
}

// Discard removes the copy.
func (r *Restoring) Discard() error {
	return errors.Join(remove(r.fresh), remove(r.fresh+"-wal"), remove(r.fresh+"-shm"), remove(r.fresh+"-journal"))
}

// Commit puts the backup in the place of the database and returns where that is
// kept now; empty: there was none. Killed at any moment, it leaves the old
// database, or the backup, which is refused while the old one's log is there.
func (r *Restoring) Commit(ctx context.Context, now time.Time) (aside string, err error) {
	release, err := alone(ctx, r.path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := os.Stat(r.path); err == nil {
		aside = r.path + ".before-restore-" + now.UTC().Format("20060102T150405.000Z")
		if err := keepAside(r.path, aside); err != nil {
			return "", err
		}
	}
	if err := os.Rename(r.fresh, r.path); err != nil {
		return "", err
	}
	if err := errors.Join(remove(r.path+"-wal"), remove(r.path+"-shm"), remove(r.path+"-journal")); err != nil {
		return aside, err
	}
	return aside, durable.Sync(filepath.Dir(r.path))
}

// keepAside gives a database, and a log that could not be taken in, another name.
func keepAside(path, aside string) error {
	suffixes := []string{"", "-wal"}
	if hot(path + "-journal") {
		suffixes = append(suffixes, "-journal")
	}
	for _, suffix := range suffixes {
		err := os.Link(path+suffix, aside+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			err = copyFile(path+suffix, aside+suffix, path) // a file system without links
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot keep the old database: %w", err)
		}
	}
	return nil
}

// hot reports whether a rollback journal has something to take back: one of a transaction that
// ended begins with zeros, or is empty.
func hot(journal string) bool {
	file, err := os.Open(journal)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	first := []byte{0}
	_, err = file.Read(first)
	return err == nil && first[0] != 0
}

// alone takes the database at path from all others, until release: none
// may have it open. Its log is taken in first, where it is sound.
func alone(ctx context.Context, path string) (release func() error, err error) {
	nothing := func() error { return nil }
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nothing, err
	}
	pool, err := sql.Open("sqlite", strings.Replace(sqliteDSN(path, "exclusive", "locking_mode(EXCLUSIVE)"), "busy_timeout%2810000%29",
		"busy_timeout%28200%29", 1))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	var mode string
	err = pool.QueryRowContext(ctx, `PRAGMA journal_mode=DELETE`).Scan(&mode)
	var held *sql.Tx
	if err == nil {
		held, err = pool.BeginTx(ctx, nil)
	}
	if err == nil {
		return func() error { return errors.Join(held.Rollback(), pool.Close()) }, nil
	}
	closing := pool.Close()
	if locked(err) {
		return nil, errServed
	}
	// It is too damaged for SQLite to say who has it open.
	if inUse, looking := heldByOther(path); looking == nil && inUse {
		return nil, errServed
	}
	return nothing, closing
}

// copyFile makes a copy with the owner and the mode of the file that is at place.
func copyFile(from, to, place string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, durable.TakeAfter(target, place), target.Sync(), target.Close())
}
