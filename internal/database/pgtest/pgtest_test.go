package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/database/pgtest"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestDSN_EachCallHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	one, two := connect(t, pgtest.DSN(t)), connect(t, pgtest.DSN(t))
	for _, conn := range []*pgx.Conn{one, two} {
		if _, err := conn.Exec(t.Context(), "CREATE TABLE thing (id TEXT); INSERT INTO thing VALUES ('a')"); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM thing").Scan(&n); err != nil || n != 1 {
			t.Fatalf("count = %d, %v, want 1", n, err)
		}
	}
}

func TestDSN_DatabaseEndsWithItsTest(t *testing.T) {
	t.Parallel()
	watcher := connect(t, pgtest.DSN(t))
	var name string
	t.Run("inner", func(t *testing.T) {
		// The connection stays open on purpose: the database goes all the same.
		conn := connect(t, pgtest.DSN(t))
		if err := conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	if err := watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if name == "" || left != 0 {
		t.Fatalf("database %q: %d left, want it gone", name, left)
	}
}
