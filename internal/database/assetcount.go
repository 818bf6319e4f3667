package database

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database/engine"
)

// kind is one cell of the kept counts: assets of a company, a status and a
// policy, of which only enrolled assets have one. Without a status it is a cell
// of the patch levels: enrolled assets of a company, a policy and a month.
type kind struct{ company, status, policy, month string }

func compareKinds(a, b kind) int {
	return cmp.Or(cmp.Compare(a.company, b.company), cmp.Compare(a.status, b.status), cmp.Compare(a.policy, b.policy),
		cmp.Compare(a.month, b.month))
}

// counts are changes of the kept counts that a transaction makes.
type counts map[kind]int64

func (c counts) add(companyID string, s asset.Status, policyID string, n int64) {
	c[kind{company: companyID, status: string(s), policy: policyID}] += n
}

// save adds the changes to the kept counts, always in the same order, so that
// transactions do not lock each other out.
func (c counts) save(ctx context.Context, t *tx) {
	for _, k := range slices.SortedFunc(maps.Keys(c), compareKinds) {
		if c[k] == 0 {
			continue
		}
		if k.status == "" {
			t.do(ctx, `INSERT INTO patch_counts (company_id, policy_id, month, count) VALUES (?, ?, ?, ?)
				ON CONFLICT (company_id, policy_id, month) DO UPDATE SET count = patch_counts.count + excluded.count`,
				k.company, k.policy, k.month, c[k])
			continue
		}
		t.do(ctx, `INSERT INTO asset_counts (company_id, status, policy_id, count) VALUES (?, ?, ?, ?)
			ON CONFLICT (company_id, status, policy_id) DO UPDATE SET count = asset_counts.count + excluded.count`,
			k.company, k.status, k.policy, c[k])
	}
}

// CountAssets counts what is filtered by status and policy alone from the kept counts: a
// few rows, however many assets.
func (db *DB) CountAssets(ctx context.Context, f asset.Filter) (int64, error) {
	q := newAssetQuery(f)
	if q.where.none() {
		return countAssets(ctx, db.read(), f)
	}
	places, whole, err := db.whole(ctx, q, asset.BySyncedAt)
	if err != nil || whole {
		return int64(len(places)), err
	}
	return db.countMany(ctx, q)
}

func countAssets(ctx context.Context, c conn, f asset.Filter) (int64, error) {
	count := keptCount(f)
	return value[int64](ctx, c, count.text, count.args...)
}

// keptCount is the query of a count from the kept counts.
func keptCount(f asset.Filter) part {
	query, args := `SELECT COALESCE(CAST(SUM(count) AS BIGINT), 0) FROM asset_counts WHERE company_id = ?`, []any{f.CompanyID}
	switch {
	case f.Archived:
		query += ` AND status = '` + string(archived) + `'`
	case f.Status != "":
		query, args = query+` AND status = ?`, append(args, string(f.Status))
	default:
		query += ` AND status <> '` + string(archived) + `'`
	}
	if f.Enrolled {
		query += enrolledOnly
	}
	only, policies := ofPolicies(`policy_id`, onlyPolicies(f))
	return part{query + only, append(args, policies...)}
}

// onlyPolicies returns the policies that a filter admits; nil: all.
func onlyPolicies(f asset.Filter) []string {
	switch {
	case f.PolicyID == "":
		return f.Policies
	case f.Policies == nil || slices.Contains(f.Policies, f.PolicyID):
		return []string{f.PolicyID}
	default:
		return []string{}
	}
}

// PatchLevels implements asset.Overview, from the kept counts.
func (db *DB) PatchLevels(ctx context.Context, companyID string, policies []string) ([]asset.PatchLevel, error) {
	where, args := ofPolicies(`policy_id`, policies)
	return list(ctx, db.read(), into(func(p *asset.PatchLevel) []any { return []any{&p.Month, &p.Devices} }),
		`SELECT month, CAST(SUM(count) AS BIGINT) FROM patch_counts WHERE company_id = ?`+where+
			` GROUP BY month HAVING SUM(count) > 0 ORDER BY month DESC`, append([]any{companyID}, args...)...)
}

// The years that a patch level may be of; what is beyond was not reported soundly. The
// months are a bounded set, whatever devices say.
const firstPatchYear, lastPatchYear = 2008, 2099

// patchDay is a security patch level that is a day; empty: none.
func patchDay(level string) string {
	day, err := time.Parse(time.DateOnly, level)
	if err != nil || day.Year() < firstPatchYear || day.Year() > lastPatchYear {
		return ""
	}
	return level
}

// patchMonth is the month of the patch level in specifications; empty: none.
func patchMonth(specifications string) string {
	facts, _ := decodeMap(specifications) // what is damaged is found when the row is saved
	if day := patchDay(facts["securityPatchLevel"]); day != "" {
		return day[:len("2026-10")]
	}
	return ""
}

// The kept counts, and what they must be.
const (
	patchCounts = `SELECT company_id, policy_id, substr(patch, 1, 7) AS month, COUNT(*) AS count FROM assets
		WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') GROUP BY 1, 2, 3`
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
	if lock := t.Dialect().LockTable("assets"); lock != "" {
		t.do(ctx, lock)
	}
	for _, kept := range keptCounts {
		must := t.Dialect().Schema(kept.must)
		differs := valueIn[int64](ctx, t, `SELECT COUNT(*) FROM (
			SELECT * FROM (`+must+`) AS missing EXCEPT SELECT `+kept.keys+`, count FROM `+kept.table+`) AS wrong`)
		surplus := valueIn[int64](ctx, t, `SELECT COUNT(*) FROM (
			SELECT `+kept.keys+`, count FROM `+kept.table+` WHERE count <> 0 EXCEPT SELECT * FROM (`+must+`) AS present) AS wrong`)
		if differs+surplus == 0 {
			continue
		}
		wrong += max(differs, surplus)
		t.do(ctx, `DELETE FROM `+kept.table)
		t.do(ctx, `INSERT INTO `+kept.table+` (`+kept.keys+`, count) `+must)
	}
	return wrong, nil
}

// recountChanged is recount in the transaction that changed the tables.
func recountChanged(ctx context.Context, t engine.Tx) error {
	return (*DB)(nil).within(ctx, t, func(ctx context.Context, t *tx) error {
		_, err := recount(ctx, t)
		return err
	})
}

// Recount makes what is kept in counts again, and returns how many were wrong.
// On PostgreSQL it waits for those who change assets, and they for it.
func (db *DB) Recount(ctx context.Context) (wrong int64, err error) {
	return written(ctx, db, recount)
}
