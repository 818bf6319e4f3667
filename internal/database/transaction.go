package database

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// tx is a writing transaction. It is a conn.
type tx struct {
	session
	// hints are what is notified once the transaction is durable: ids by topic.
	hints map[string][]string
	// raised are the companies whose version of controls rises; see raises.
	raised []string
	// told: the transaction wrote an event; see NumberEvents.
	told bool
	// compared: a statement of the transaction compared the permit itself.
	compared bool
}

func (t *tx) hint(topic string, ids ...string) {
	if len(ids) == 0 {
		return
	}
	if t.hints == nil {
		t.hints = map[string][]string{}
	}
	t.hints[topic] = append(t.hints[topic], ids...)
}

// changed hints to the pages that are open, on every replica, that an asset, a
// policy or a proposal changed, or an asset's command; id empty: some did.
// Last-seen times alone are not announced.
func (t *tx) changed(companyID, kind, id string) {
	t.hint(resource.Changes, resource.Change(companyID, kind, id))
}

// lock makes a SELECT lock its rows until the transaction ends.
func (t *tx) lock() string { return t.db.dialect.rows().lock }

// hold is lock for rows whose key stays: others may make rows that refer to them.
func (t *tx) hold() string { return t.db.dialect.rows().hold }

// skipLocked is lock that leaves out the rows that another has locked.
func (t *tx) skipLocked() string { return t.db.dialect.rows().skip }

// work is what a transaction does; see the package comment.
type work func(ctx context.Context, t *tx) error

// write runs f in a transaction, durable when write returns. Every replica then
// gets its hints.
func (db *DB) write(ctx context.Context, f work) error {
	var last *tx // of the attempt that was committed
	err := db.bound(ctx, func(ctx context.Context, t *tx) error {
		last = t
		return f(ctx, t)
	})
	if err == nil {
		for topic, ids := range last.hints {
			db.Notify(topic, ids...)
		}
		if last.told {
			db.wakes.told()
		}
	}
	return err
}

// bound runs f in a transaction that is committed only if the context's permit stands.
func (db *DB) bound(ctx context.Context, f work) error {
	var version int64 // of the attempt that was committed
	err := db.permitted(ctx, func() error {
		return db.run(ctx, func(ctx context.Context, t *tx) (err error) {
			if err = f(ctx, t); err == nil {
				version, err = db.conclude(ctx, t)
			}
			return err
		}, false)
	})
	if permit := access.PermitOf(ctx); permit != nil && err == nil {
		permit.Wrote(version)
	}
	return err
}

// written is write with a result, that of the attempt that was committed.
func written[T any](ctx context.Context, db *DB, f func(ctx context.Context, t *tx) (T, error)) (result T, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		result, err = f(ctx, t)
		return err
	})
	return result, err
}

// writeRelaxed runs f in a transaction that the machine's power cut may undo.
func (db *DB) writeRelaxed(ctx context.Context, f work) error { return db.run(ctx, f, true) }

// statement is write for one single statement. Under a permit it is a transaction.
func (db *DB) statement(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	if access.PermitOf(ctx) != nil {
		return db.bound(ctx, func(ctx context.Context, t *tx) error { return f(ctx, t) })
	}
	return db.single(ctx, f, false)
}

// comparing is statement for one that compares the permit itself.
func (db *DB) comparing(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	permit := access.PermitOf(ctx)
	err := db.permitted(ctx, func() error { return db.single(ctx, f, false) })
	if permit != nil && err == nil {
		permit.Wrote(0)
	}
	return err
}

// statementRelaxed is writeRelaxed for one single statement.
func (db *DB) statementRelaxed(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	return db.single(ctx, f, true)
}

func (db *DB) single(ctx context.Context, f func(ctx context.Context, c conn) error, relaxed bool) error {
	if db.writer != nil {
		return db.run(ctx, func(ctx context.Context, t *tx) error { return f(ctx, t) }, relaxed)
	}
	if ctx.Value(inside{}) != nil {
		return errNested
	}
	if err := db.mayWrite(); err != nil {
		return err
	}
	return db.storage.note(retry(ctx, func() error { return f(context.WithoutCancel(ctx), db.read()) }), db.now())
}

// exec runs a single statement, durable when exec returns.
func (db *DB) exec(ctx context.Context, query string, args ...any) error {
	_, err := db.execCount(ctx, query, args...)
	return err
}

// execCount is exec that returns how many rows the statement changed.
func (db *DB) execCount(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = db.statement(ctx, func(ctx context.Context, c conn) (err error) {
		n, err = c.execCount(ctx, query, args...)
		return err
	})
	return n, err
}

// execRelaxed is execCount for a change that the machine's power cut may undo.
func (db *DB) execRelaxed(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		n, err = c.execCount(ctx, query, args...)
		return err
	})
	return n, err
}

// snapshot runs f, which only reads, on one unchanging state of the database.
func (db *DB) snapshot(ctx context.Context, f func(ctx context.Context, c conn) error) (err error) {
	t, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: db.dialect.snapshot()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Rollback()) }()
	return f(ctx, session{db, t})
}

// inside marks the context of a transaction: to write through db there would
// wait for itself.
type inside struct{}

var errNested = errors.New("database: a write inside a write")

func (db *DB) run(ctx context.Context, f work, relaxed bool) error {
	if ctx.Value(inside{}) != nil {
		return errNested
	}
	if err := db.mayWrite(); err != nil {
		return err
	}
	if db.writer != nil {
		return db.storage.note(db.writer.run(ctx, f, relaxed), db.now())
	}
	return db.storage.note(retry(ctx, func() error { return db.runPostgres(ctx, f) }), db.now())
}

// writeLimit ends a transaction that hangs although nothing cancels it.
const writeLimit = time.Minute

// runPostgres runs f once in a transaction at READ COMMITTED: statements lock
// the rows that they change, and compare what they expect.
func (db *DB) runPostgres(ctx context.Context, f work) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), inside{}, true), writeLimit)
	defer cancel()
	begun, err := db.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &tx{session: session{db, begun}}
	defer func() { _ = begun.Rollback() }() // also when f panics; of no effect after Commit
	if err := f(ctx, t); err != nil {
		return err
	}
	return begun.Commit()
}

// attempts bounds how often a transaction that lost to another runs again.
const attempts = 10

// retry runs f again while it fails for a reason that passes.
func retry(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if !transient(err) || n == attempts || !wait.For(ctx, rand.N(time.Duration(n)*10*time.Millisecond)) {
			return err
		}
	}
}

// part is one statement of a chain, with its arguments.
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
	statements := db.dialect.follow(first.text, texts...)
	if len(statements) == 1 {
		for _, p := range then {
			args = append(args, p.args...)
		}
		n, err := tx.execCount(ctx, statements[0], args...)
		return n == 1, err
	}
	made, _, _ := strings.Cut(statements[0], " RETURNING ") // what is counted needs not be returned
	if n, err := tx.execCount(ctx, made, args...); err != nil || n == 0 {
		return false, err
	}
	for n, p := range then {
		if err := tx.exec(ctx, statements[n+1], p.args...); err != nil {
			return false, err
		}
	}
	return true, nil
}
