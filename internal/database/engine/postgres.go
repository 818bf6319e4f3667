package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// maxConnections bounds a replica's connections; one more listens.
const maxConnections = 16

// connectLimit is how long a connection to each server of an address may take.
const connectLimit = 10 * time.Second

// openPostgres opens the pool. As many connections as may be open stay open:
// opening one costs more than most queries.
func (db *DB) openPostgres(ctx context.Context, o Options) error {
	config, err := db.poolPostgres(ctx, o.URL)
	if err != nil {
		return err
	}
	seen, err := readVersion(ctx, db.Read(), db.dialect)
	if err != nil {
		return err
	}
	if err := db.resume(ctx, db.pool, o.Schema, seen); err != nil {
		return err
	}
	if seen.Schema < SchemaNumber() {
		if err := db.upgradePostgres(ctx, *config, o.Schema, seen); err != nil {
			return err
		}
	}
	db.wakeReplicas(config)
	return db.Ping(ctx)
}

// upgradePostgres is upgrade on connections that wait: to change large tables takes long, and so
// does to wait for another process that does it.
func (db *DB) upgradePostgres(ctx context.Context, config pgx.ConnConfig, use SchemaUse, seen Version) error {
	pool := sql.OpenDB(patient(&config))
	defer pool.Close()
	if seen.Empty() {
		if err := everyCharacter(ctx, session{db: db, run: pool}); err != nil {
			return err
		}
	}
	return db.upgrade(ctx, pool, use, seen)
}

// everyCharacter refuses an encoding in which people and devices could not be named as they are.
// SQL_ASCII keeps what it is given.
func everyCharacter(ctx context.Context, c Conn) error {
	encoding, err := Value[string](ctx, c, `SELECT current_setting('server_encoding')`)
	if err != nil || encoding == "UTF8" || encoding == "SQL_ASCII" {
		return err
	}
	return &SchemaError{"the encoding of the empty database is " + encoding + ", which lacks most characters",
		"create it again with `createdb --encoding UTF8 --template template0`"}
}

// patient connects without answerLimit and without the server's own limits, for work on whole tables.
func patient(config *pgx.ConnConfig) driver.Connector {
	config.DialFunc = newDialer().DialContext
	return stdlib.GetConnector(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		return errors.Join(readCommitted(ctx, c), unlimited(ctx, c))
	}))
}

// readCommitted sets what transactions rely on: a statement sees what was committed while the one
// before it waited for a lock. A role or a database may have another default.
func readCommitted(ctx context.Context, c *pgx.Conn) error {
	return c.PgConn().Exec(ctx, `SET default_transaction_isolation = 'read committed'`).Close() // not counted, see Cost
}

// unlimited takes the limits off a connection that a role or a database may have. Which there are
// depends on the server's version.
func unlimited(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SELECT set_config(name, '0', FALSE) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
		'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`)
	return err
}

// parsePostgres reads an address. Without a connect_timeout of its own, a connection that is not
// made within connectLimit is given up, also where the server accepts it and says nothing.
func parsePostgres(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, invalid(address)
	}
	config.DialFunc = dialPostgres
	config.RuntimeParams["client_encoding"] = "UTF8" // a role or a database may have another default
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectLimit)
	return config, nil
}

// invalid says what is wrong with an address, such as a parameter. pgx quotes it, so that it is
// asked about what is left without users and passwords.
func invalid(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the URL is not a valid postgres:// URL")
	}
	parameters := u.Query()
	parameters.Del("password")
	parameters.Del("sslpassword")
	_, err = pgx.ParseConfig((&url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: parameters.Encode()}).String())
	return cmp.Or(err, errors.New("the URL is not a valid postgres:// URL"))
}

// poolPostgres opens the pool alone, for looking or for working.
func (db *DB) poolPostgres(ctx context.Context, address string) (*pgx.ConnConfig, error) {
	db.dialect = Postgres()
	config, err := parsePostgres(address)
	if err != nil {
		return nil, err
	}
	if err := refusePooler(ctx, config); err != nil {
		return nil, err
	}
	if db.spent != nil {
		config.Tracer = meter{db}
	}
	var connect driver.Connector
	if db.patient {
		connect = patient(config) // takes the limits off config
	} else {
		connect = stdlib.GetConnector(*config, stdlib.OptionShouldPing(silent), stdlib.OptionAfterConnect(readCommitted))
	}
	db.pool = (&connector{Connector: connect, logger: cmp.Or(db.logger, slog.New(slog.DiscardHandler))}).open()
	db.onClose(db.pool.Close)
	db.pool.SetConnMaxIdleTime(5 * time.Minute)
	db.reader = db.pool
	return config, nil
}

// pingLimit is how long a connection that was not used may take to answer before another is taken.
const pingLimit = 5 * time.Second

// silent reports whether a connection that was not used for a while is to be given up: it asks
// itself, because pgx, which asks next, knows no limit. A connection that failed here is closed.
func silent(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration <= time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	return p.Conn.PgConn().Ping(ctx) != nil
}
