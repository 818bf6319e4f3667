package database

import (
	"context"
	"database/sql"
	"errors"
)

// part is one statement of a chain, with its arguments.
type part struct {
	text string
	args []any
}

// chain runs the first part, which ends in RETURNING one text, and, if it made
// a row, the others after it, all or none; see dialect.follow. It reports
// whether the first made a row. tx is a transaction, or a statement of its own
// where the engine makes one statement of the chain.
func (db *DB) chain(ctx context.Context, tx conn, first part, then ...part) (bool, error) {
	texts, args := make([]string, len(then)), first.args
	for n, p := range then {
		texts[n] = p.text
	}
	statements := db.dialect.follow(first.text, texts...)
	if len(statements) == 1 {
		for _, p := range then {
			args = append(args, p.args...)
		}
		n, err := tx.execCount(ctx, statements[0], args...)
		return n == 1, err
	}
	if _, err := one(ctx, tx, scanValue[string], statements[0], args...); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return false, err
	}
	for n, p := range then {
		if err := tx.exec(ctx, statements[n+1], p.args...); err != nil {
			return false, err
		}
	}
	return true, nil
}
