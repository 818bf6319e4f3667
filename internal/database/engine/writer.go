package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxBatch bounds how many callers' work one commit carries, so that no caller
// waits long and other processes can write.
const maxBatch = 64

var errClosed = errors.New("the database is closed")

// writer is SQLite's one writing connection. Its goroutine commits the work of
// concurrent callers together.
type writer struct {
	db         *DB
	conn       *sql.Conn
	statements *prepared

	mu     sync.RWMutex // held for reading while a unit is handed over
	closed bool
	units  chan *unit
	done   chan struct{}

	relaxed bool             // the connection's present setting
	memory  map[string]int64 // of the present attempt; see Memory
}

// unit is one caller's transaction.
type unit struct {
	ctx     context.Context
	work    Work
	relaxed bool
	err     error
	panic   any
	done    chan struct{}
}

func newWriter(ctx context.Context, db *DB, pool *sql.DB) (*writer, error) {
	c, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: c, statements: &prepared{on: c, statements: map[string]*sql.Stmt{}},
		units: make(chan *unit, maxBatch), done: make(chan struct{})}
	go w.loop()
	return w, nil
}

// Relaxed is how the batch of SQLite's writer that is under way is committed. Only what runs
// within that batch may ask.
func (db *DB) Relaxed() bool { return db.writer.relaxed }

// close waits for the work handed over and gives the connection back.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.units)
	<-w.done
	return errors.Join(w.statements.Close(), w.conn.Close())
}

// run hands f over and waits for its outcome. A caller that gives up before
// its work began is let go; from then on it waits, and learns the outcome.
func (w *writer) run(ctx context.Context, f Work, relaxed bool) error {
	j := &unit{ctx: ctx, work: f, relaxed: relaxed, done: make(chan struct{})}
	if err := w.hand(ctx, j); err != nil {
		return err
	}
	<-j.done
	if j.panic != nil {
		panic(j.panic)
	}
	return j.err
}

func (w *writer) hand(ctx context.Context, j *unit) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.units <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) loop() {
	defer close(w.done)
	for first := range w.units {
		batch := w.gather(first)
		if err := w.commit(batch); err != nil {
			for _, j := range batch {
				j.err = errors.Join(j.err, err)
			}
		}
		for _, j := range batch {
			if j.err == nil && j.panic == nil {
				w.db.spend(j.ctx, Cost{Commits: 1})
			}
			close(j.done)
		}
	}
}

// gather adds the units that wait already. It does not wait for more: while one
// batch is committed, the next comes together by itself.
func (w *writer) gather(first *unit) []*unit {
	batch := []*unit{first}
	for len(batch) < maxBatch {
		select {
		case j, ok := <-w.units:
			if !ok {
				return batch
			}
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch in one transaction. The returned error applies to the whole batch; a
// unit's own error is in unit.err. As a rule no unit fails; if one does, all of them run once
// more, each in a savepoint, as transactions run once more on the other engine.
func (w *writer) commit(batch []*unit) error {
	ctx := context.Background()
	if err := w.relax(ctx, batch); err != nil {
		return err
	}
	err := w.attempt(ctx, batch, w.together)
	if errors.Is(err, errUnit) {
		if len(batch) == 1 {
			return nil // it is in unit.err, and nothing was written
		}
		err = w.attempt(ctx, batch, w.apart)
	}
	return err
}

// errUnit: a unit failed, and with it the attempt.
var errUnit = errors.New("a unit of the batch failed")

// attempt runs a batch in one transaction, and rolls back if that fails.
func (w *writer) attempt(ctx context.Context, batch []*unit, run func(context.Context, *unit) error) (err error) {
	if err := w.begin(ctx, batch); err != nil {
		return fmt.Errorf("cannot begin: %w", explainSQLite(err))
	}
	w.memory = map[string]int64{}
	defer func() {
		if err != nil {
			_, rollback := w.conn.ExecContext(ctx, "ROLLBACK")
			_ = rollback // SQLite has rolled back by itself, or the next BEGIN will tell
		}
	}()
	for _, j := range batch {
		j.err, j.panic = j.ctx.Err(), nil
		if j.err != nil {
			continue // its caller has given up
		}
		if err := run(ctx, j); err != nil {
			return err
		}
	}
	_, err = w.statements.ExecContext(ctx, "COMMIT")
	return err
}

// begin begins a transaction for a batch. While another process writes, such as one that imports, it
// waits for as long as a caller of the batch does, but no longer than that caller's transaction may take.
func (w *writer) begin(ctx context.Context, batch []*unit) error {
	waits := func(j *unit) bool { return j.ctx.Err() == nil }
	for waited := busyLimit; ; waited += busyLimit {
		_, err := w.statements.ExecContext(ctx, "BEGIN IMMEDIATE")
		over := func(j *unit) bool { return waits(j) && waited >= limitOf(j.ctx) }
		if !locked(err) || !slices.ContainsFunc(batch, waits) || slices.ContainsFunc(batch, over) {
			return err
		}
	}
}

// together runs one unit. If it fails, all that the attempt wrote is undone.
func (w *writer) together(_ context.Context, j *unit) error {
	if w.call(j); j.err != nil || j.panic != nil {
		return errUnit
	}
	return nil
}

// apart runs one unit in a savepoint, so that its failure undoes its own work
// only. The error is of the whole transaction.
func (w *writer) apart(ctx context.Context, j *unit) error {
	if _, err := w.statements.ExecContext(ctx, "SAVEPOINT unit"); err != nil {
		return err
	}
	if w.call(j); j.err != nil || j.panic != nil {
		clear(w.memory) // what the unit wrote is undone
		if _, err := w.statements.ExecContext(ctx, "ROLLBACK TO unit"); err != nil {
			return err
		}
	}
	_, err := w.statements.ExecContext(ctx, "RELEASE unit")
	return err
}

// call runs the unit's work and keeps a panic for its caller.
func (w *writer) call(j *unit) {
	defer func() { j.panic = recover() }()
	j.err = j.work(context.WithValue(context.WithoutCancel(j.ctx), inside{}, w.memory), Tx{session{db: w.db, run: w.statements}})
}

// relax sets how durable the batch must be: as durable as its strictest unit.
func (w *writer) relax(ctx context.Context, batch []*unit) error {
	relaxed := true
	for _, j := range batch {
		relaxed = relaxed && j.relaxed
	}
	if relaxed == w.relaxed {
		return nil
	}
	pragma := "PRAGMA synchronous=FULL"
	if relaxed {
		pragma = "PRAGMA synchronous=NORMAL"
	}
	_, err := w.conn.ExecContext(ctx, pragma)
	if err == nil {
		w.relaxed = relaxed
	}
	return err
}
