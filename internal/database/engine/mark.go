package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// backupMark is SQLite's application id of a backup. It is taken away when the
// backup is first opened as a database, before there can be a log that belongs
// to it: a log that lies beside a file with the mark is another database's.
const backupMark = 0x4d757362 // "Musb"

// refuseForeignLog refuses a backup beside a log. The log's size must have been
// read before: a program that makes a log has taken the mark away.
func refuseForeignLog(ctx context.Context, path string, logged int64) error {
	if logged == 0 {
		return nil
	}
	marked, err := isBackup(ctx, path)
	if err == nil && marked {
		err = fmt.Errorf("it is a backup, and the write-ahead log %s-wal beside it belongs to another database: put the backup elsewhere "+
			"and run `muster restore FILE`", path)
	}
	return err
}

// isBackup reads the mark from the file itself, without its log. It goes
// through SQLite: to open and close the file in another way would end the locks
// that this process has on it. A file that is smaller than its header says is no
// backup: the log was being copied into it when its program ended, and has the rest.
func isBackup(ctx context.Context, path string) (marked bool, err error) {
	pool, err := sql.Open("sqlite", strings.Replace(sqliteDSN(path, "deferred", "query_only(1)"), "?", "?mode=ro&immutable=1&", 1))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	id, err := Value[int64](ctx, session{db: &DB{dialect: sqliteDialect{}}, run: pool}, `PRAGMA application_id`)
	if sqliteCode(err) == sqlite3.SQLITE_CORRUPT {
		return false, nil
	}
	return id == backupMark, err
}

// mark makes a file a backup. No other process may have it open.
func mark(ctx context.Context, path string) error { return setMark(ctx, path, backupMark) }

// adopt takes the mark from a backup that becomes a database.
func adopt(ctx context.Context, path string) error {
	logged, err := walSize(path)
	if err != nil {
		return err
	}
	if err := refuseForeignLog(ctx, path, logged); err != nil {
		return err
	}
	if logged > 0 {
		return nil
	}
	if pool, err := lookSQLite(ctx, path); pool == nil {
		return err
	} else if err := pool.Close(); err != nil {
		return err
	}
	marked, err := isBackup(ctx, path)
	if err != nil || !marked {
		return err
	}
	return setMark(ctx, path, 0)
}

// setMark writes the mark into the file itself: a backup has no log.
func setMark(ctx context.Context, path string, id int64) (err error) {
	pool, err := sql.Open("sqlite", sqliteDSN(path, "immediate", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	if _, err := pool.ExecContext(ctx, `PRAGMA journal_mode=DELETE`); err != nil {
		return err
	}
	if id == 0 {
		if err := endHistory(ctx, session{db: &DB{dialect: sqliteDialect{}}, run: pool}); err != nil {
			return err
		}
	}
	_, err = pool.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id=%d`, id))
	return err
}

// endHistory lets a service see that the database was restored: positions of events that were
// made after the backup are not of the history that goes on. A backup from before events has a
// number for it, see EventSQL.
func endHistory(ctx context.Context, c session) error {
	has, err := Value[int64](ctx, c, `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'event_history'`)
	switch {
	case err != nil:
		return err
	case has == 0:
		return c.Exec(ctx, `PRAGMA user_version=1`)
	}
	return c.Exec(ctx, `DELETE FROM event_history`)
}
