package database

import (
	"context"
	"time"
)

// backedUp is the operator's act of Backup.
const backedUp = "backup"

func (db *DB) setBackedUp(ctx context.Context) error {
	return db.exec(ctx, `INSERT INTO operator_acts (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at`, backedUp, millis(db.now()))
}

// BackedUp returns when the last backup of an embedded database was made; zero: none.
func (db *DB) BackedUp(ctx context.Context) (time.Time, error) {
	ms, err := value[int64](ctx, db.read(), `SELECT COALESCE(MAX(at), 0) FROM operator_acts WHERE name = ?`, backedUp)
	return instant(ms), err
}
