package engine_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/pgtest"
)

// The limits that the administrator of a server gave to a role do not end a change of the tables or a
// copy, which take long on large tables; its isolation does not change what a transaction sees, and its
// encoding not what is written.
func TestPostgres_DefaultsOfARole(t *testing.T) {
	t.Parallel()
	to := place{"postgres", pgtest.DSN(t) + "&statement_timeout=60000&lock_timeout=60000&idle_in_transaction_session_timeout=60000" +
		"&default_transaction_isolation=serializable&client_encoding=LATIN1"}
	var upgrading, working []string
	db, err := engine.Open(t.Context(), engine.Options{URL: to.url, Now: now, Changed: limits(&upgrading)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Write(t.Context(), limits(&working), false); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(upgrading, []string{"0", "0", "0", "read committed", "UTF8"}) {
		t.Errorf("the tables were changed with %v", upgrading)
	}
	if !slices.Equal(working, []string{"1min", "1min", "1min", "read committed", "UTF8"}) {
		t.Errorf("a transaction has %v", working)
	}
	if err := write(t.Context(), db, nil, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('statement_timeout') <> '0' THEN RAISE 'the copy has a limit'; END IF; RETURN NEW; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON leases FOR EACH ROW EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	from := onSQLite(t)
	if err := write(t.Context(), from.open(t), nil, `INSERT INTO leases (name, holder, expires_at) VALUES ('a', 'b', 1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Copy(t.Context(), engine.Options{URL: from.url, Now: now}, to.url); err != nil {
		t.Error(err)
	}
}

// A schema that stands before that of the tables in the search path, as one with the role's name does
// once it is made, does not look like an empty database, which would be set up beside the other.
func TestPostgres_AnotherSchemaFirst(t *testing.T) {
	t.Parallel()
	first := onPostgres(t)
	db := first.open(t)
	if err := write(t.Context(), db, nil, `CREATE SCHEMA later`); err != nil {
		t.Fatal(err)
	}
	again := place{"postgres", first.url + "&search_path=later,public"}.open(t)
	version, err := again.Version(t.Context())
	if err != nil || version.Schema != engine.SchemaNumber() {
		t.Errorf("it is at %v, %v", version, err)
	}
	if err := write(t.Context(), db, nil, `UPDATE versions SET schema_number = schema_number - 1`); err != nil {
		t.Fatal(err)
	}
	_, err = engine.Open(t.Context(), engine.Options{URL: first.url + "&search_path=later,public", Now: now, Schema: engine.Upgrade})
	if err == nil || !strings.Contains(err.Error(), "the schema that is first in its search_path, where they are") {
		t.Errorf("an upgrade that would make its tables elsewhere ends with %v", err)
	}
	if err := write(t.Context(), db, nil, `UPDATE versions SET schema_number = schema_number + 1`); err != nil {
		t.Fatal(err)
	}
}

// A database is not set up in an encoding that lacks characters.
func TestPostgres_Encoding(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	server, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	do := func(statement string) {
		t.Helper()
		if _, err := server.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = strings.ToLower(u.Path) + "_latin1"
	name := strings.TrimPrefix(u.Path, "/")
	do(`CREATE DATABASE ` + name + ` ENCODING 'LATIN1' LOCALE_PROVIDER 'libc' LOCALE 'C' TEMPLATE template0`)
	t.Cleanup(func() { do(`DROP DATABASE ` + name) })
	db, err := engine.Open(t.Context(), engine.Options{URL: u.String(), Now: now})
	if err == nil {
		_ = db.Close()
	}
	if refused, is := errors.AsType[*engine.SchemaError](err); !is || !strings.Contains(refused.Error(), "is LATIN1, which lacks") {
		t.Errorf("it was set up: %v", err)
	}
}

// Where the server refuses another connection, a statement waits for one of those that are open.
func TestPostgres_NoRoomForAnotherConnection(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(onPostgres(t).url)
	if err != nil {
		t.Fatal(err)
	}
	server, err := sql.Open("pgx", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	role, owner := strings.ToLower(address.Path[1:])+"_few", address.User.Username()
	if _, err := server.ExecContext(t.Context(),
		`CREATE ROLE `+role+` LOGIN PASSWORD 'few' CONNECTION LIMIT 5 IN ROLE `+owner); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.ExecContext(context.WithoutCancel(t.Context()), `DROP ROLE `+role) })
	address.User = url.UserPassword(role, "few")
	var log bytes.Buffer
	db, err := engine.Open(t.Context(), engine.Options{URL: address.String(), Now: now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 64 {
		go func() { errs <- db.Read().Exec(t.Context(), `SELECT count(*) FROM generate_series(1, 20000)`) }()
	}
	for range 64 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if said := strings.Count(log.String(), "no room for another connection"); said != 1 {
		t.Errorf("that is logged %d times:\n%s", said, log.String())
	}
}

// limits reads what the server limits a transaction by.
func limits(seen *[]string) engine.Work {
	return func(ctx context.Context, t engine.Tx) (err error) {
		*seen, err = engine.List(ctx, t, engine.ScanValue[string], `SELECT current_setting(name) FROM unnest(ARRAY['statement_timeout',
			'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_isolation', 'client_encoding']) AS name`)
		return err
	}
}
