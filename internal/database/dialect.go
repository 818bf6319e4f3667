package database

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/musterhq/muster/internal/fault"
)

// dialect is what differs between the engines.
type dialect interface {
	// bind turns ? into the engine's placeholders.
	bind(query string) string
	// rows are the ends of a SELECT in a transaction that lock its rows.
	rows() rowLocks
	// follow returns the statements that run first, which ends in RETURNING, and,
	// if it made a row, then, each of which has fromFirst where it reads from
	// tables. Where the engine can, they are one statement, which saves the round
	// trips of a transaction.
	follow(first string, then ...string) []string
	// events are the parts of statements about events that differ.
	events() eventSQL
	// doubtful reports whether a statement that failed so may have been committed.
	doubtful(err error) bool
	// arm prepares a SELECT for being merged, in order, with others by UNION ALL.
	arm(query, order string) string
	// snapshot is the isolation of a transaction that reads one state.
	snapshot() sql.IsolationLevel
	// schema turns a migration's text into the engine's.
	schema(text string) string
	// tables is a query for the names of all tables.
	tables() string
	// lockSchema lets one transaction at a time change the tables; empty: the
	// transaction is alone anyway. lockTable keeps others from changing a table.
	lockSchema() string
	lockTable(name string) string
	// mayChange is a query for whether this role may change and make tables; empty:
	// there are no roles.
	mayChange() string
}

// rowLocks are the ends of a SELECT in a transaction that lock its rows until the
// transaction ends; all are empty where a writing transaction is alone.
type rowLocks struct {
	lock string // all others wait who would lock or change them
	skip string // lock that leaves out what another has locked, for workers that share a queue
	hold string // lock for rows whose key stays: others may make rows that refer to them
	// device holds the rows of the table a, and keeps others from changing or holding
	// those of p, which it shares.
	device string
}

// eventSQL are the parts of statements about events that differ.
type eventSQL struct {
	draw      string // the expression of a number: higher than all that ended transactions drew
	afterCopy string // a statement that is run when a database was filled; empty: none
}

// fromFirst stands where a statement that follows another reads from it.
const fromFirst = "/* FROM first */"

// ifFirst stands at the end of a condition of a statement that follows another and does not
// read from it.
const ifFirst = " /* AND first */"

// sqliteDialect needs no row locks: a writing transaction is alone.
type sqliteDialect struct{}

func (sqliteDialect) bind(query string) string { return query }
func (sqliteDialect) rows() rowLocks           { return rowLocks{} }

func (sqliteDialect) follow(first string, then ...string) []string {
	return append([]string{first}, then...)
}

// events draws without a sequence: a writing transaction is alone.
func (sqliteDialect) events() eventSQL {
	return eventSQL{draw: `(SELECT COALESCE(MAX(x.n), 0) + 1 FROM events x)`}
}

// doubtful: SQLite is in this process, and says what became of a commit.
func (sqliteDialect) doubtful(error) bool { return false }

// arm leaves the order to SQLite, which gives every arm that of the whole.
func (sqliteDialect) arm(query, _ string) string { return query }

func (sqliteDialect) snapshot() sql.IsolationLevel { return sql.LevelDefault }

// schema keeps the rows of a table that is nothing but its key in the key.
func (sqliteDialect) schema(text string) string {
	return strings.NewReplacer("CREATE SEQUENCE event_numbers;", "", ") /* clustered */", ") WITHOUT ROWID", "strpos(", "instr(").Replace(text)
}

func (sqliteDialect) tables() string          { return `SELECT name FROM sqlite_master WHERE type = 'table'` }
func (sqliteDialect) lockSchema() string      { return "" }
func (sqliteDialect) mayChange() string       { return "" }
func (sqliteDialect) lockTable(string) string { return "" }

// postgresDialect remembers the texts that it bound.
type postgresDialect struct{ bound *boundTexts }

