package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/migrations"
	"github.com/musterhq/muster/internal/event"
)

// unseen begins a statement of a test's own, of which OnStatement does not tell.
const unseen = "/* test */ "

// OnStatement has f called with every statement that db runs.
func (db *DB) OnStatement(f func(query string, args []any)) {
	db.engine.OnStatement(func(query string, args []any) {
		if !strings.HasPrefix(query, unseen) {
			f(query, args)
		}
	})
}

// LockFile locks a file as a backup under way does.
func LockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// SetDeepFrom sets from which row on a list is read from its nearer end.
func (db *DB) SetDeepFrom(rows int64) { db.deepFrom = rows }

// migration is one file.
type migration struct {
	version int64
	text    string
}

func allMigrations(d engine.Dialect) (all []migration, err error) {
	files, err := migrations.Files.ReadDir(".")
	for _, file := range files { // in order of their names
		text, reading := migrations.Files.ReadFile(file.Name())
		digits, _, _ := strings.Cut(file.Name(), "_")
		version, parsing := strconv.ParseInt(digits, 10, 64)
		err = errors.Join(err, reading, parsing)
		all = append(all, migration{version, d.Schema(string(text))})
	}
	return all, err
}

// Versions are the numbers of all migrations.
func Versions() ([]int64, error) {
	all, err := allMigrations(engine.SQLite())
	var versions []int64
	for _, m := range all {
		versions = append(versions, m.version)
	}
	return versions, err
}

// FirstVersion is how many migrations the first version had.
const FirstVersion = migrations.First

// LowestWriter is the number of the oldest program that may write beside this.
const LowestWriter = migrations.LowestWriter

// formerTable is where the first version kept which migrations it had run.
const formerTable = "goose_db_version"

// openRaw opens a database as another program does, which knows nothing of this one.
func openRaw(url, pragmas string) (*sql.DB, engine.Dialect, error) {
	if strings.HasPrefix(url, "postgres") {
		pool, err := sql.Open("pgx", url)
		return pool, engine.Postgres(), err
	}
	pool, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(strings.TrimPrefix(url, "sqlite:"), "%", "%25")+
		"?_pragma=busy_timeout(10000)"+pragmas)
	return pool, engine.SQLite(), err
}

// MigrateTo brings an empty database to the tables of older migrations, as a
// build of that time left it, and runs statements. Builds without the table of
// versions kept theirs as the first version did.
func MigrateTo(ctx context.Context, url string, version int64, statements ...string) error {
	pool, d, err := openRaw(url, "")
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
func SetVersion(ctx context.Context, url string, schema, lowest int64) error {
	pool, d, err := openRaw(url, "")
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	_, err = pool.ExecContext(ctx, d.Bind(`UPDATE versions SET schema_number = ?, lowest_writer = ?`), schema, lowest)
	return err
}

// Speak is a replica of the first version, which says that it is present.
// It calls first once it has said so the first time.
func Speak(ctx context.Context, url string, now func() time.Time, first func()) error {
	pool, _, err := openRaw(url, "&_pragma=journal_mode(wal)")
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	for n := range int64(1_000_000) {
		until := millis(now().Add(engine.PresentFor)) + n
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
func (db *DB) Bound(query string) string { return db.engine.Dialect().Bind(query) }

// Text runs a query and returns its rows as text, columns separated by |.
func (db *DB) Text(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := db.read().Query(ctx, unseen+query, args...)
	if err != nil {
		return nil, err
	}
	return textOf(rows)
}

// Text is DB.Text on a pool.
func Text(ctx context.Context, pool *sql.DB, query string, args ...any) ([]string, error) {
	rows, err := pool.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return textOf(rows)
}

func textOf(rows *sql.Rows) ([]string, error) {
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
			if err := t.Exec(ctx, s); err != nil {
				return err
			}
		}
		return err
	})
}

// DecodeMap, DecodeList and EncodeMap are how flat JSON is kept.
var (
	DecodeMap  = decodeMap
	DecodeList = decodeList
	EncodeMap  = encodeSome[map[string]string]
)

// ApplyLoosening lets take effect what a replica saw to be due.
func (db *DB) ApplyLoosening(ctx context.Context, seen access.Loosening) error {
	return db.applyLoosening(ctx, seen, db.now())
}

// WithdrawSeen withdraws a command that a replica saw to wait for its device.
func (db *DB) WithdrawSeen(ctx context.Context, c command.Command, deviceID string) (taken bool, err error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
		return db.withdraw(ctx, t, waiting{c.ID, deviceID, string(c.Type)}, "withdrawn")
	})
}

// OfUser lists what removes a user.
func OfUser() []string { return ofUser() }

// CompanyTables lists the tables of companies, and those that are of none.
func CompanyTables() (ofCompanies, ofNone []string) {
	for _, of := range ofCompany {
		ofCompanies = append(ofCompanies, of.table)
	}
	return ofCompanies, append(slices.Clone(ofService), "versions", "applied_migrations", "event_history", formerTable)
}

// CompanyKeys are the first columns of the primary keys of the tables of companies.
func CompanyKeys() map[string]string {
	keys := map[string]string{}
	for _, of := range ofCompany {
		keys[of.table], _, _ = strings.Cut(of.key, ",")
	}
	return keys
}

// TableNames lists the tables that there are.
func (db *DB) TableNames(ctx context.Context) ([]string, error) {
	return db.engine.Tables(ctx)
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

// Authorization finds an authorization of a company; fault.NotFound.
func (db *DB) Authorization(ctx context.Context, companyID, id string) (approval.Authorization, error) {
	return findAuthorization(ctx, db.read(), companyID, id)
}

// Relaxed is how the batch of SQLite's writer that is under way is committed. Only what runs
// within that batch may ask.
func (db *DB) Relaxed() bool { return db.engine.Relaxed() }

// Synchronous is the setting of SQLite in which a write is committed: 1 is NORMAL, 2 is FULL.
func (db *DB) Synchronous(ctx context.Context, relaxed bool) (mode string, err error) {
	err = db.run(ctx, func(ctx context.Context, t *tx) (err error) {
		mode, err = value[string](ctx, t, `PRAGMA synchronous`)
		return err
	}, relaxed)
	return mode, err
}
