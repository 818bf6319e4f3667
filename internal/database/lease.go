package database

import (
	"context"
	"time"
)

// takeLease changes one row if the holder has the lease, or it is free. Its
// parameters: name, holder, end, now.
const takeLease = `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
	WHERE leases.holder = excluded.holder OR leases.expires_at <= ?`

// Lease gives name to holder for ttl, or gives it longer to the holder that has
// it, and reports whether it did. What one replica at a time may do is done
// under a lease, and must be harmless should two think that they hold it: a
// replica that stalls longer than ttl does not know.
func (db *DB) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	now := db.now()
	n, err := db.execRelaxed(ctx, takeLease, name, holder, millis(now.Add(ttl)), millis(now))
	return n == 1, err
}

// Release gives a lease back before it ends.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	_, err := db.execRelaxed(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, name, holder)
	return err
}
