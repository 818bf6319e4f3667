package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
)

// Conn runs statements: in a transaction, or each by itself on the readers. Each method fails with
// the driver's error, with fault.InvalidArguments for a text that the engines cannot store, and as
// Tx.Until says.
type Conn interface {
	// Exec runs a statement that returns no rows.
	Exec(ctx context.Context, query string, args ...any) error
	// ExecCount returns how many rows the statement changed.
	ExecCount(ctx context.Context, query string, args ...any) (int64, error)
	// Query returns rows, which the caller closes.
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	// Insert adds a row. The columns may have the alias of their table.
	Insert(ctx context.Context, table, columns string, values []any) error
}

// runner is what *sql.DB, *sql.Tx, *sql.Conn and statements have in common.
type runner interface {
	// ExecContext and its error are database/sql's.
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	// QueryContext and its error are database/sql's.
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session is a Conn on a runner.
type session struct {
	db     *DB
	run    runner
	failed *error // see Tx.Until; nil: each statement runs
}

// Read is the Conn for reading outside a transaction.
func (db *DB) Read() Conn { return session{db: db, run: db.reader} }

func (s session) Exec(ctx context.Context, query string, args ...any) error {
	_, err := s.ExecCount(ctx, query, args...)
	return err
}

func (s session) ExecCount(ctx context.Context, query string, args ...any) (int64, error) {
	query, args, err := s.begin(ctx, query, args)
	if err != nil {
		return 0, err
	}
	result, err := s.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s session) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	query, args, err := s.begin(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return s.run.QueryContext(ctx, query, args...)
}

// begin counts a statement, and returns it as the engine takes it. The error says why it must not run.
func (s session) begin(ctx context.Context, query string, args []any) (string, []any, error) {
	if s.failed != nil && *s.failed != nil {
		return "", nil, *s.failed
	}
	if s.db.writer != nil { // pgx counts by itself
		s.db.spend(ctx, Cost{Statements: 1})
	}
	if trace := s.db.trace.Load(); trace != nil {
		(*trace)(query, args)
	}
	args, err := arguments(query, args)
	return s.db.dialect.Bind(query), args, err
}

// Row is one row of a result. Scan fails as that of sql.Rows does.
type Row interface{ Scan(dest ...any) error }

// Each shows every row of a query.
func Each[T any](ctx context.Context, c Conn, scan func(Row) (T, error), show func(T) error, query string, args ...any) (err error) {
	rows, err := c.Query(ctx, query, args...)
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

// List returns every row of a query.
func List[T any](ctx context.Context, c Conn, scan func(Row) (T, error), query string, args ...any) (all []T, err error) {
	err = Each(ctx, c, scan, func(t T) error {
		all = append(all, t)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// ErrNoRow means that there is no row where one is asked for.
var ErrNoRow = sql.ErrNoRows

// One returns the only row of a query, or ErrNoRow.
func One[T any](ctx context.Context, c Conn, scan func(Row) (T, error), query string, args ...any) (t T, err error) {
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return t, cmp.Or(rows.Err(), ErrNoRow)
	}
	return scan(rows)
}

// Value returns the only column of a query's only row, or ErrNoRow.
func Value[T any](ctx context.Context, c Conn, query string, args ...any) (T, error) {
	return One(ctx, c, ScanValue[T], query, args...)
}

// ScanValue scans a row of one column.
func ScanValue[T any](r Row) (t T, err error) {
	err = r.Scan(&t)
	return t, err
}

// Into returns a scanner of rows whose columns fill the fields of a T, one by
// one. Where a column keeps a value in another form than the field, its field
// is an sql.Scanner.
func Into[T any](fields func(*T) []any) func(Row) (T, error) {
	return func(r Row) (t T, err error) {
		err = r.Scan(fields(&t)...)
		return t, err
	}
}

// Marks returns n placeholders for an IN list.
func Marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Insert adds a row. The columns may have the alias of their table.
func (s session) Insert(ctx context.Context, table, columns string, values []any) error {
	if alias, _, named := strings.Cut(columns, "."); named {
		columns = strings.ReplaceAll(columns, alias+".", "")
	}
	return s.Exec(ctx, `INSERT INTO `+table+` (`+columns+`) VALUES (`+Marks(len(values))+`)`, values...)
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
