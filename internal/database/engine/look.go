package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Look opens a database for reading alone, and creates or changes nothing: writing
// through it fails. What a use of its version would be refused for, Version.Check says.
// Without an error, nil means a SQLite file that does not exist.
func Look(ctx context.Context, url string) (*DB, error) { return look(ctx, url, &DB{}) }

func look(ctx context.Context, url string, db *DB) (*DB, error) {
	path, embedded := strings.CutPrefix(url, "sqlite:")
	switch {
	case embedded && path != "":
		pool, err := lookSQLite(ctx, path)
		if err != nil || pool == nil {
			return nil, wrapSQLite(path, err)
		}
		db.dialect, db.pool, db.reader = sqliteDialect{}, pool, pool
		db.onClose(pool.Close)
		return db, nil
	case postgresURL(url):
		if _, err := db.poolPostgres(ctx, url); err != nil {
			return nil, errors.Join(wrapPostgres(err), db.Close())
		}
		if err := db.Ping(ctx); err != nil {
			return nil, errors.Join(wrapPostgres(err), db.Close())
		}
		return db, nil
	}
	return nil, errNoDatabase
}

// seenAt reads the version of a database, which need not exist.
func seenAt(ctx context.Context, url string) (seen Version, err error) {
	db, err := Look(ctx, url)
	if err != nil || db == nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	seen, err = db.Version(ctx)
	return seen, Explain(url, err)
}

// Version reads what the database says of itself.
func (db *DB) Version(ctx context.Context) (Version, error) {
	return readVersion(ctx, db.Read(), db.dialect)
}

// Tables returns the names of all tables.
func (db *DB) Tables(ctx context.Context) ([]string, error) {
	return tableNames(ctx, db.Read(), db.dialect)
}

// Explain says of an error which database it is of, and what it means.
func Explain(url string, err error) error {
	if path, embedded := strings.CutPrefix(url, "sqlite:"); embedded {
		return wrapSQLite(path, err)
	}
	return wrapPostgres(err)
}

// peekSQLite reads the version of a file, which need not exist.
func peekSQLite(ctx context.Context, path string) (v Version, err error) {
	pool, err := lookSQLite(ctx, path)
	if err != nil || pool == nil {
		return v, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return (&DB{dialect: sqliteDialect{}, reader: pool}).Version(ctx)
}

// lookSQLite opens a file for reading; nil: it does not exist. While it has no
// write-ahead log, it is opened as a file that does not change, so that nothing
// is made beside it.
func lookSQLite(ctx context.Context, path string) (*sql.DB, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, directory(path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory: name a file in it")
	}
	logged, err := walSize(path)
	if err != nil {
		return nil, err
	}
	if err := refuseForeignLog(ctx, path, logged); err != nil {
		return nil, err
	}
	mode := "mode=ro&"
	if logged == 0 {
		mode = "mode=ro&immutable=1&"
	}
	pool, err := sql.Open("sqlite", strings.Replace(sqliteDSN(path, "deferred", "query_only(1)"), "?", "?"+mode, 1))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	return pool, nil
}

// directory reports a directory that is missing.
func directory(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the directory %s cannot be used: make it, or correct MUSTER_DATABASE (%w)", dir, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: correct MUSTER_DATABASE", dir)
	}
	return nil
}

// Linked returns the file that a link names, beside which its log is; any other path as it is.
func Linked(path string) string {
	if named, err := filepath.EvalSymlinks(path); err == nil {
		return named
	}
	return path
}

// walSize is how long the write-ahead log beside a file is; 0: there is none.
func walSize(path string) (int64, error) {
	log, err := writtenOf(Linked(path) + "-wal")
	return log.size, err
}

// QuickCheck reports damage of a SQLite file: pages that are lost, shared, or out of
// order. It reads the whole file and changes nothing. PostgreSQL checks itself.
func QuickCheck(ctx context.Context, url string) error {
	return examine(ctx, url, func(ctx context.Context, pool *sql.DB) error { return sound(ctx, pool, "quick_check") })
}

// sound runs one of SQLite's checks.
func sound(ctx context.Context, run runner, check string) error {
	lines, err := List(ctx, session{db: &DB{dialect: sqliteDialect{}}, run: run}, ScanValue[string], `PRAGMA `+check+`(3)`)
	if err != nil {
		return err
	}
	if len(lines) == 1 && lines[0] == "ok" {
		return nil
	}
	found := strings.Join(strings.Fields(strings.Join(lines, "; ")), " ")
	return fmt.Errorf("the file is damaged: put a backup in its place with `muster restore FILE` (%s)", found)
}
