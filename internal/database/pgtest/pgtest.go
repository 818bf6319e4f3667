package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/test/needs"
)

// Variable names the environment variable with the server's address: a
// postgres:// URL of a user that may create databases.
const Variable = "MUSTER_TEST_POSTGRES"

// patience bounds each statement of this package; creating a database on a busy
// machine takes a second or two at worst.
const patience = time.Minute

// shared is the test process's server, found or started at the first call.
var shared = sync.OnceValues(findServer)

// DSN makes an empty database (UTF-8, the server's own collation) for this test
// and returns its postgres:// URL. The database is dropped, its connections cut,
// when the test and all clean-ups registered after this call are done.
func DSN(tb testing.TB) string {
	tb.Helper()
	srv := need(tb)
	database, err := srv.create("template0")
	return srv.lend(tb, database, err)
}

// need returns the server, or skips or fails the test.
func need(tb testing.TB) *server {
	tb.Helper()
	srv, err := shared()
	must(tb, err)
	return srv
}

// must skips the test where there is no PostgreSQL, and fails it for any other
// error, and with CI=true.
func must(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case errors.Is(err, errNoPostgres):
		needs.PostgreSQL().Missing(tb, err)
	case err != nil:
		tb.Fatalf("cannot have a PostgreSQL server: %v", err)
	}
}

// Template is a database to copy: filled once in a process, it spares each test
// the filling. The zero value with Fill set is ready to use.
type Template struct {
	// Fill fills the empty database at a URL, and leaves no connection open.
	Fill func(dsn string) error

	once     sync.Once
	database string
	err      error
}

// DSN is DSN for a copy of the template. The template itself stays on the
// server until that ends, or until the databases named muster_test_ are dropped.
func (t *Template) DSN(tb testing.TB) string {
	tb.Helper()
	srv := need(tb)
	t.once.Do(func() {
		if t.database, t.err = srv.create("template0"); t.err == nil {
			t.err = t.Fill(srv.dsn(t.database))
		}
	})
	if t.err != nil {
		tb.Fatalf("cannot fill a database: %v", t.err)
	}
	database, err := srv.create(t.database)
	return srv.lend(tb, database, err)
}

// create makes a database as a copy of another.
func (s *server) create(template string) (string, error) {
	database := "muster_test_" + rand.Text()
	return database, s.exec("CREATE DATABASE " + pgx.Identifier{database}.Sanitize() +
		" TEMPLATE " + pgx.Identifier{template}.Sanitize() + " ENCODING 'UTF8'")
}

// lend gives a database to a test and drops it afterwards.
func (s *server) lend(tb testing.TB, database string, err error) string {
	tb.Helper()
	if err != nil {
		tb.Fatalf("cannot create a database: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + pgx.Identifier{database}.Sanitize() + " WITH (FORCE)"); err != nil {
			tb.Errorf("cannot drop the test's database: %v", err)
		}
	})
	return s.dsn(database)
}

// server is a PostgreSQL server on which databases may be made.
type server struct {
	address *url.URL
	// lifeline is the private server's standard input; the server ends when it
	// is closed, and it is kept here so that only the process's end closes it.
	lifeline *os.File
}

func findServer() (*server, error) {
	text, lifeline := os.Getenv(Variable), (*os.File)(nil)
	if text == "" {
		p, err := start(single)
		if err != nil {
			return nil, err
		}
		text, lifeline = p.address, p.lifeline
		_ = p.stdout.Close()
	}
	address, err := url.Parse(text)
	if err != nil || (address.Scheme != "postgres" && address.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s must be a URL such as postgres://user:password@127.0.0.1:5432/postgres", Variable)
	}
	return &server{address: address, lifeline: lifeline}, nil
}

func (s *server) dsn(database string) string {
	u := *s.address
	u.Path = "/" + database
	return u.String()
}

// exec runs one statement on a connection of its own: CREATE DATABASE and DROP
// DATABASE may not be part of a transaction.
func (s *server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.address.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
