package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/service/ops"
)

// openDatabase opens the key file and the database, and changes neither unless
// they belong together and the file is sound.
func (s *Service) openDatabase(ctx context.Context) error {
	url := s.config.Database
	found, err := database.Inspect(ctx, url)
	if err != nil {
		return err
	}
	if err := found.Check(database.Upgrade); err != nil {
		return err
	}
	if !s.isLarge() {
		if err := database.QuickCheck(ctx, url); err != nil {
			return err
		}
	}
	if err := s.openKeys(found); err != nil {
		return err
	}
	if err := ops.PrivateKeyFile(s.config.KeyFile); err != nil {
		return err
	}
	s.db, err = database.Open(ctx, database.Options{URL: url, Now: s.options.Now, ServerClock: s.options.ServerClock,
		Schema: database.Upgrade, Alone: !s.options.Shared, Logger: s.options.Logger, Spent: s.options.Spent})
	if err != nil {
		return err
	}
	s.db.ProveWith(s.keys)
	s.onClose(s.db.Close)
	s.onClose(func() error {
		if err := s.db.Absent(context.WithoutCancel(ctx)); err != nil {
			s.options.Logger.WarnContext(ctx, "presence not taken back", "error", err)
		}
		return nil
	})
	if err := s.db.BeginHistory(ctx); err != nil {
		return err
	}
	return recordKeys(ctx, s.db, s.keys, s.config, s.options.Logger)
}

// checkAtOnce is the size of a SQLite file, in bytes, up to which it is checked before
// the start. A check reads the whole file: one to three seconds for each GB, or longer
// from a slow disk. A larger file is checked while the service runs.
const checkAtOnce = 256 << 20

// isLarge reports whether the database is a SQLite file that is checked while the service runs.
func (s *Service) isLarge() bool {
	path, embedded := s.config.SQLitePath()
	info, err := os.Stat(path)
	return embedded && err == nil && info.Size() > checkAtOnce
}

// checkDatabase checks a large file once, and ends the service if it is damaged.
func (s *Service) checkDatabase(ctx context.Context) error {
	began := s.options.Now()
	err := database.QuickCheck(ctx, s.config.Database)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		s.stopWith(err)
	default:
		s.options.Logger.InfoContext(ctx, "database checked", "took", s.options.Now().Sub(began))
	}
	<-ctx.Done()
	return ctx.Err()
}

// stopWith stops the service with an error.
func (s *Service) stopWith(why error) {
	select {
	case s.ended <- why:
	default: // it stops already
	}
}

// openKeys reads the key file. Beside an embedded database it is made at the
// first start; replicas on PostgreSQL must be given the same file.
func (s *Service) openKeys(found database.Inspection) (err error) {
	path, accept := s.config.KeyFile, s.config.AcceptLostKeys
	_, embedded := s.config.SQLitePath()
	if _, missing := os.Stat(path); errors.Is(missing, fs.ErrNotExist) {
		if err := (&ops.Keys{}).Belong(found); err != nil && !accept {
			return keyFileError(path, fmt.Errorf("it does not exist, and %w", err))
		}
		if embedded {
			s.keys, err = ops.LoadOrMakeKeys(path, s.options.Now())
			return err
		}
	}
	if s.keys, err = ops.LoadKeys(path); err != nil {
		if !embedded {
			err = fmt.Errorf("%w (MUSTER_KEY_FILE; `muster doctor --make-key-file FILE` makes one for a new database)", err)
		}
		return err
	}
	if err := s.keys.Belong(found); err != nil && !accept {
		return keyFileError(path, err)
	}
	return nil
}

// keyFileError says what to do about keys that are missing.
func keyFileError(path string, err error) error {
	return fmt.Errorf("cannot use the key file %s with this database: %w; restore the key file that belongs to it, or give up what "+
		"depends on it with --accept-lost-keys", path, err)
}

// recordKeys records the keys in the database before the first of them is used.
func recordKeys(ctx context.Context, db *database.DB, keys *ops.Keys, settings config.Service, log *slog.Logger) error {
	given, err := db.AdmitKeys(ctx, keys.IDs(), settings.AcceptLostKeys)
	if _, missing := errors.AsType[*database.MissingKeys](err); missing {
		return keyFileError(settings.KeyFile, err)
	}
	if err != nil {
		return fmt.Errorf("cannot record the keys of the key file in the database: %w", err)
	}
	if settings.AcceptLostKeys {
		log.WarnContext(ctx, "lost keys accepted", "keys", strings.Join(given, ","), "file", settings.KeyFile)
	}
	return nil
}

// reportPresence records that this replica runs. It stops the service once a newer
// program has changed the database.
func (s *Service) reportPresence(ctx context.Context) error {
	err := s.db.Present(ctx)
	if s.db.Outdated() {
		s.stopWith(err)
	}
	return err
}

// warnOfNames logs at the start how many policies have names that look alike or hide
// characters: databases of earlier versions may have them.
func (s *Service) warnOfNames(ctx context.Context) error {
	odd, err := s.db.OddNames(ctx)
	if err != nil {
		return err
	}
	if len(odd) > 0 {
		s.options.Logger.WarnContext(ctx, "policy names that look alike or hide characters: run muster doctor", "count", len(odd))
	}
	return nil
}
