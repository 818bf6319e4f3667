package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.Refused, "%s exists already: name a file that does not", path).Because(err)
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
	if err := os.Rename(partial.Name(), path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// partialSuffix ends the name of a backup that is being made.
const partialSuffix = ".partial"

// newPartial makes the file that becomes the backup at path. It is locked while it is
// open, so that another backup does not take it for a leftover.
func newPartial(path string) (*os.File, error) {
	name := path + partialSuffix
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s exists: wait for the backup that writes it, or remove it", name)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(lockFile(file), durable.TakeAfter(file, path)); err != nil {
		return nil, errors.Join(err, file.Close(), remove(name))
	}
	return file, nil
}

// removeLeftovers removes the files of backups that no process makes any more. A file
// that cannot be removed stays, because the backup does not depend on it.
func removeLeftovers(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.Type().IsRegular() && strings.HasSuffix(path, partialSuffix) && leftover(path) {
			_ = errors.Join(remove(path), remove(path+"-journal"))
		}
	}
}

// sqliteHeader begins every SQLite file that is not empty.
const sqliteHeader = "SQLite format 3\x00"

// leftover reports whether a file is a database, or empty, and no process writes it.
func leftover(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	header := make([]byte, len(sqliteHeader))
	n, _ := file.Read(header)
	if n > 0 && string(header[:n]) != sqliteHeader || lockFile(file) != nil {
		return false
	}
	inUse, err := heldByOther(path) // by an older program, which locks nothing else
	return !inUse && (err == nil || errors.Is(err, errors.ErrUnsupported))
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
