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
	srv, err := shared()
	switch {
	case errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true":
		tb.Skipf("needs PostgreSQL: set %s, or install it (Debian: postgresql): %v", Variable, err)
	case err != nil:
		tb.Fatalf("cannot have a PostgreSQL server: %v", err)
	}
	database := "muster_test_" + rand.Text()
	if err := srv.exec("CREATE DATABASE " + pgx.Identifier{database}.Sanitize() + " TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		tb.Fatalf("cannot create a database: %v", err)
	}
	tb.Cleanup(func() {
		if err := srv.exec("DROP DATABASE " + pgx.Identifier{database}.Sanitize() + " WITH (FORCE)"); err != nil {
			tb.Errorf("cannot drop the test's database: %v", err)
		}
	})
	return srv.dsn(database)
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
		var err error
		if text, lifeline, err = start(); err != nil {
			return nil, err
		}
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
