package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

var (
	errWorkedOn = errors.New("a service works on the source: stop it, or what it writes during the copy would be missing in the copy")
	errWritten  = errors.New("the source was written to during the copy, where that is missing: nothing was kept; copy again when " +
		"no program uses it")
)

// hold refuses a database on which a service works, and keeps services from a SQLite file
// until the database is closed. was is the file before it was opened. unchanged is called when
// all is read: it reports a service that began on PostgreSQL since, and a file that was
// written to.
func (db *DB) hold(ctx context.Context, url string, was fileState) (unchanged func(context.Context) error, err error) {
	before, err := db.unserved(ctx)
	if err != nil {
		return nil, err
	}
	path, embedded := strings.CutPrefix(url, "sqlite:")
	if !embedded {
		return func(ctx context.Context) error {
			now, err := db.replicas(ctx, db.Read())
			if err == nil && spoke(before, now) {
				return errWorkedOn
			}
			return err
		}, nil
	}
	if err := db.takeAlone(ctx, path); err != nil {
		return nil, err
	}
	return func(context.Context) error {
		now, err := stateOf(url)
		if err == nil && now != was {
			return errWritten
		}
		return err
	}, nil
}

// unserved returns the replicas that ended without a word, or errWorkedOn.
func (db *DB) unserved(ctx context.Context) ([]replicaLease, error) {
	before, err := db.replicas(ctx, db.Read())
	now := before
	for waited := time.Duration(0); err == nil && len(now) > 0 && waited < silence; waited += lookAgain {
		if !wait.For(ctx, lookAgain) {
			return nil, ctx.Err()
		}
		if now, err = db.replicas(ctx, db.Read()); spoke(before, now) {
			return nil, errWorkedOn
		}
	}
	return before, err
}

// fileState changes with whatever is written to a SQLite file or to its log.
type fileState struct{ file, log written }

type written struct {
	size int64
	at   time.Time
}

// stateOf is zero for PostgreSQL.
func stateOf(url string) (s fileState, err error) {
	path, embedded := strings.CutPrefix(url, "sqlite:")
	if !embedded {
		return s, nil
	}
	path = Linked(path)
	if s.file, err = writtenOf(path); err == nil {
		s.log, err = writtenOf(path + "-wal")
	}
	return s, err
}

// writtenOf is zero for a file that does not exist.
func writtenOf(path string) (written, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return written{}, nil
	}
	if err != nil {
		return written{}, err
	}
	return written{info.Size(), info.ModTime()}, nil
}
