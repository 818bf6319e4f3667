package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/resource"
)

const (
	// PresentEvery is how often a replica that sends commands calls Present.
	PresentEvery = 2 * time.Second
	// PresentFor is how long after that it counts as alive.
	PresentFor = 8 * time.Second
)

// Present says that this process is alive, unless a newer program ended its
// work, which is an error then (see Current). From the first call on its commands
// carry its name, Sender.
func (db *DB) Present(ctx context.Context) error {
	replica := db.replica.Load()
	if replica == nil {
		id := resource.NewID()
		replica = &id
	}
	if err := db.Current(ctx); err != nil {
		return err
	}
	if _, err := db.Lease(ctx, ReplicaPrefix+*replica, holderOf(*replica), PresentFor); err != nil {
		return err
	}
	db.replica.Store(replica)
	return nil
}

// Absent takes back what Present said. A newer program waits for that before it
// changes the tables, so it is done also when this program may write nothing else.
func (db *DB) Absent(ctx context.Context) error {
	replica := db.replica.Load()
	if replica == nil {
		return nil
	}
	leave := func(ctx context.Context, c Conn) error {
		return c.Exec(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, ReplicaPrefix+*replica, holderOf(*replica))
	}
	if db.writer != nil {
		return db.writer.run(ctx, func(ctx context.Context, t Tx) error { return leave(ctx, t) }, true)
	}
	return leave(ctx, db.Read())
}

// holderOf is the holder of a replica's lease, which says its program's number.
func holderOf(replica string) string {
	return strconv.FormatInt(SchemaNumber(), 10) + "/" + replica
}

// ReplicaPrefix begins the names of the leases of replicas that are alive.
const ReplicaPrefix = "replica/"

// Sender is the name that commands carry; empty before Present.
func (db *DB) Sender() string {
	if replica := db.replica.Load(); replica != nil {
		return *replica
	}
	return ""
}

// TakeLease changes one row if the holder has the lease, or it is free. Its
// parameters: name, holder, end, now.
const TakeLease = `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
	WHERE leases.holder = excluded.holder OR leases.expires_at <= ?`

// Lease gives name to holder for ttl, or gives it longer to the holder that has
// it, and reports whether it did. What one replica at a time may do is done
// under a lease, and must be harmless should two think that they hold it: a
// replica that stalls longer than ttl does not know.
func (db *DB) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	now := db.now()
	n, err := db.ExecRelaxed(ctx, TakeLease, name, holder, now.Add(ttl).UnixMilli(), now.UnixMilli())
	return n == 1, err
}

// Release gives a lease back before it ends.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	_, err := db.ExecRelaxed(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, name, holder)
	return err
}

// Replicas returns how many replicas of the service said within their lease that they run.
func (db *DB) Replicas(ctx context.Context) (int, error) {
	all, err := db.replicas(ctx, db.Read())
	return len(all), err
}
