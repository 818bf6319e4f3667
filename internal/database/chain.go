package database

import (
	"context"
	"strings"
)

// part is one statement of a chain, or a condition of a query, with its arguments.
type part struct {
	text string
	args []any
}

// with puts conditions before the end of a statement with a WHERE.
func (p part) with(conditions []part, end string) part {
	p.text = strings.TrimSuffix(p.text, end)
	for _, c := range conditions {
		p = part{p.text + " AND " + c.text, append(p.args, c.args...)}
	}
	p.text += end
	return p
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
	statements := db.engine.Dialect().Follow(first.text, texts...)
	if len(statements) == 1 {
		for _, p := range then {
			args = append(args, p.args...)
		}
		n, err := tx.ExecCount(ctx, statements[0], args...)
		return n == 1, err
	}
	made, _, _ := strings.Cut(statements[0], " RETURNING ") // what is counted needs not be returned
	if n, err := tx.ExecCount(ctx, made, args...); err != nil || n == 0 {
		return false, err
	}
	for n, p := range then {
		if err := tx.Exec(ctx, statements[n+1], p.args...); err != nil {
			return false, err
		}
	}
	return true, nil
}
