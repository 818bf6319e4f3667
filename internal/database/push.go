package database

import (
	"context"
	"time"
)

// SetPushed notes that the platform holds our version of a policy, and calls it
// vendorVersion. A version older than the one noted already changes nothing but
// the translation of its number.
func (db *DB) SetPushed(ctx context.Context, policyID string, version int, vendorVersion int64, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		return setPushed(ctx, t, policyID, version, vendorVersion, at)
	})
}

func setPushed(ctx context.Context, t *tx, policyID string, version int, vendorVersion int64, at time.Time) error {
	if err := t.exec(ctx, `UPDATE policies SET push_version = ?, push_error = '', pushed_at = ?, push_tried_at = ?
		WHERE id = ? AND push_version <= ?`, version, millis(at), millis(at), policyID, version); err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO policy_pushes (policy_id, vendor_version, version) VALUES (?, ?, ?)
		ON CONFLICT (policy_id, vendor_version) DO UPDATE SET version = excluded.version`, policyID, vendorVersion, version)
}

// forgetPush notes that it is not known what the platform holds: the saved
// version is pushed again, also if it was refused before.
func forgetPush(ctx context.Context, t *tx, policyID string) error {
	if err := t.exec(ctx, `DELETE FROM push_retries WHERE policy_id = ?`, policyID); err != nil {
		return err
	}
	return t.exec(ctx, `UPDATE policies SET push_version = 0, push_tried_at = 0 WHERE id = ?`, policyID)
}

// PushedVersion translates the vendor's version of a policy into ours, or
// returns fault.NotFound for one that was not pushed by us.
func (db *DB) PushedVersion(ctx context.Context, policyID string, vendorVersion int64) (int, error) {
	return find(ctx, db.read(), "version of the policy at the platform", scanValue[int],
		`SELECT version FROM policy_pushes WHERE policy_id = ? AND vendor_version = ?`, policyID, vendorVersion)
}

// PoliciesBehind counts the policies of connected companies whose saved version
// the platform does not hold: waiting are on their way, failing were refused
// or could not be sent.
func (db *DB) PoliciesBehind(ctx context.Context) (waiting, failing int, err error) {
	type counts struct{ all, failing int }
	n, err := one(ctx, db.read(), into(func(n *counts) []any { return []any{&n.all, &n.failing} }),
		`SELECT COUNT(*), COALESCE(CAST(SUM(CASE WHEN p.push_error <> '' THEN 1 ELSE 0 END) AS BIGINT), 0)`+policyTables+`
		WHERE p.type = 'PLATFORM' AND NOT p.deleted AND p.push_version <> p.version AND c.enterprise <> ''`)
	return n.all - n.failing, n.failing, err
}
