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
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	engine, options := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if _, ok := d.(postgresDialect); ok {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return err
		}
		engine, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(engine, pool, translated{files, d}, options...)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		done, err := provider.Up(ctx)
		for _, r := range done {
			logger.InfoContext(ctx, "database migrated", "migration", r.Source.Path, "took", r.Duration)
		}
		if err == nil || engine == goose.DialectPostgres || n == attempts || ctx.Err() != nil {
			return wrap(err, "cannot migrate the database")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(n) * 20 * time.Millisecond):
		}
	}
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
