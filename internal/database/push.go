package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/policy"
)

// PoliciesBehind returns up to limit policies whose copy at the platform must
// be brought up to date, of companies that are connected. Those whose last try
// is longest ago come first, so that one that always fails holds up no other.
func (db *DB) PoliciesBehind(ctx context.Context, limit int) ([]policy.Policy, error) {
	return list(ctx, db.read(), scanPolicy, `SELECT `+policyColumns+policyTables+`
		WHERE p.type = 'PLATFORM' AND NOT p.deleted AND p.push_version <> p.version AND c.enterprise <> ''
		ORDER BY p.push_tried_at, p.id LIMIT ?`, limit)
}

// SetPushed notes that the platform holds our version of a policy, and calls it
// vendorVersion. A version older than the one noted already changes nothing but
// the translation of its number.
func (db *DB) SetPushed(ctx context.Context, policyID string, version int, vendorVersion int64, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `UPDATE policies SET push_version = ?, push_error = '', pushed_at = ?, push_tried_at = ?
			WHERE id = ? AND push_version <= ?`, version, millis(at), millis(at), policyID, version); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO policy_pushes (policy_id, vendor_version, version) VALUES (?, ?, ?)
			ON CONFLICT (policy_id, vendor_version) DO UPDATE SET version = excluded.version`, policyID, vendorVersion, version)
		return err
	})
}

// SetPushError notes why a push failed.
func (db *DB) SetPushError(ctx context.Context, policyID, text string, at time.Time) error {
	return db.statement(ctx, func(ctx context.Context, tx conn) error {
		_, err := tx.exec(ctx, `UPDATE policies SET push_error = ?, push_tried_at = ? WHERE id = ?`, text, millis(at), policyID)
		return err
	})
}

// PushedVersion translates the vendor's version of a policy into ours, or
// returns fault.NotFound for one that was not pushed by us.
func (db *DB) PushedVersion(ctx context.Context, policyID string, vendorVersion int64) (int, error) {
	v, err := value[int](ctx, db.read(), `SELECT version FROM policy_pushes WHERE policy_id = ? AND vendor_version = ?`,
		policyID, vendorVersion)
	return found(v, err, "version of the policy at the platform")
}
