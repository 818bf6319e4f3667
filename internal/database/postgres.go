package database

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// maxConnections bounds a replica's connections; one more listens.
const maxConnections = 16

// openPostgres opens the pool. As many connections as may be open stay open:
// opening one costs more than most queries.
func (db *DB) openPostgres(ctx context.Context, url string) error {
	db.dialect = postgresDialect{bound: &boundTexts{}}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("the URL is not a valid postgres:// URL") // pgx quotes the URL, which may hold a password
	}
	db.pool = stdlib.OpenDB(*config)
	db.onClose(db.pool.Close)
	db.pool.SetMaxOpenConns(maxConnections)
	db.pool.SetMaxIdleConns(maxConnections)
	db.pool.SetConnMaxIdleTime(5 * time.Minute)
	if err := migrate(ctx, db.pool, db.dialect, db.logger); err != nil {
		return err
	}
	db.reader = db.pool
	db.wakeReplicas(config)
	return db.Ping(ctx)
}
