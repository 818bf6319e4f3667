package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
)

// Activity implements activity.Store.
func (db *DB) Activity(ctx context.Context, f activity.Filter, after activity.Cursor, limit int) ([]activity.Entry, error) {
	where, args := activityWhere(f)
	if after.ID != "" {
		where += ` AND (e.at, e.id) < (?, ?)`
		args = append(args, millis(after.At), after.ID)
	}
	return list(ctx, db.read(), scanListed, listedActivity+where+` ORDER BY e.at DESC, e.id DESC LIMIT ?`,
		append(args, min(limit, activity.MaxPage))...)
}

// ActivityEntry implements activity.Store. The time is part of
// the key: an id alone does not find an entry quickly.
func (db *DB) ActivityEntry(ctx context.Context, companyID string, at time.Time, id string) (activity.Entry, error) {
	entries, err := list(ctx, db.read(), scanListed, listedActivity+` WHERE e.company_id = ? AND e.at = ? AND e.id = ?`,
		companyID, millis(at), id)
	if err == nil && len(entries) == 0 {
		err = notFoundActivity()
	}
	if err != nil {
		return activity.Entry{}, err
	}
	return entries[0], nil
}

// ActivityDensity implements activity.Store.
func (db *DB) ActivityDensity(ctx context.Context, f activity.Filter, width time.Duration) ([]activity.Bucket, error) {
	where, args := activityWhere(f)
	from, step := millis(f.From), max(1, width.Milliseconds())
	return list(ctx, db.read(), func(r row) (b activity.Bucket, err error) {
		var n int64
		err = r.Scan(&n, &b.Count)
		b.From = instant(from + n*step)
		return b, err
	}, `SELECT (e.at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, COUNT(*) FROM activity e`+where+
		` GROUP BY bucket ORDER BY bucket`, append([]any{from, step}, args...)...)
}

// ActivityOfActors counts what each caller of a kind did, each command once, in stretches of
// width from a time on, by the caller's id.
func (db *DB) ActivityOfActors(ctx context.Context, companyID string, kind access.Kind, since time.Time, width time.Duration) (map[string][]activity.Bucket, error) {
	from, step := millis(since), max(1, width.Milliseconds())
	type counted struct {
		id     string
		bucket activity.Bucket
	}
	all, err := list(ctx, db.read(), func(r row) (c counted, err error) {
		var n int64
		err = r.Scan(&c.id, &n, &c.bucket.Count)
		c.bucket.From = instant(from + n*step)
		return c, err
	}, `SELECT e.actor_id, (e.at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, COUNT(*) FROM activity e
		WHERE e.company_id = ? AND e.actor_kind = ? AND e.at >= ? AND `+firstEntry+` GROUP BY e.actor_id, bucket ORDER BY e.actor_id, bucket`,
		from, step, companyID, string(kind), from)
	counts := map[string][]activity.Bucket{}
	for _, c := range all {
		counts[c.id] = append(counts[c.id], c.bucket)
	}
	return counts, err
}
