package database

import (
	"context"
	"time"
)

const (
	// aged is the name under which operator_acts has the time of AgedBy.
	aged = "aged"
	// agePace is how far that time follows the clock at each look, ahead or back.
	agePace = time.Hour
)

// AgedBy returns the time by whose age rows are removed: that of the clock or, after a jump of the clock ahead, one that is
// an hour later at each call. A clock that is ahead for a moment removes little before its time, and what a service that did
// not run for weeks left is removed within a day or two. A clock that is behind for a moment delays that by no more than as
// many calls.
func (db *DB) AgedBy(ctx context.Context) (time.Time, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (time.Time, error) {
		now, pace := millis(db.now()), agePace.Milliseconds()
		at, err := value[int64](ctx, t, `INSERT INTO operator_acts (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE
			SET at = CASE WHEN operator_acts.at + ? < excluded.at THEN operator_acts.at + ?
				WHEN operator_acts.at - ? > excluded.at THEN operator_acts.at - ? ELSE excluded.at END RETURNING at`,
			aged, now, pace, pace, pace, pace)
		return instant(min(at, now)), err
	})
}

// notBehind is the condition that this clock is not behind, as far as the time of AgedBy shows. Its parameter is agedMost.
// While it does not hold, no time that seems to be in the future is set to the present. After a clock that was ahead for many
// looks, it holds again after as many.
const notBehind = `(COALESCE((SELECT a.at FROM operator_acts a WHERE a.name = '` + aged + `'), 0) <= ?)`

// agedMost is the latest time of AgedBy, in milliseconds, with which a clock that shows now is believed. Two replicas may
// have looked since.
func agedMost(now time.Time) int64 { return millis(now.Add(2 * agePace)) }
