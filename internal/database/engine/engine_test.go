package engine_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/pgtest"
)

// now is the time in these tests, which stands.
func now() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }

// place is where a test's database is.
type place struct{ name, url string }

// open opens the test's database, as one more replica would.
func (p place) open(tb testing.TB) *engine.DB {
	tb.Helper()
	db, err := engine.Open(tb.Context(), engine.Options{URL: p.url, Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func onSQLite(tb testing.TB) place {
	return place{"sqlite", "sqlite:" + filepath.Join(tb.TempDir(), "a b%c.db")}
}

// migrated is a database with our tables.
var migrated = pgtest.Template{Fill: func(dsn string) error {
	db, err := engine.Open(context.Background(), engine.Options{URL: dsn, Now: now})
	if err != nil {
		return err
	}
	return db.Close()
}}

func onPostgres(tb testing.TB) place { return place{"postgres", migrated.DSN(tb)} }

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, p place)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, onPostgres(t)) })
}

// write runs statements in a transaction, and fails it with err.
func write(ctx context.Context, db *engine.DB, err error, statements ...string) error {
	return db.Write(ctx, func(ctx context.Context, t engine.Tx) error {
		for _, s := range statements {
			if err := t.Exec(ctx, s); err != nil {
				return err
			}
		}
		return err
	}, false)
}
