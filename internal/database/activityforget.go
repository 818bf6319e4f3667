package database

import (
	"context"
	"math"
	"time"

	"github.com/musterhq/muster/internal/activity"
)

// ForgetActivity implements activity.ChainStore.
func (db *DB) ForgetActivity(ctx context.Context, companyID string, before time.Time, limit int, seal activity.Seal) (int, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (removed int, err error) {
		head, err := lockHead(ctx, t, companyID)
		if err == nil {
			err = seal.Check(head)
		}
		if err != nil {
			return 0, err
		}
		oldest := listed(ctx, t, into(func(l *link) []any { return []any{&l.seq, &l.at, &l.hash} }),
			`SELECT e.seq, e.at, e.hash FROM activity e WHERE e.company_id = ? AND e.seq > 0 ORDER BY e.seq LIMIT ?`, companyID, limit)
		removed, err = outdated(ctx, t, companyID, head.First, millis(before), oldest)
		if err != nil || removed == 0 {
			return removed, err
		}
		last := oldest[removed-1]
		head.First, head.Anchor = last.seq+1, last.hash
		t.do(ctx, `DELETE FROM activity WHERE company_id = ? AND seq > 0 AND seq < ?`, companyID, head.First)
		return removed, saveHead(ctx, t, head, seal.Sign)
	})
}

// outdated counts the oldest entries, from the first of the chain, that are older than a
// time. What is missing stays missing, for Verify to tell. An entry that was written while
// the clock was ahead is as old as those after it.
func outdated(ctx context.Context, t *tx, companyID string, first, before int64, oldest []link) (int, error) {
	certain, n := 0, 0
	young, ahead := int64(math.MaxInt64), int64(0) // the least time of those that seem young, and of those before an old one
	for i, l := range oldest {
		if l.seq != first+int64(i) {
			break
		}
		switch {
		case l.at >= before:
			young = min(young, l.at)
		case certain == i:
			certain, n = i+1, i+1
		default:
			n, ahead = i+1, young
		}
	}
	if n == certain {
		return n, nil
	}
	wrong, err := writtenAhead(ctx, t, companyID, before, ahead, oldest[n-1].seq)
	if err != nil || !wrong {
		n = certain
	}
	return n, err
}

// writtenAhead reports whether the clock was ahead when an entry was written that an old one
// follows. Then it is from the future, or young ones after both are earlier. Else
// the clock was behind at the old one: that makes no other entry old.
func writtenAhead(ctx context.Context, t *tx, companyID string, before, at, old int64) (bool, error) {
	if at > latest(t.db.now()) {
		return true, nil
	}
	next, found, err := maybe(one(ctx, t, scanValue[int64],
		`SELECT e.at FROM activity e WHERE e.company_id = ? AND e.at >= ? AND e.seq > ? ORDER BY e.at, e.id LIMIT 1`, companyID, before, old))
	return found && next < at, err
}
