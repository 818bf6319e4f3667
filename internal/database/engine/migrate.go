package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/database/migrations"
	"github.com/musterhq/muster/internal/wait"
)

// migration is one file, in the engine's own words.
type migration struct {
	version int64
	name    string
	text    string
}

// allMigrations reads the files in order. They come from several hands, so one
// with a lower number may be released after one with a higher: none may need
// what a lower one makes that was released after it.
func allMigrations(d Dialect) ([]migration, error) {
	names, err := fs.Glob(migrations.Files, "*.sql")
	var all []migration
	for _, name := range names {
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the migration %s has no number: %w", name, err)
		}
		all = append(all, migration{version, path.Base(name), d.Schema(string(text))})
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return all, err
}

// formerTable is where the first version's migration library kept what it had
// run.
const formerTable = "goose_db_version"

// refusal stands in formerTable instead of a number. The first version reads it
// at its start, cannot, and ends with an error that repeats it: it knows of no
// other way to be refused.
const refusal = "this database was changed by a newer Muster; use the newer program, or restore a backup that this one made"

// upgrade ends what may not go on beside the new tables, and makes them.
func (db *DB) upgrade(ctx context.Context, pool *sql.DB, use SchemaUse, seen Version) error {
	if err := db.mayChange(ctx, pool); err != nil {
		return err
	}
	for {
		err := db.endOlder(ctx, pool, seen)
		if err == nil {
			err = db.migrate(ctx, pool, use)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, errLetIn) {
			return errors.Join(err, wrap(db.letIn(ctx, pool, seen), "older programs may still be refused"))
		}
		if seen, err = readVersion(ctx, session{db: db, run: pool}, db.dialect); err != nil {
			return err
		}
	}
}

// mayChange refuses a role that could not make the change, before anything is
// written and before older replicas are told to end.
func (db *DB) mayChange(ctx context.Context, pool *sql.DB) error {
	query := db.dialect.mayChange()
	if query == "" {
		return nil
	}
	may, err := Value[bool](ctx, session{db: db, run: pool}, query)
	if err == nil && !may {
		err = &SchemaError{"the tables must be made or changed, and the role of MUSTER_DATABASE may not do so",
			"run `muster migrate` with the role that owns the database's tables and may create some in the schema that is first in its " +
				"search_path, where they are"}
	}
	return err
}

// migrate brings the tables to SchemaNumber in one transaction: others see the
// old tables or the new, and a failure leaves the old. One process at a time
// does it.
func (db *DB) migrate(ctx context.Context, pool *sql.DB, use SchemaUse) error {
	for n := 1; ; n++ {
		from := SchemaNumber()
		err := db.inUpgrade(ctx, pool, func(ctx context.Context, t Tx) (err error) {
			from, err = db.change(ctx, t, use)
			return err
		})
		if err == nil && from < SchemaNumber() {
			db.logger.InfoContext(ctx, "database changed", "from", from, "to", SchemaNumber())
		}
		if !transient(err) && !locked(err) || n == attempts || ctx.Err() != nil {
			return wrap(err, "cannot migrate the database")
		}
		wait.For(ctx, time.Duration(n)*20*time.Millisecond)
	}
}

// inUpgrade runs f in a transaction that has the tables to itself among those
// that would change them.
func (db *DB) inUpgrade(ctx context.Context, pool *sql.DB, f Work) error {
	return db.committed(ctx, pool, func(ctx context.Context, t Tx) error {
		if lock := db.dialect.lockSchema(); lock != "" {
			if err := t.Exec(ctx, lock); err != nil {
				return err
			}
		}
		return f(ctx, t)
	})
}

// change runs what is missing, unless another program did, and returns the schema that it found.
func (db *DB) change(ctx context.Context, t Tx, use SchemaUse) (from int64, err error) {
	version, err := readVersion(ctx, t, db.dialect)
	from = version.Schema
	if err != nil || from >= SchemaNumber() {
		return from, err
	}
	if err := version.Check(use); err != nil {
		return from, err
	}
	if from > 1 && version.LowestWriter < migrations.LowestWriter {
		return from, errLetIn
	}
	done, err := applied(ctx, t, db.dialect)
	if err != nil {
		return from, err
	}
	all, err := allMigrations(db.dialect)
	if err != nil {
		return from, err
	}
	for _, m := range all {
		if slices.Contains(done, m.version) {
			continue
		}
		if err := t.Exec(ctx, m.text); err != nil {
			return from, fmt.Errorf("%s: %w", m.name, err)
		}
		db.logger.InfoContext(ctx, "database migrated", "migration", m.name)
	}
	if err := recordMigrations(ctx, t, all, db.now()); err != nil || db.changed == nil {
		return from, err
	}
	return from, db.changed(ctx, t)
}

// applied returns the migrations that a database has.
func applied(ctx context.Context, c Conn, d Dialect) ([]int64, error) {
	tables, err := tableNames(ctx, c, d)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(tables, "applied_migrations"):
		return List(ctx, c, ScanValue[int64], `SELECT version FROM applied_migrations`)
	case slices.Contains(tables, formerTable):
		return List(ctx, c, ScanValue[int64], `SELECT version_id FROM `+formerTable)
	}
	return nil, nil
}

// recordMigrations records that all migrations were run, for this program's successors
// and against the first version.
func recordMigrations(ctx context.Context, t Tx, all []migration, now time.Time) error {
	for _, m := range all {
		if err := t.Exec(ctx, `INSERT INTO applied_migrations (version, applied_at) VALUES (?, ?) ON CONFLICT (version) DO NOTHING`,
			m.version, now.UnixMilli()); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`DROP TABLE IF EXISTS ` + formerTable,
		// The first version takes the table for its own because of the row 0.
		`CREATE TABLE ` + formerTable +
			` (id BIGINT NOT NULL PRIMARY KEY, version_id TEXT NOT NULL, is_applied BOOLEAN NOT NULL, tstamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
		`INSERT INTO ` + formerTable + ` (id, version_id, is_applied) VALUES (1, '0', TRUE), (2, '` + refusal + `', TRUE)`,
	} {
		if err := t.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return t.Exec(ctx, `INSERT INTO versions (id, schema_number, lowest_writer) VALUES (1, ?, ?)
		ON CONFLICT (id) DO UPDATE SET schema_number = excluded.schema_number, lowest_writer = excluded.lowest_writer`,
		SchemaNumber(), migrations.LowestWriter)
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*SchemaError](err); ok {
		return refused
	}
	return fmt.Errorf("%s: %w", what, err)
}
