package database

import "context"

// The kept counts, and what they must be.
const (
	patchCounts = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1103),
		months (month) AS (SELECT CAST(2008 + i / 12 AS VARCHAR) || '-' || CASE WHEN i % 12 < 9 THEN '0' ELSE '' END || CAST(1 + i % 12 AS VARCHAR) FROM n)
		SELECT a.company_id, a.policy_id, COALESCE(m.month, '') AS month, COUNT(*) AS count FROM assets a
		LEFT JOIN months m ON strpos(a.specifications, '"securityPatchLevel":"') > 0
			AND m.month = substr(a.specifications, strpos(a.specifications, '"securityPatchLevel":"') + 22, 7)
		WHERE a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') GROUP BY 1, 2, 3`
	assetCounts = `SELECT company_id, status, policy_id, COUNT(*) AS count FROM assets GROUP BY 1, 2, 3`
)

// keptCounts are the tables of counts with their keys.
var keptCounts = []struct{ table, keys, must string }{ //nolint:gochecknoglobals // a table that is never written to
	{"asset_counts", "company_id, status, policy_id", assetCounts},
	{"patch_counts", "company_id, policy_id, month", patchCounts},
}

// recount makes what is kept in counts again, and returns how many were wrong:
// a program that did not know a count may have written beside one that did.
func recount(ctx context.Context, t *tx) (wrong int64, err error) {
	if lock := t.db.dialect.lockTable("assets"); lock != "" {
		if err := t.exec(ctx, lock); err != nil {
			return 0, err
		}
	}
	for _, kept := range keptCounts {
		must := t.db.dialect.schema(kept.must)
		differs, err := value[int64](ctx, t, `SELECT COUNT(*) FROM (
			SELECT * FROM (`+must+`) AS missing EXCEPT SELECT `+kept.keys+`, count FROM `+kept.table+`) AS wrong`)
		if err != nil {
			return 0, err
		}
		surplus, err := value[int64](ctx, t, `SELECT COUNT(*) FROM (
			SELECT `+kept.keys+`, count FROM `+kept.table+` WHERE count <> 0 EXCEPT SELECT * FROM (`+must+`) AS present) AS wrong`)
		if err != nil {
			return 0, err
		}
		if differs+surplus == 0 {
			continue
		}
		wrong += max(differs, surplus)
		if err := t.exec(ctx, `DELETE FROM `+kept.table); err != nil {
			return 0, err
		}
		if err := t.exec(ctx, `INSERT INTO `+kept.table+` (`+kept.keys+`, count) `+must); err != nil {
			return 0, err
		}
	}
	return wrong, nil
}

// Recount makes what is kept in counts again, and returns how many were wrong.
// On PostgreSQL it waits for those who change assets, and they for it.
func (db *DB) Recount(ctx context.Context) (wrong int64, err error) {
	return written(ctx, db, recount)
}
