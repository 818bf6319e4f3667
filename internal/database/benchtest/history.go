package benchtest

import (
	"context"
	"testing"
	"time"
)

// history is what an asset was sent, one command every thousand milliseconds. The engines
// make the rows.
const history = `INSERT INTO commands (id, company_id, asset_id, epoch, type, state, created_at, feedback_at, outcome, actor_kind, actor_id,
		actor_prefix, actor_name, ref, deadline, policy_id, idempotency_ref)
	WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
	SELECT 'c' || (CAST(? AS BIGINT) + i), CAST(? AS TEXT), CAST(? AS TEXT), 1, 'LOCK', 'SUCCESS', CAST(? AS BIGINT) + i * 1000,
		CAST(? AS BIGINT) + i * 1000,
		'', 'KEY', 'key', 'mk_old', 'Old key', 'old-' || (CAST(? AS BIGINT) + i), 0, '', '' FROM n`

// WithHistory gives the assets of Some, in turn, commands that were decided long ago, and
// lets no retention delete them before Forget.
func (f *Fleet) WithHistory(b *testing.B, floor *Floor, commands int, since time.Time) {
	b.Helper()
	each := max(1, commands/len(f.Some))
	for n, id := range f.Some {
		at, serial := since.UnixMilli()+int64(n), int64(n+1)*100_000_000
		must(b, floor.exec(b.Context(), history, each, serial, f.Company.ID, id, at, at, serial))
	}
	must(b, floor.exec(b.Context(), `INSERT INTO retentions (company_id, next_at, commands, places) VALUES (?, ?, 0, 0)`,
		f.Company.ID, int64(1)<<50))
	if floor.postgres {
		must(b, floor.exec(b.Context(), `VACUUM ANALYZE commands`))
	}
}

// Forget makes the retention due.
func (f *Fleet) Forget(b *testing.B, floor *Floor) {
	b.Helper()
	must(b, floor.exec(b.Context(), `DELETE FROM retentions WHERE company_id = ?`, f.Company.ID))
}

// Forgotten reports whether the retention that Forget made due has ended, and how many
// commands from before are left.
func (f *Floor) Forgotten(ctx context.Context, before time.Time) (ended bool, left int64, err error) {
	var n int
	err = f.pool.QueryRowContext(ctx, f.bind(`SELECT COUNT(*) FROM retentions WHERE next_at > ?`),
		time.Now().Add(12*time.Hour).UnixMilli()).
		Scan(&n)
	if err == nil && n > 0 {
		err = f.pool.QueryRowContext(ctx, f.bind(`SELECT COUNT(*) FROM commands WHERE created_at < ?`), before.UnixMilli()).Scan(&left)
	}
	return n > 0, left, err
}
