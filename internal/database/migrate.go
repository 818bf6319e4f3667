package database

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables up to date. On PostgreSQL an advisory lock lets one
// replica at a time do it. On SQLite each migration is one transaction that
// fails if another process was faster, and then is tried again: the winner's
// version is seen, and nothing is left to do.
func migrate(ctx context.Context, pool *sql.DB, d dialect, logger *slog.Logger) error {
	provider, err := newProvider(pool, d)
	if err != nil {
		return err
	}
	_, locked := d.(postgresDialect)
	for n := 1; ; n++ {
		done, err := provider.Up(ctx)
		for _, r := range done {
			logger.InfoContext(ctx, "database migrated", "migration", r.Source.Path, "took", r.Duration)
		}
		if err == nil || locked || n == attempts || ctx.Err() != nil {
			return wrap(err, "cannot migrate the database")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(n) * 20 * time.Millisecond):
		}
	}
}

// newProvider reads the migrations in the engine's own words. They come from
// several hands, so one with a lower number may be released after one with a
// higher: none may need what a lower one makes that was released after it.
func newProvider(pool *sql.DB, d dialect) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	engine := goose.DialectSQLite3
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true)}
	if _, ok := d.(postgresDialect); ok {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return nil, err
		}
		engine, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(engine, pool, translated{files, d}, options...)
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// translated is a file system of migrations in the engine's own words.
type translated struct {
	fs.FS
	dialect dialect
}

// Open opens a file with its text translated.
func (t translated) Open(name string) (fs.File, error) {
	file, err := t.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return file, err
	}
	text, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &translation{file, strings.NewReader(t.dialect.schema(string(text)))}, nil
}

// translation is a file whose content was replaced.
type translation struct {
	fs.File
	text *strings.Reader
}

func (t *translation) Read(p []byte) (int, error) { return t.text.Read(p) }
