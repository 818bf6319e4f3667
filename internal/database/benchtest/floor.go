package benchtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// Floor runs the least that each task takes: prepared statements on the driver,
// with the settings that the store has.
type Floor struct {
	pool, writing           *sql.DB
	postgres                bool
	page, get, insert, many *sql.Stmt
	id                      atomic.Int64
}

// Row is what the floors read of an asset.
type Row struct {
	ID, Status, Identification, Custom, Tags, Specifications string
	Synced, Created                                          int64
}

const columns = `id, status, identification, custom_data, tags, specifications, synced_at, created_at`

// Open opens the floor of a database that the store has made.
func Open(url string) (*Floor, error) {
	f := &Floor{postgres: strings.HasPrefix(url, "postgres")}
	var err error
	if f.postgres {
		f.pool, err = sql.Open("pgx", url)
		f.writing = f.pool
	} else {
		const pragmas = "&_pragma=busy_timeout(10000)&_pragma=cache_size(-16000)&_pragma=mmap_size(1073741824)"
		path := "file:" + strings.TrimPrefix(url, "sqlite:")
		f.pool, err = sql.Open("sqlite", path+"?_txlock=deferred"+pragmas)
		if err == nil {
			f.writing, err = sql.Open("sqlite",
				path+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(4000)"+pragmas)
		}
	}
	if err != nil {
		return nil, err
	}
	f.pool.SetMaxOpenConns(16)
	f.pool.SetMaxIdleConns(16)
	if !f.postgres {
		f.writing.SetMaxOpenConns(1)
	}
	return f, nil
}

// Prepare makes the floor ready to be measured.
func (f *Floor) Prepare(ctx context.Context) error {
	if err := f.exec(ctx, `CREATE TABLE IF NOT EXISTS floor (id TEXT PRIMARY KEY, state TEXT NOT NULL, at BIGINT NOT NULL)`); err != nil {
		return err
	}
	var errs [4]error
	prepare := func(pool *sql.DB, query string, err *error) (s *sql.Stmt) {
		s, *err = pool.PrepareContext(ctx, f.bind(query))
		return s
	}
	f.page = prepare(f.pool, `SELECT `+columns+` FROM assets WHERE company_id = ? AND status = 'ACTIVE'
		ORDER BY synced_at DESC, id DESC LIMIT 20 OFFSET ?`, &errs[0])
	f.get = prepare(f.pool, `SELECT `+columns+` FROM assets WHERE id = ?`, &errs[1])
	f.insert = prepare(f.writing, `INSERT INTO floor (id, state, at) VALUES (?, 'PREPARED', 1)`, &errs[2])
	f.many = prepare(f.pool, `SELECT COUNT(*) FROM assets WHERE company_id = ? AND status = 'ACTIVE'`, &errs[3])
	return errors.Join(errs[:]...)
}

// Close ends the floor.
func (f *Floor) Close() error { return errors.Join(f.pool.Close(), f.writing.Close()) }

// Page reads a page of 20 ACTIVE assets, the latest first.
func (f *Floor) Page(ctx context.Context, companyID string, page int) ([]Row, error) {
	return read(f.page.QueryContext(ctx, companyID, page*20))
}

// Get reads one asset.
func (f *Floor) Get(ctx context.Context, id string) (Row, error) {
	all, err := read(f.get.QueryContext(ctx, id))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d assets %s", len(all), id)
	}
	return append(all, Row{})[0], err
}

// Insert commits one row durably.
func (f *Floor) Insert(ctx context.Context) error {
	_, err := f.insert.ExecContext(ctx, fmt.Sprintf("%026d", f.id.Add(1)))
	return err
}

// Count counts the ACTIVE assets one by one.
func (f *Floor) Count(ctx context.Context, companyID string) (n int64, err error) {
	err = f.many.QueryRowContext(ctx, companyID).Scan(&n)
	return n, err
}

func read(rows *sql.Rows, err error) ([]Row, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []Row
	for rows.Next() {
		var r Row
		if err := rows.Scan(&r.ID, &r.Status, &r.Identification, &r.Custom, &r.Tags, &r.Specifications, &r.Synced, &r.Created); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func (f *Floor) exec(ctx context.Context, query string, args ...any) error {
	_, err := f.writing.ExecContext(ctx, f.bind(query), args...)
	return err
}

func (f *Floor) texts(ctx context.Context, query string, args ...any) (all []string, err error) {
	rows, err := f.pool.QueryContext(ctx, f.bind(query), args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// bind numbers the placeholders for PostgreSQL.
func (f *Floor) bind(query string) string {
	if !f.postgres {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(parts, "")
}