// boundTexts are texts with numbered placeholders, by the texts with ?.
// Statements are constants or put together from constants, so they are few; a
// search has many shapes, so there is a bound.
type boundTexts struct {
	texts sync.Map
	count atomic.Int64
}

const maxBound = 5_000

func (postgresDialect) rows() rowLocks {
	const lock, hold, share = " FOR UPDATE", " FOR NO KEY UPDATE", " FOR SHARE"
	return rowLocks{lock: lock, skip: lock + " SKIP LOCKED", hold: hold, device: hold + " OF a" + share + " OF p"}
}

func (postgresDialect) follow(first string, then ...string) []string {
	var b strings.Builder
	b.WriteString("WITH first AS (" + first + ")")
	for n, text := range then {
		text = strings.Replace(strings.Replace(text, fromFirst, "FROM first", 1), ifFirst, " AND EXISTS (SELECT 1 FROM first)", 1)
		if n == len(then)-1 {
			b.WriteString(" " + text)
		} else {
			b.WriteString(", then_" + strconv.Itoa(n) + " AS (" + text + ")")
		}
	}
	return []string{b.String()}
}

func (postgresDialect) events() eventSQL {
	return eventSQL{`nextval('event_numbers')`, `SELECT setval('event_numbers', (SELECT COALESCE(MAX(n), 0) + 1 FROM events))`}
}

// doubtful: a connection that broke, or was given up, may have carried the
// statement; what PostgreSQL or this package itself refuses was not done.
func (postgresDialect) doubtful(err error) bool {
	_, refused := errors.AsType[*pgconn.PgError](err)
	_, decided := errors.AsType[*fault.Error](err)
	return !refused && !decided && !pgconn.SafeToRetry(err) && !errors.Is(err, driver.ErrBadConn)
}

// arm says the order, because PostgreSQL merges only what is in order already.
func (postgresDialect) arm(query, order string) string { return "(" + query + order + ")" }

func (postgresDialect) snapshot() sql.IsolationLevel { return sql.LevelRepeatableRead }

func (postgresDialect) schema(text string) string {
	return strings.ReplaceAll(text, " TEXT", ` TEXT COLLATE "C"`)
}

func (postgresDialect) tables() string {
	return `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
}

// lockSchema takes the lock that the first version's migrations took as well.
func (postgresDialect) lockSchema() string {
	return `SELECT pg_advisory_xact_lock(5887940537704921958)`
}

func (postgresDialect) mayChange() string {
	return `SELECT COALESCE(has_schema_privilege(current_schema(), 'CREATE'), FALSE) AND NOT EXISTS
		(SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND NOT pg_has_role(tableowner, 'USAGE'))`
}

func (postgresDialect) lockTable(name string) string { return "LOCK TABLE " + name + " IN SHARE MODE" }

func (d postgresDialect) bind(query string) string {
	if text, ok := d.bound.texts.Load(query); ok {
		return text.(string)
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	if d.bound.count.Add(1) <= maxBound {
		d.bound.texts.Store(query, b.String())
	}
	return b.String()
}

// unique reports whether err says that a unique index already has the row.
// taken turns an error because another row has the same key into fault.Refused.
func taken(err error, format string, args ...any) error {
	if unique(err) {
		return fault.New(fault.Refused, format, args...)
	}
	return err
}

func unique(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23505"
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// sqliteCode is SQLite's primary result code of an error, 0 if it is another's.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// locked reports whether another process kept SQLite's lock for too long.
func locked(err error) bool { return sqliteCode(err) == sqlite3.SQLITE_BUSY }

// explainSQLite says what SQLite's words mean, and what to do.
func explainSQLite(err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file is damaged, or is no database: put a backup in its place with `muster restore FILE` (%w)", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another program has locked the file: end it, or try again (%w)", err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return fmt.Errorf("the disk is full or failing: make room, or replace it (%w)", err)
	}
	return err
}

// transient reports whether the transaction failed only because another was
// under way, and may be run again.
func transient(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}
