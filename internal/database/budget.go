package database

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/resource"
)

// Spend implements access.Throttle. One statement counts the call if the window is
// closed or has room: the row's lock makes the count exact.
func (db *DB) Spend(ctx context.Context, key string, limit int, window time.Duration, now time.Time) (int, bool, time.Time, error) {
	var w budgetWindow
	spent := false
	first, last := openEnds(window, now)
	reads := !db.engine.OneWriter() && access.AheadOf(ctx).CompanyID != "" && resource.IsID(access.AheadOf(ctx).Asset)
	err := db.statementRelaxed(ctx, func(ctx context.Context, t conn) (err error) {
		for range spendTries {
			count := spending(key, limit, window, now)
			if reads {
				w, err = spendAhead(ctx, t, count)
			} else {
				w, err = one(ctx, t, into(windowFields), count.text, count.args...)
			}
			if !errors.Is(err, engine.ErrNoRow) {
				spent = err == nil
				return err
			}
			w, err = one(ctx, t, into(windowFields), `SELECT used, closes_at FROM budgets WHERE key = ?`, key)
			// A window that opened between the two statements has room again.
			if err != nil || w.used >= limit && first <= millis(w.closes) && millis(w.closes) <= last {
				return err
			}
		}
		return nil
	})
	return w.used, spent, w.closes, err
}

// GiveBack implements account.FailureThrottle.
func (db *DB) GiveBack(ctx context.Context, keys []string, now time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	return db.execRelaxed(ctx, `UPDATE budgets SET used = used - 1 WHERE key IN (`+marks(len(keys))+`) AND used > 0 AND closes_at > ?`,
		append(anys(keys), millis(now))...)
}

// spendTries bounds how often a call is tried again because others opened new
// windows while it was being told that the old one is full.
const spendTries = 5

// latest is the last time, in milliseconds, that is believed at now.
func latest(now time.Time) int64 { return millis(now.Add(access.ClockStep)) }

// holding are the arguments for a BETWEEN of the times, in milliseconds, since which what lasts for life holds at now: see
// access.Holds.
func holding(life time.Duration, now time.Time) []any {
	return []any{millis(now.Add(-life)) + 1, latest(now)}
}

// openEnds are the first and the last end, in milliseconds, of a window that is open at now.
// One that ends later was opened before the clock was set back.
func openEnds(window time.Duration, now time.Time) (first, last int64) {
	return millis(now) + 1, millis(now.Add(window + access.ClockStep))
}

// spending counts a call and returns its window, or no row where the window is full.
func spending(key string, limit int, window time.Duration, now time.Time) part {
	const closed = `budgets.closes_at NOT BETWEEN ? AND ?`
	first, last := openEnds(window, now)
	return part{`INSERT INTO budgets (key, used, closes_at) VALUES (?, 1, ?)
		ON CONFLICT (key) DO UPDATE SET
			used = CASE WHEN ` + closed + ` THEN 1 ELSE budgets.used + 1 END,
			closes_at = CASE WHEN ` + closed + ` THEN excluded.closes_at ELSE budgets.closes_at END
		WHERE ` + closed + ` OR budgets.used < ?
		RETURNING used, closes_at`,
		[]any{key, millis(now.Add(window)), first, last, first, last, first, last, limit}}
}

type budgetWindow struct {
	used   int
	closes time.Time
}

func windowFields(w *budgetWindow) []any { return []any{&w.used, at(&w.closes)} }

// BudgetWindow implements operation.BudgetStore.
func (db *DB) BudgetWindow(ctx context.Context, key string, window time.Duration, now time.Time) (int, time.Time, error) {
	first, last := openEnds(window, now)
	w, _, err := maybe(one(ctx, db.read(), into(windowFields), `SELECT used, closes_at FROM budgets
		WHERE key = ? AND closes_at BETWEEN ? AND ?`, key, first, last))
	return w.used, w.closes, err
}

// BudgetUsed returns how much of their present window keys of budgets have
// spent; a key whose window is closed is left out.
func (db *DB) BudgetUsed(ctx context.Context, keys []string, window time.Duration, now time.Time) (map[string]int, error) {
	if len(keys) == 0 {
		return map[string]int{}, nil
	}
	first, last := openEnds(window, now)
	return mapped[string, int](ctx, db.read(), `SELECT key, used FROM budgets WHERE key IN (`+marks(len(keys))+
		`) AND closes_at BETWEEN ? AND ?`, append(anys(keys), first, last)...)
}
