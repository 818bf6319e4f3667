package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/event"
)

// OnStatement has f told of every statement that db runs.
func (db *DB) OnStatement(f func(query string, args []any)) { db.trace.Store(&f) }

// LockFile locks a file as a backup under way does.
func LockFile(file *os.File) error { return lockFile(file) }

// SetQuiet sets how long the listening connection may hear nothing.
func (db *DB) SetQuiet(d time.Duration) { db.wakes.quiet = d }

// SetDeepFrom sets from which row on a list is read from its nearer end.
func (db *DB) SetDeepFrom(rows int64) { db.deepFrom = rows }

// Versions are the numbers of all migrations.
func Versions() ([]int64, error) {
	all, err := allMigrations(sqliteDialect{})
	var versions []int64
	for _, m := range all {
		versions = append(versions, m.version)
	}
	return versions, err
}

// LowestWriter is the number of the oldest program that may write beside this.
const LowestWriter = lowestWriter

// MigrateTo brings an empty database to the tables of older migrations, as a
// build of that time left it, and runs statements. Builds without the table of
// versions kept theirs as the first version did.
func MigrateTo(ctx context.Context, url string, version int64, statements ...string) error {
	driver, source, d := "sqlite", strings.TrimPrefix(url, "sqlite:"), dialect(sqliteDialect{})
	if strings.HasPrefix(url, "postgres") {
		driver, source, d = "pgx", url, postgresDialect{bound: &boundTexts{}}
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	all, err := allMigrations(d)
	if err != nil {
		return err
	}
	done := slices.DeleteFunc(all, func(m migration) bool { return m.version > version })
	kept := []string{`CREATE TABLE ` + formerTable + ` (id BIGINT PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL)`,
		`INSERT INTO ` + formerTable + ` VALUES (0, 0, TRUE)`}
	record := `INSERT INTO ` + formerTable + ` VALUES (%d, %[1]d, TRUE)`
	var texts []string
	for _, m := range done {
		texts = append(texts, m.text)
		if strings.Contains(m.text, "CREATE TABLE versions") {
			kept = []string{`INSERT INTO versions (id, schema_number, lowest_writer) VALUES (1, 1, 1)`}
			record = `INSERT INTO applied_migrations (version, applied_at) VALUES (%d, 0)`
		}
	}
	for _, m := range done {
		kept = append(kept, fmt.Sprintf(record, m.version))
	}
	for _, s := range slices.Concat(texts, kept, statements) {
		if _, err := pool.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// SetVersion is what another program says of the database.
func (db *DB) SetVersion(ctx context.Context, schema, lowest int64) error {
	query, pool := `UPDATE versions SET schema_number = ?, lowest_writer = ?`, db.pool
	if db.writer == nil {
		_, err := pool.ExecContext(ctx, db.dialect.bind(query), schema, lowest)
		return err
	}
	_, err := db.writer.conn.ExecContext(ctx, query, schema, lowest)
	return err
}

// Speak is a replica of the first version, which says that it is present.
// It calls first once it has said so the first time.
func Speak(ctx context.Context, url string, now func() time.Time, first func()) error {
	driver, source := "sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"
	if strings.HasPrefix(url, "postgres") {
		driver, source = "pgx", url
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	for n := range int64(1_000_000) {
		until := millis(now().Add(presentFor)) + n
		if _, err := pool.Exec(fmt.Sprintf(`INSERT INTO leases (name, holder, expires_at) VALUES ('replica/r1', 'r1', %d)
			ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at`, until)); err != nil {
			return err
		}
		if n == 0 {
			first()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// SetFew sets how many assets are looked at one by one.
func (db *DB) SetFew(n int) { db.few = n }

// TextWords are the words that an asset with a text is found by.
func TextWords(text string) []string { return textWords(text) }

// Bound returns a statement in the engine's own words.
func (db *DB) Bound(query string) string { return db.dialect.bind(query) }

// Text runs a query and returns its rows as text, columns separated by |.
func (db *DB) Text(ctx context.Context, query string, args ...any) ([]string, error) {
	return Text(ctx, db.pool, db.dialect.bind(query), args...)
}

// Text is DB.Text on a pool.
func Text(ctx context.Context, pool *sql.DB, query string, args ...any) ([]string, error) {
	rows, err := pool.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []string
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		text := make([]string, len(columns))
		for i, v := range values {
			text[i] = fmt.Sprint(v)
		}
		all = append(all, strings.Join(text, "|"))
	}
	return all, rows.Err()
}

// Write runs a statement in a transaction, and fails it with err.
func (db *DB) Write(ctx context.Context, err error, statements ...string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		for _, s := range statements {
			if err := t.exec(ctx, s); err != nil {
				return err
			}
		}
		return err
	})
}

// WriteInsideWrite writes where it may not.
func (db *DB) WriteInsideWrite(ctx context.Context) error {
	return db.write(ctx, func(ctx context.Context, _ *tx) error { return db.Write(ctx, nil) })
}

// PanicInsideWrite panics in a transaction that has run a statement.
func (db *DB) PanicInsideWrite(ctx context.Context, statement string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.exec(ctx, statement); err != nil {
			return err
		}
		panic("on purpose")
	})
}

// DecodeMap, DecodeList and EncodeMap are how flat JSON is kept.
var (
	DecodeMap  = decodeMap
	DecodeList = decodeList
	EncodeMap  = encodeSome[map[string]string]
)

// PostgresDoubts reports whether PostgreSQL may have done what failed so.
func PostgresDoubts(err error) bool { return postgresDialect{}.doubtful(err) }

// OfUser lists what removes a user.
func OfUser() []string { return ofUser() }

// Hears asks a pooler about notifications alone, as if every round had met the
// same server.
func Hears(ctx context.Context, url string, limit time.Duration) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	first, second, err := connectPair(ctx, config)
	if err != nil {
		return err
	}
	err = hears(ctx, first, second, limit)
	return errors.Join(err, second.Close(ctx), first.Close(context.WithoutCancel(ctx)))
}

// ErrPooler refuses a pooler that does not keep sessions.
var ErrPooler = errPooler

// NewDialer returns the dialer for PostgreSQL.
var NewDialer = newDialer

// CompanyTables lists the tables of companies, and those that are of none.
func CompanyTables() (ofCompanies, ofNone []string) {
	for _, of := range ofCompany {
		ofCompanies = append(ofCompanies, of.table)
	}
	return ofCompanies, append(slices.Clone(ofService), ownTables...)
}

// TableNames lists the tables that there are.
func (db *DB) TableNames(ctx context.Context) ([]string, error) {
	return tableNames(ctx, db.read(), db.dialect)
}

// TellMany writes events of a company that are of no asset.
func (db *DB) TellMany(ctx context.Context, companyID string, of event.Type, n int) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		for range n {
			if err := db.tell(ctx, t, event.Event{CompanyID: companyID, Type: of}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Relaxed is how the batch of SQLite's writer that is under way is committed. Only what runs
// within that batch may ask.
func (db *DB) Relaxed() bool { return db.writer.relaxed }

// Synchronous is the setting of SQLite in which a write is committed: 1 is NORMAL, 2 is FULL.
func (db *DB) Synchronous(ctx context.Context, relaxed bool) (mode string, err error) {
	err = db.run(ctx, func(ctx context.Context, t *tx) (err error) {
		mode, err = value[string](ctx, t, `PRAGMA synchronous`)
		return err
	}, relaxed)
	return mode, err
}
