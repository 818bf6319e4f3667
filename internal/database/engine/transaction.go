package engine

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// Tx is a writing transaction. It is a Conn.
type Tx struct{ session }

// Until returns the transaction without statements after a failure: once failed is set, they
// return that error, and nothing reaches the database.
func (t Tx) Until(failed *error) Tx {
	t.failed = failed
	return t
}

// Dialect is that of the transaction's engine.
func (t Tx) Dialect() Dialect { return t.db.dialect }

// Work is what a transaction does. It gets its own context, which the caller's
// cancellation does not reach: once begun, a write ends, and its outcome is reported.
// It may run more than once, so it must set variables outside itself only by
// assignment, and it must not write through the DB again.
type Work func(ctx context.Context, t Tx) error

// Write runs f in a transaction. It is durable when Write returns, or, if it is relaxed,
// may be undone by the machine's power cut.
func (db *DB) Write(ctx context.Context, f Work, relaxed bool) error {
	if err := db.mayWrite(ctx); err != nil {
		return err
	}
	if db.writer != nil {
		return db.storage.note(db.writer.run(ctx, f, relaxed), db.now())
	}
	return db.storage.note(retry(ctx, func() error { return db.runPostgres(ctx, f) }), db.now())
}

// WriteOne is Write for a function of one single statement: on PostgreSQL it saves the
// round trips of BEGIN and COMMIT.
func (db *DB) WriteOne(ctx context.Context, f func(ctx context.Context, c Conn) error, relaxed bool) error {
	if db.writer != nil {
		return db.Write(ctx, func(ctx context.Context, t Tx) error { return f(ctx, t) }, relaxed)
	}
	if err := db.mayWrite(ctx); err != nil {
		return err
	}
	return db.storage.note(retry(ctx, func() error { return f(context.WithoutCancel(ctx), db.Read()) }), db.now())
}

// ExecRelaxed runs a single statement whose change the machine's power cut may undo, and
// returns how many rows it changed.
func (db *DB) ExecRelaxed(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = db.WriteOne(ctx, func(ctx context.Context, c Conn) (err error) {
		n, err = c.ExecCount(ctx, query, args...)
		return err
	}, true)
	return n, err
}

// Snapshot runs f, which only reads, on one unchanging state of the database.
func (db *DB) Snapshot(ctx context.Context, f func(ctx context.Context, c Conn) error) (err error) {
	t, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: db.dialect.snapshot()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Rollback()) }()
	return f(ctx, session{db: db, run: t})
}

// inside marks the context of a transaction: to write through db there would
// wait for itself. Its value is what the attempt remembers, where it is alone.
type inside struct{}

var errNested = errors.New("database: a write inside a write")

// Memory keeps numbers by name for the attempt at a transaction whose context it is, and
// forgets them when the attempt, or a part of it, is undone: nothing else changes what they
// were read from until it ends. Where other transactions work beside this one, nothing is kept.
func Memory(ctx context.Context) map[string]int64 {
	if kept, alone := ctx.Value(inside{}).(map[string]int64); alone {
		return kept
	}
	return map[string]int64{}
}

// writeLimit ends a transaction that hangs although nothing cancels it, and longLimit one of Long.
const (
	writeLimit = time.Minute
	longLimit  = 10 * time.Minute
)

// long marks the context of a transaction that may take longLimit.
type long struct{}

// Long lets a transaction of the context take ten minutes, as an import of many lines does, in the place of one.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, long{}, true) }

// IsLong reports whether the context is one of Long.
func IsLong(ctx context.Context) bool { return ctx.Value(long{}) != nil }

// limitOf is how long a transaction of the context may take.
func limitOf(ctx context.Context) time.Duration {
	if IsLong(ctx) {
		return longLimit
	}
	return writeLimit
}

// runPostgres runs f once in a transaction at READ COMMITTED: statements lock
// the rows that they change, and compare what they expect.
func (db *DB) runPostgres(ctx context.Context, f Work) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), inside{}, true), limitOf(ctx))
	defer cancel()
	return db.committed(ctx, db.pool, f)
}

// committed runs f in a transaction of a pool, which is undone if f fails.
func (db *DB) committed(ctx context.Context, pool *sql.DB, f Work) error {
	begun, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = begun.Rollback() }() // also when f panics; of no effect after Commit
	if err := f(ctx, Tx{session{db: db, run: begun}}); err != nil {
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
