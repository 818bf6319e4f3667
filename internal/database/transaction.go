package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// tx is a writing transaction. It is a conn.
type tx struct {
	engine.Tx
	db *DB
	// hints are what is notified once the transaction is durable: ids by topic.
	hints map[string][]string
	// raised are the companies whose version of controls rises; see raises.
	raised []string
	// wroteEvent: the transaction wrote an event; see NumberEvents.
	wroteEvent bool
	// compared: a statement of the transaction compared the permit itself.
	compared bool
	// failed is the first error of do and check.
	failed error
}

// do runs a statement. If it fails, no further statement of the transaction reaches the
// database, and the transaction fails with its error, whatever its function returns.
func (t *tx) do(ctx context.Context, query string, args ...any) { t.check(t.Exec(ctx, query, args...)) }

// count is do that returns how many rows the statement changed; 0 after a failure.
func (t *tx) count(ctx context.Context, query string, args ...any) int64 {
	n, err := t.ExecCount(ctx, query, args...)
	t.check(err)
	return n
}

// holds reports whether a query for one text finds any; false after a failure.
func (t *tx) holds(ctx context.Context, query string, args ...any) bool {
	there, err := holds(ctx, t, query, args...)
	t.check(err)
	return there
}

// check is do for what a step of the transaction returned.
func (t *tx) check(err error) { t.failed = cmp.Or(t.failed, err) }

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
func (t *tx) lock() string { return t.Dialect().Rows().Lock }

// hold is lock for rows whose key stays: others may make rows that refer to them.
func (t *tx) hold() string { return t.Dialect().Rows().Hold }

// skipLocked is lock that leaves out the rows that another has locked.
func (t *tx) skipLocked() string { return t.Dialect().Rows().Skip }

// work is what a transaction does; see the package comment.
type work func(ctx context.Context, t *tx) error

// write runs f in a transaction, durable when write returns. Every replica then
// gets its hints.
func (db *DB) write(ctx context.Context, f work) error {
	var last *tx // of the attempt that was committed
	attempt := func(ctx context.Context, t *tx) error {
		last = t
		return f(ctx, t)
	}
	err := db.bound(ctx, attempt)
	for left := inventoryWait(ctx); errors.Is(err, errInventory) && left > 0 && wait.For(ctx, inventoryPause); left -= inventoryPause {
		err = db.bound(ctx, attempt)
	}
	if err == nil {
		for topic, ids := range last.hints {
			db.Notify(topic, ids...)
		}
		if last.wroteEvent {
			db.wakeNumbering()
		}
	}
	return err
}

// bound runs f in a transaction that is committed only if the context's permit is still valid.
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

// refusing is write for work that may refuse something and record that: what it refused is returned
// once the record is durable.
func (db *DB) refusing(ctx context.Context, f func(ctx context.Context, t *tx) (refused, err error)) error {
	refused, err := written(ctx, db, f)
	return cmp.Or(err, refused)
}

// writeRelaxed runs f in a transaction that the machine's power cut may undo.
func (db *DB) writeRelaxed(ctx context.Context, f work) error { return db.run(ctx, f, true) }

// run runs f in a transaction that no permit binds.
func (db *DB) run(ctx context.Context, f work, relaxed bool) error {
	return db.engine.Write(ctx, func(ctx context.Context, t engine.Tx) error { return db.within(ctx, t, f) }, relaxed)
}

// within runs f in a transaction of the engine.
func (db *DB) within(ctx context.Context, begun engine.Tx, f work) error {
	t := &tx{db: db}
	t.Tx = begun.Until(&t.failed)
	err := f(ctx, t)
	return cmp.Or(t.failed, err)
}

// wakeNumbering wakes who gives events their positions: this replica wrote an event.
func (db *DB) wakeNumbering() {
	if wake := db.numbering.Load(); wake != nil {
		(*wake)()
	}
}

// statement is write for one single statement. Under a permit it is a transaction.
func (db *DB) statement(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	if access.PermitOf(ctx) != nil {
		return db.bound(ctx, func(ctx context.Context, t *tx) error { return f(ctx, t) })
	}
	return db.engine.WriteOne(ctx, f, false)
}

// comparing is statement for one that compares the permit itself.
func (db *DB) comparing(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	permit := access.PermitOf(ctx)
	err := db.permitted(ctx, func() error { return db.engine.WriteOne(ctx, f, false) })
	if permit != nil && err == nil {
		permit.Wrote(0)
	}
	return err
}

// statementRelaxed is writeRelaxed for one single statement.
func (db *DB) statementRelaxed(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	return db.engine.WriteOne(ctx, f, true)
}

// doubted is the error of a write: with operation.ErrDoubt if it may have been made all the same.
func (db *DB) doubted(err error) error {
	if err != nil && db.engine.Dialect().Doubtful(err) {
		return fmt.Errorf("%w: %w", operation.ErrDoubt, err)
	}
	return err
}

// exec runs a single statement, durable when exec returns.
func (db *DB) exec(ctx context.Context, query string, args ...any) error {
	_, err := db.execCount(ctx, query, args...)
	return err
}

// execCount is exec that returns how many rows the statement changed.
func (db *DB) execCount(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = db.statement(ctx, func(ctx context.Context, c conn) (err error) {
		n, err = c.ExecCount(ctx, query, args...)
		return err
	})
	return n, err
}

// execRelaxed is exec for a change that the machine's power cut may undo.
func (db *DB) execRelaxed(ctx context.Context, query string, args ...any) error {
	_, err := db.engine.ExecRelaxed(ctx, query, args...)
	return err
}
