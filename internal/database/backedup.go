package database

import (
	"context"
	"time"
)

// backedUp is the name under which operator_acts has the last backup.
const backedUp = "backup"

// BackedUp returns when the last backup of an embedded database was made; zero: none.
func (db *DB) BackedUp(ctx context.Context) (time.Time, error) {
	ms, err := value[int64](ctx, db.read(), `SELECT COALESCE(MAX(at), 0) FROM operator_acts WHERE name = ?`, backedUp)
	return instant(ms), err
}
