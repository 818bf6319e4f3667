package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
)

// Backup makes a copy of the embedded database at a path that does not exist,
// as it is at this moment, while readers and writers go on. What
// backups that were killed left in the directory is removed. fault.Unsupported
// for PostgreSQL, which has its own tools.
func (db *DB) Backup(ctx context.Context, path string) (err error) {
	if db.writer == nil {
		return fault.New(fault.Unsupported, "muster backs up its embedded database only: use pg_dump for PostgreSQL")
	}
	if err := vacant(path); err != nil {
		return err
	}
	removeLeftovers(filepath.Dir(path))
	partial, err := newPartial(path)
	if err != nil {
		return fmt.Errorf("cannot back up to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot back up to %s: %w", path, err), remove(partial.Name()))
		}
		err = errors.Join(err, partial.Close())
	}()
	if err := db.vacuumInto(ctx, partial.Name()); err != nil {
		return err
	}
	if err := finishBackup(ctx, partial.Name()); err != nil {
		return err
	}
	if err := partial.Sync(); err != nil {
		return err
	}
	if err := vacant(path); err != nil { // another backup may have ended
		return err
	}
	if err := os.Rename(partial.Name(), path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// vacant refuses a path at which there is something.
func vacant(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.Refused, "%s exists already: name a file that does not", path).Because(err)
	}
	return nil
}

// partialName is the name of a backup that is being made: no other program gives it.
var partialName = regexp.MustCompile(`\.muster-backup-[0-9]+\.partial$`)

// newPartial makes the file that becomes the backup at path. It is locked while it is
// open, so that another backup does not take it for a leftover.
func newPartial(path string) (file *os.File, err error) {
	for range attempts {
		file, err = os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".muster-backup-*.partial") // 0600
		if err != nil {
			return nil, err
		}
		if err = errors.Join(lockFile(file), stillNamed(file)); err == nil {
			break
		}
		err = errors.Join(err, file.Close(), remove(file.Name())) // another backup held it before the lock
	}
	if err != nil {
		return nil, err
	}
	if err := durable.TakeAfter(file, path); err != nil {
		return nil, errors.Join(err, file.Close(), remove(file.Name()))
	}
	return file, nil
}

// stillNamed returns an error if a file has lost its name.
func stillNamed(file *os.File) error {
	named, err := os.Lstat(file.Name())
	if err != nil {
		return err
	}
	open, err := file.Stat()
	if err == nil && !os.SameFile(named, open) {
		err = fmt.Errorf("%s was replaced", file.Name())
	}
	return err
}

// removeLeftovers removes the files of backups that no process makes any more. A file
// that cannot be removed stays, because the backup does not depend on it.
func removeLeftovers(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && partialName.MatchString(entry.Name()) {
			removeLeftover(filepath.Join(dir, entry.Name()))
		}
	}
}

// removeLeftover removes the file of a backup unless a process holds it.
func removeLeftover(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if lockFile(file) == nil {
		_ = errors.Join(remove(path), remove(path+"-journal"))
	}
}

// vacuumInto copies the database into an empty file.
func (db *DB) vacuumInto(ctx context.Context, path string) error {
	c, err := db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	// VACUUM INTO writes to another file only, but a reader refuses it.
	// The copy can shrink even if the database is from before files could.
	if _, err := c.ExecContext(ctx, `PRAGMA query_only(0); PRAGMA auto_vacuum(INCREMENTAL)`); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), `PRAGMA query_only(1)`) }()
	_, err = c.ExecContext(ctx, `VACUUM INTO ?`, path)
	return err
}

// finishBackup checks the copy, for a backup of a damaged database is none, and
// marks it.
func finishBackup(ctx context.Context, path string) error {
	pool, err := lookSQLite(ctx, path)
	if err != nil {
		return err
	}
	if err := errors.Join(sound(ctx, pool, "quick_check"), pool.Close()); err != nil {
		return err
	}
	return mark(ctx, path)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
