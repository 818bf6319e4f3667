package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/limit"
)

// keyWindow is the window of a key's number of devices.
const keyWindow = 24 * time.Hour

// keyState reads what the number of devices of a command's key depends on. With a
// lock it holds the key, so that of all its calls one waits for the other.
func (db *DB) keyState(ctx context.Context, t conn, c command.Command, lock string) (s limit.KeyState, err error) {
	if s.PerDay = c.DevicesPerDay; s.PerDay == 0 {
		return s, nil
	}
	if lock != "" {
		if _, err := value[string](ctx, t, `SELECT id FROM api_keys WHERE id = ?`+lock, c.Actor.ID); err != nil {
			return s, err
		}
	}
	now := db.now()
	since := millis(now.Add(-keyWindow))
	others, err := value[int64](ctx, t, `SELECT COUNT(*) FROM key_devices d WHERE d.key_id = ? AND d.asset_id <> ? AND d.at > ?`, c.Actor.ID, c.AssetID, since)
	if s.Others = int(others); err != nil || s.Allows() {
		return s, err
	}
	if s.Counts, err = holds(ctx, t, `SELECT d.asset_id FROM key_devices d WHERE d.key_id = ? AND d.asset_id = ? AND d.at > ?`, c.Actor.ID, c.AssetID, since); err != nil || s.Allows() {
		return s, err
	}
	leaves, err := value[int64](ctx, t, `SELECT d.at FROM key_devices d WHERE d.key_id = ? AND d.at > ? ORDER BY d.at, d.asset_id LIMIT 1 OFFSET ?`,
		c.Actor.ID, since, others-int64(c.DevicesPerDay))
	s.Frees = instant(leaves).Add(keyWindow).Sub(now)
	return s, err
}

// noteOfKey counts the device of a command that has begun.
func (db *DB) noteOfKey(ctx context.Context, t *tx, c command.Command) error {
	if c.DevicesPerDay == 0 {
		return nil
	}
	now := db.now()
	if err := t.exec(ctx, `INSERT INTO key_devices (key_id, asset_id, at) VALUES (?, ?, ?)
		ON CONFLICT (key_id, asset_id) DO UPDATE SET at = CASE WHEN excluded.at > key_devices.at THEN excluded.at ELSE key_devices.at END`,
		c.Actor.ID, c.AssetID, millis(now)); err != nil {
		return err
	}
	return t.exec(ctx, `DELETE FROM key_devices WHERE key_id = ? AND at <= ?`, c.Actor.ID, millis(now.Add(-keyWindow)))
}
