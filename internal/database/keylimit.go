package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// keyWindow is the window of a key's number of devices.
const keyWindow = 24 * time.Hour

// countOfKey returns a refusal if the key of a command may send none to another device
// now. It locks the key, so that of all its calls one waits for the other.
func (db *DB) countOfKey(ctx context.Context, t *tx, c command.Command) (refused, err error) {
	if c.DevicesPerDay == 0 {
		return nil, nil
	}
	if _, err := value[string](ctx, t, `SELECT id FROM api_keys WHERE id = ?`+t.hold(), c.Actor.ID); err != nil {
		return nil, err
	}
	now := db.now()
	since := millis(now.Add(-keyWindow))
	others, err := value[int64](ctx, t, `SELECT COUNT(*) FROM key_devices d WHERE d.key_id = ? AND d.asset_id <> ? AND d.at > ?`, c.Actor.ID, c.AssetID, since)
	if err != nil || others < int64(c.DevicesPerDay) {
		return nil, err
	}
	counts, err := holds(ctx, t, `SELECT d.asset_id FROM key_devices d WHERE d.key_id = ? AND d.asset_id = ? AND d.at > ?`, c.Actor.ID, c.AssetID, since)
	if err != nil || counts {
		return nil, err
	}
	if c.IdempotencyRef != "" { // the repetition of a request whose command there is already
		known, err := holds(ctx, t, `SELECT id FROM commands WHERE idempotency_ref = ? AND idempotency_ref <> '' AND company_id = ?`, c.IdempotencyRef, c.CompanyID)
		if known || err != nil {
			return nil, err
		}
	}
	leaves, err := value[int64](ctx, t, `SELECT d.at FROM key_devices d WHERE d.key_id = ? AND d.at > ? ORDER BY d.at, d.asset_id LIMIT 1 OFFSET ?`,
		c.Actor.ID, since, others-int64(c.DevicesPerDay))
	if err != nil {
		return nil, err
	}
	wait := instant(leaves).Add(keyWindow).Sub(now)
	return fault.Limited(wait, "this key may send commands to %d devices in 24 hours, and has: retry in %d s, or use another key", c.DevicesPerDay, operation.Seconds(wait)), nil
}

// noteOfKey counts the device of a command that has begun.
func (db *DB) noteOfKey(ctx context.Context, t *tx, c command.Command, begun bool, err error) error {
	if err != nil || !begun || c.DevicesPerDay == 0 {
		return err
	}
	now := db.now()
	if _, err := t.exec(ctx, `INSERT INTO key_devices (key_id, asset_id, at) VALUES (?, ?, ?)
		ON CONFLICT (key_id, asset_id) DO UPDATE SET at = CASE WHEN excluded.at > key_devices.at THEN excluded.at ELSE key_devices.at END`,
		c.Actor.ID, c.AssetID, millis(now)); err != nil {
		return err
	}
	_, err = t.exec(ctx, `DELETE FROM key_devices WHERE key_id = ? AND at <= ?`, c.Actor.ID, millis(now.Add(-keyWindow)))
	return err
}
