package database

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// kind is one cell of the kept counts: assets of a company, a status and a
// policy, of which only enrolled assets have one. Without a status it is a cell
// of the patch levels: enrolled assets of a company, a policy and a month.
type kind struct{ company, status, policy, month string }

func compareKinds(a, b kind) int {
	return cmp.Or(cmp.Compare(a.company, b.company), cmp.Compare(a.status, b.status), cmp.Compare(a.policy, b.policy), cmp.Compare(a.month, b.month))
}

// counts are changes of the kept counts that a transaction makes.
type counts map[kind]int64

func (c counts) add(companyID string, s asset.Status, policyID string, n int64) {
	c[kind{company: companyID, status: string(s), policy: policyID}] += n
}

// addPatch adds enrolled assets to their month.
func (c counts) addPatch(companyID, policyID, month string, n int64) {
	c[kind{company: companyID, policy: policyID, month: month}] += n
}

// save adds the changes to the kept counts, always in the same order, so that
// transactions do not lock each other out.
func (c counts) save(ctx context.Context, t *tx) error {
	for _, k := range slices.SortedFunc(maps.Keys(c), compareKinds) {
		if c[k] == 0 {
			continue
		}
		if k.status == "" {
			if err := savePatch(ctx, t, k, c[k]); err != nil {
				return err
			}
			continue
		}
		if err := t.exec(ctx, `INSERT INTO asset_counts (company_id, status, policy_id, count) VALUES (?, ?, ?, ?)
			ON CONFLICT (company_id, status, policy_id) DO UPDATE SET count = asset_counts.count + excluded.count`,
			k.company, k.status, k.policy, c[k]); err != nil {
			return err
		}
	}
	return nil
}

// CountAssets counts from the kept counts: a few rows, however many assets.
func (db *DB) CountAssets(ctx context.Context, f asset.Filter) (int64, error) {
	return countAssets(ctx, db.read(), f)
}

func countAssets(ctx context.Context, c conn, f asset.Filter) (int64, error) {
	policies, limited := onlyPolicies(f)
	if limited && len(policies) == 0 {
		return 0, nil
	}
	query, args := `SELECT COALESCE(CAST(SUM(count) AS BIGINT), 0) FROM asset_counts WHERE company_id = ?`, []any{f.CompanyID}
	if f.Status != "" {
		query, args = query+` AND status = ?`, append(args, string(f.Status))
	}
	if f.Enrolled {
		query += enrolledOnly
	}
	if limited {
		query, args = query+` AND policy_id IN (`+marks(len(policies))+`)`, append(args, anys(policies)...)
	}
	return value[int64](ctx, c, query, args...)
}

// onlyPolicies returns the policies that a filter admits, and whether it does
// not admit all.
func onlyPolicies(f asset.Filter) (policies []string, limited bool) {
	switch {
	case f.PolicyID == "":
		return f.Policies, f.Policies != nil
	case f.Policies == nil || slices.Contains(f.Policies, f.PolicyID):
		return []string{f.PolicyID}, true
	default:
		return nil, true
	}
}

func savePatch(ctx context.Context, t *tx, k kind, n int64) error {
	return t.exec(ctx, `INSERT INTO patch_counts (company_id, policy_id, month, count) VALUES (?, ?, ?, ?)
		ON CONFLICT (company_id, policy_id, month) DO UPDATE SET count = patch_counts.count + excluded.count`,
		k.company, k.policy, k.month, n)
}

// PatchLevels implements asset.Overview, from the kept counts.
func (db *DB) PatchLevels(ctx context.Context, companyID string, policies []string) ([]asset.PatchLevel, error) {
	query, args := `SELECT month, CAST(SUM(count) AS BIGINT) FROM patch_counts WHERE company_id = ?`, []any{companyID}
	if policies != nil {
		if len(policies) == 0 {
			return nil, nil
		}
		query, args = query+` AND policy_id IN (`+marks(len(policies))+`)`, append(args, anys(policies)...)
	}
	return list(ctx, db.read(), into(func(p *asset.PatchLevel) []any { return []any{&p.Month, &p.Devices} }),
		query+` GROUP BY month HAVING SUM(count) > 0 ORDER BY month DESC`, args...)
}

// patchField is how a patch level begins in specifications as they are stored.
// No value can look like it: its quotes would be escaped.
const patchField = `"securityPatchLevel":"`

// The years that a patch level may be of; what is beyond was not reported
// soundly. The months are a bounded set, whatever devices say (migration 0081
// has the same).
const firstPatchYear, lastPatchYear = "2008", "2099"

// patchMonth is the month of the patch level in specifications; empty: none.
func patchMonth(specifications string) string {
	_, level, found := strings.Cut(specifications, patchField)
	if !found || len(level) < len("2026-10") {
		return ""
	}
	year, month, dash := level[:4], level[5:7], level[4]
	for _, c := range []byte(year + month) {
		if c < '0' || c > '9' {
			return ""
		}
	}
	if dash != '-' || year < firstPatchYear || year > lastPatchYear || month < "01" || month > "12" {
		return ""
	}
	return level[:len("2026-10")]
}

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
