package engine

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// SetQuiet sets how long the listening connection may hear nothing.
func (db *DB) SetQuiet(d time.Duration) { db.wakes.quiet = d }

// Hears asks a pooler about notifications alone, as if every round had met the
// same server.
func Hears(ctx context.Context, url string, limit time.Duration) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	first, second, err := connectPair(ctx, config)
	if err != nil {
		return err
	}
	err = hears(ctx, first, second, limit)
	return errors.Join(err, second.Close(ctx), first.Close(context.WithoutCancel(ctx)))
}

// ErrPooler refuses a pooler that does not keep sessions.
var ErrPooler = errPooler

// NewDialer returns the dialer for PostgreSQL.
var NewDialer = newDialer

// ConnectTimeout is how long one connection to an address may take.
func ConnectTimeout(url string) (time.Duration, error) {
	config, err := parsePostgres(url)
	if err != nil {
		return 0, err
	}
	return config.ConnectTimeout, nil
}

// ErrSilent is of a wait for PostgreSQL that ended.
var ErrSilent = errSilent

// LimitedConn is a connection to PostgreSQL with another limit for its waits.
func LimitedConn(c net.Conn, limit time.Duration) net.Conn {
	return &limitedConn{Conn: c, limit: limit}
}

// LimitOf is how long a transaction of the context may take.
var LimitOf = limitOf
