package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

const (
	// shrinkPages is how many pages one transaction gives back, of 4 KiB as a rule.
	shrinkPages = 64
	// spareShare is which part of a file may be unused: what is written next needs it.
	spareShare = 20
	// rewriteLimit is the size in bytes up to which a file is written again at an upgrade, so
	// that it can shrink: for seconds, in which nothing is served.
	rewriteLimit = 1 << 30
)

// Shrink gives the unused pages of a SQLite file back, in small steps. PostgreSQL uses
// the room again by itself.
func (db *DB) Shrink(ctx context.Context) error {
	if db.writer == nil {
		return nil
	}
	for {
		pages, err := Value[int64](ctx, db.Read(), `PRAGMA page_count`)
		if err != nil {
			return err
		}
		unused, err := Value[int64](ctx, db.Read(), `PRAGMA freelist_count`)
		if err != nil || unused <= pages/spareShare {
			return err
		}
		if can, err := shrinks(ctx, db.Read()); err != nil || !can {
			return err
		}
		if err := db.Write(ctx, giveBack, true); err != nil {
			return err
		}
	}
}

// giveBack gives up to shrinkPages back. The statement has a row for each.
func giveBack(ctx context.Context, t Tx) error {
	rows, err := t.Query(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, shrinkPages))
	if err != nil {
		return err
	}
	for rows.Next() { // each step gives a page back
	}
	return errors.Join(rows.Err(), rows.Close())
}

// shrinks reports whether a SQLite file keeps what it needs to give pages back one by one.
func shrinks(ctx context.Context, c Conn) (bool, error) {
	mode, err := Value[int64](ctx, c, `PRAGMA auto_vacuum`)
	return mode != 0, err
}

// makeShrinkable writes a SQLite file again that was made without what it needs to shrink. A
// large one is left as it is, and one for which there is no room on the disk.
func (db *DB) makeShrinkable(ctx context.Context, pool *sql.DB, path string) {
	can, err := shrinks(ctx, session{db: db, run: pool})
	if err != nil || can {
		return
	}
	const remedy = "stop the service, `muster backup` the database and `muster restore` the copy"
	info, err := os.Stat(path)
	if err == nil && info.Size() > rewriteLimit {
		db.logger.WarnContext(ctx, "the database file cannot shrink", "bytes", info.Size(), "remedy", remedy)
		return
	}
	if _, err := pool.ExecContext(ctx, `VACUUM`); err != nil {
		db.logger.WarnContext(ctx, "the database file cannot shrink", "error", explainSQLite(err), "remedy", remedy)
		return
	}
	db.logger.InfoContext(ctx, "database file written again, so that it can shrink")
}
