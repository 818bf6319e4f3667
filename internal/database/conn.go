package database

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/fault"
)

// conn runs statements: in a transaction, or each by itself on the readers.
type conn interface {
	exec(ctx context.Context, query string, args ...any) error
	// execCount returns how many rows the statement changed.
	execCount(ctx context.Context, query string, args ...any) (int64, error)
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	insert(ctx context.Context, table, columns string, values []any) error
}

// runner is what *sql.DB, *sql.Tx, *sql.Conn and statements have in common.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session is a conn on a runner.
type session struct {
	db  *DB
	run runner
}

// read is the conn for reading outside a transaction.
func (db *DB) read() conn { return session{db, db.reader} }

func (s session) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.execCount(ctx, query, args...)
	return err
}

func (s session) execCount(ctx context.Context, query string, args ...any) (int64, error) {
	s.db.traced(ctx, query, args)
	args, err := arguments(query, args)
	if err != nil {
		return 0, err
	}
	result, err := s.run.ExecContext(ctx, s.db.dialect.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s session) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s.db.traced(ctx, query, args)
	args, err := arguments(query, args)
	if err != nil {
		return nil, err
	}
	return s.run.QueryContext(ctx, s.db.dialect.bind(query), args...)
}

func (db *DB) traced(ctx context.Context, query string, args []any) {
	if db.writer != nil { // pgx counts by itself
		db.spend(ctx, Cost{Statements: 1})
	}
	if trace := db.trace.Load(); trace != nil {
		(*trace)(query, args)
	}
}

// row is one row of a result.
type row interface{ Scan(dest ...any) error }

// each shows every row of a query.
func each[T any](ctx context.Context, c conn, scan func(row) (T, error), show func(T) error, query string, args ...any) (err error) {
	rows, err := c.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		t, err := scan(rows)
		if err == nil {
			err = show(t)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns every row of a query.
func list[T any](ctx context.Context, c conn, scan func(row) (T, error), query string, args ...any) (all []T, err error) {
	err = each(ctx, c, scan, func(t T) error {
		all = append(all, t)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// one returns the only row of a query, or sql.ErrNoRows.
func one[T any](ctx context.Context, c conn, scan func(row) (T, error), query string, args ...any) (t T, err error) {
	rows, err := c.query(ctx, query, args...)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return t, err
		}
		return t, sql.ErrNoRows
	}
	return scan(rows)
}

// value returns the only column of a query's only row, or sql.ErrNoRows.
func value[T any](ctx context.Context, c conn, query string, args ...any) (T, error) {
	return one(ctx, c, scanValue[T], query, args...)
}

func scanValue[T any](r row) (t T, err error) {
	err = r.Scan(&t)
	return t, err
}

// find is one for a row that has a name: if there is none, fault.NotFound says so.
func find[T any](ctx context.Context, c conn, noun string, scan func(row) (T, error), query string, args ...any) (T, error) {
	t, err := one(ctx, c, scan, query, args...)
	return found(t, err, noun)
}

// maybe reports whether there was a row, instead of sql.ErrNoRows.
func maybe[T any](t T, err error) (T, bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return t, false, nil
	}
	return t, err == nil, err
}

// insert adds a row. The columns may have the alias of their table.
func (s session) insert(ctx context.Context, table, columns string, values []any) error {
	if alias, _, named := strings.Cut(columns, "."); named {
		columns = strings.ReplaceAll(columns, alias+".", "")
	}
	return s.exec(ctx, `INSERT INTO `+table+` (`+columns+`) VALUES (`+marks(len(values))+`)`, values...)
}

// found turns the absence of a row into fault.NotFound with the noun's name.
func found[T any](t T, err error, noun string) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return t, fault.New(fault.NotFound, "no such %s", noun)
	}
	return t, err
}

// maxPrepared bounds the statements that a connection keeps prepared.
const maxPrepared = 500

// prepared is a runner that prepares each text once. SQLite's driver would
// otherwise parse it at every call; pgx does the like by itself.
type prepared struct {
	on interface {
		runner
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu         sync.RWMutex
	statements map[string]*sql.Stmt
}

func (p *prepared) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.RLock()
	s, full := p.statements[query], len(p.statements) >= maxPrepared
	p.mu.RUnlock()
	if s != nil || full {
		return s, nil
	}
	// SQLite looks at the value of a bound LIMIT when it plans, and so would
	// plan again at every call; it does not look into a CAST.
	s, err := p.on.PrepareContext(ctx, strings.ReplaceAll(query, "LIMIT ?", "LIMIT CAST(? AS BIGINT)"))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if twin := p.statements[query]; twin != nil {
		return twin, s.Close()
	}
	p.statements[query] = s
	return s, nil
}

func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return p.on.ExecContext(ctx, query, args...)
	}
	return s.ExecContext(ctx, args...)
}

func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return p.on.QueryContext(ctx, query, args...)
	}
	return s.QueryContext(ctx, args...)
}

func (p *prepared) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.statements {
		errs = append(errs, s.Close())
	}
	p.statements = nil
	return errors.Join(errs...)
}
