package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/limit"
)

// beginLimited begins a command that the company's limit counts, or its key's. Limit,
// count and command are one transaction, in which one caller of the company
// waits for the other: the window never holds more devices than it may.
func (db *DB) beginLimited(ctx context.Context, c command.Command, held *device.Delivery) (begun bool, refused, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		begun, refused = false, nil
		if refused, err = db.countOfKey(ctx, t, c); err != nil || refused != nil {
			return err
		}
		if !c.Type.Destructive() {
			begun, err = db.beginCommand(ctx, t, c, held)
			return db.noteOfKey(ctx, t, c, begun, err)
		}
		state, now, err := db.limitState(ctx, t, c)
		if err != nil {
			return err
		}
		if !state.Allows() {
			refused, err = db.refuse(ctx, t, c, state, now)
			return err
		}
		if begun, err = db.beginCommand(ctx, t, c, held); err != nil || !begun {
			return err
		}
		return db.noteOfKey(ctx, t, c, true, noteUse(ctx, t, c, now))
	})
	return begun, refused, err
}

// limitState locks what the company's callers share, and reads what the decision
// about a command depends on. Nothing of it was read before the lock.
func (db *DB) limitState(ctx context.Context, t *tx, c command.Command) (s limit.State, now time.Time, err error) {
	s.Limit, err = one(ctx, t, func(r row) (l access.DestructiveLimit, err error) {
		var window int64
		err = r.Scan(&l.Devices, &window)
		l.Window = time.Duration(window) * time.Millisecond
		return l, err
	}, `SELECT c.limit_devices, c.limit_window FROM companies c WHERE c.id = ?`+t.hold(), c.CompanyID)
	if err != nil {
		return s, now, err
	}
	now = db.now()
	used, err := one(ctx, t, func(r row) (u [2]int, err error) {
		err = r.Scan(&u[0], &u[1])
		return u, err
	}, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN u.asset_id = ? THEN 1 ELSE 0 END), 0) FROM destructive_uses u
		WHERE u.company_id = ? AND u.at > ?`, c.AssetID, c.CompanyID, millis(now.Add(-s.Limit.Window)))
	s.Devices, s.Counts = used[0], used[1] > 0
	if err != nil || s.Allows() || c.Actor.Kind != access.User {
		return s, now, err
	}
	s.Reserved, err = holds(ctx, t, `SELECT p.id FROM passkeys p WHERE p.user_id = ? LIMIT 1`, c.Actor.ID)
	return s, now, err
}

// refuse records that a command was refused, and returns the refusal; nil for the
// repetition of a request whose command there is already.
func (db *DB) refuse(ctx context.Context, t *tx, c command.Command, s limit.State, now time.Time) (refusal, err error) {
	if c.IdempotencyRef != "" {
		known, err := holds(ctx, t, `SELECT id FROM commands WHERE idempotency_ref = ? AND idempotency_ref <> '' AND company_id = ?`,
			c.IdempotencyRef, c.CompanyID)
		if known || err != nil {
			return nil, err
		}
	}
	leaves, err := value[int64](ctx, t, `SELECT u.at FROM destructive_uses u WHERE u.company_id = ? AND u.at > ?
		ORDER BY u.at, u.asset_id LIMIT 1 OFFSET ?`, c.CompanyID, millis(now.Add(-s.Limit.Window)), s.Over()-1)
	if err != nil {
		return nil, err
	}
	e := commandEvent(ctx, c)
	e.Outcome, e.Reference = activity.Refused, ""
	e.Changes = []activity.Change{{Field: "destructiveLimit", After: s.Limit.String()}}
	return s.Refusal(instant(leaves).Add(s.Limit.Window).Sub(now)), db.record(ctx, t, c.CompanyID, e)
}

// noteUse counts a device, from now on. A device that counts already counts for
// as long as a new one, so that any window holds all that got a command in it.
func noteUse(ctx context.Context, t *tx, c command.Command, now time.Time) error {
	if _, err := t.exec(ctx, `INSERT INTO destructive_uses (company_id, asset_id, at) VALUES (?, ?, ?)
		ON CONFLICT (company_id, asset_id) DO UPDATE SET
			at = CASE WHEN excluded.at > destructive_uses.at THEN excluded.at ELSE destructive_uses.at END`,
		c.CompanyID, c.AssetID, millis(now)); err != nil {
		return err
	}
	_, err := t.exec(ctx, `DELETE FROM destructive_uses WHERE company_id = ? AND at <= ?`, c.CompanyID, millis(now.Add(-access.MaxLimitWindow)))
	return err
}
