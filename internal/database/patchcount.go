package database

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

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
