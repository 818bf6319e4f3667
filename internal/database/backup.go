package database

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
)

// Backup makes a copy of the embedded database at a path that does not exist,
// as it is at this moment, while readers and writers go on. fault.Unsupported
// for PostgreSQL, which has its own tools.
func (db *DB) Backup(ctx context.Context, path string) error {
	if db.writer == nil {
		return fault.New(fault.Unsupported, "muster backs up its embedded database only: use pg_dump for PostgreSQL")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.Refused, "%s exists already: name a file that does not", path).Because(err)
	}
	c, err := db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	// VACUUM INTO writes to another file only, but a reader refuses it.
	if _, err := c.ExecContext(ctx, `PRAGMA query_only(0)`); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), `PRAGMA query_only(1)`) }()
	partial := path + ".partial"
	if err := remove(partial); err != nil { // of a backup that was killed
		return err
	}
	if _, err := c.ExecContext(ctx, `VACUUM INTO ?`, partial); err != nil {
		return errors.Join(fmt.Errorf("cannot back up to %s: %w", path, err), remove(partial))
	}
	if err := finishBackup(ctx, partial); err != nil {
		return errors.Join(fmt.Errorf("cannot back up to %s: %w", path, err), remove(partial))
	}
	if err := durable.Sync(partial); err != nil {
		return errors.Join(err, remove(partial))
	}
	return os.Rename(partial, path)
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
