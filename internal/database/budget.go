package database

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Spend implements budget.Store. One statement counts the call if the window is
// closed or has room: the row's lock makes the count exact.
func (db *DB) Spend(ctx context.Context, key string, limit int, window time.Duration, now time.Time) (int, bool, time.Time, error) {
	var w budgetWindow
	spent := false
	err := db.statementRelaxed(ctx, func(ctx context.Context, t conn) (err error) {
		w, err = one(ctx, t, scanWindow, `INSERT INTO budgets (key, used, closes_at) VALUES (?, 1, ?)
			ON CONFLICT (key) DO UPDATE SET
				used = CASE WHEN budgets.closes_at <= ? THEN 1 ELSE budgets.used + 1 END,
				closes_at = CASE WHEN budgets.closes_at <= ? THEN excluded.closes_at ELSE budgets.closes_at END
			WHERE budgets.closes_at <= ? OR budgets.used < ?
			RETURNING used, closes_at`,
			key, millis(now.Add(window)), millis(now), millis(now), millis(now), limit)
		spent = err == nil
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		w, err = one(ctx, t, scanWindow, `SELECT used, closes_at FROM budgets WHERE key = ?`, key)
		return err
	})
	return w.used, spent, w.closes, err
}

type budgetWindow struct {
	used   int
	closes time.Time
}

func scanWindow(r row) (w budgetWindow, err error) {
	var closes int64
	err = r.Scan(&w.used, &closes)
	w.closes = instant(closes)
	return w, err
}
