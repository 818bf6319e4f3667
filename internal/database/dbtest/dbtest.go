// Package dbtest lends tests databases that have the service's tables. They are migrated
// once in a process and then copied, which takes a tenth of the time.
package dbtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
)

// SQLite puts a database at a path where there is no file, and returns its URL.
func SQLite(tb testing.TB, path string) string {
	tb.Helper()
	content, err := file()
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		tb.Fatalf("cannot copy a database: %v", err)
	}
	return "sqlite:" + path
}

// Postgres makes a database for this test, drops it afterwards, and returns its URL. Without a
// server, it skips the test, or fails it with CI=true.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return onServer.DSN(tb)
}

var onServer = pgtest.Template{Fill: migrate}

// file is what is in the file of a database in which there is nothing yet.
var file = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "muster-test-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "muster.db")
	if err := migrate("sqlite:" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // closing it left nothing in a file beside it
})

// migrate makes the tables, at a time that is before those of all tests.
func migrate(url string) error {
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	if err != nil {
		return err
	}
	return db.Close()
}
