package engine

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/musterhq/muster/internal/database/migrations"
	"github.com/musterhq/muster/internal/fault"
)

// SchemaNumber is the number of this program and of the tables that it knows:
// each migration raises it by one, so that it follows from what is compiled in.
func SchemaNumber() int64 {
	files, _ := fs.Glob(migrations.Files, "*.sql") // fails for a malformed pattern alone
	return int64(len(files) - migrations.First + 1)
}

// Version is what a database says of itself. The zero value is of an empty one.
type Version struct {
	Schema       int64
	LowestWriter int64
}

// Empty reports whether there are no tables of Muster.
func (v Version) Empty() bool { return v.Schema == 0 }

// told reports whether a newer program told older ones to end, and did not change the tables yet.
func (v Version) told() bool { return v.LowestWriter > v.Schema }

// SchemaUse says what Open may do with a database that is not at SchemaNumber.
type SchemaUse int

const (
	// SetUp sets up an empty database, and refuses any other that is not at
	// SchemaNumber. It is for the command that makes a company, and for the target of a copy.
	SetUp SchemaUse = iota
	// Existing refuses an empty database as well. It is for all other commands.
	Existing
	// Upgrade changes an older database, and works beside newer programs for as
	// long as the database allows it. It is for serve, demo and migrate.
	Upgrade
)

// SchemaError refuses a database because of its version.
type SchemaError struct{ Detail, Remedy string }

func (e *SchemaError) Error() string { return e.Detail + ": " + e.Remedy }

// Check returns a *SchemaError if the use must be refused.
func (v Version) Check(use SchemaUse) error {
	own := SchemaNumber()
	newer := v.Schema > own && use != Upgrade
	switch {
	case v.Empty() && use == Existing:
		return &SchemaError{"the database is empty", "`muster company create` or `muster serve` sets it up; if it should hold data, " +
			"check MUSTER_DATABASE"}
	case v.Empty():
		return nil
	case v.told() && v.Schema == own:
		return &SchemaError{fmt.Sprintf("a newer Muster began to change the database (programs from %d may write, this one is %d)",
			v.LowestWriter, own), "use the newer program; if it was killed, nothing is changed: start this one again after two minutes"}
	case v.LowestWriter > own || newer:
		return &SchemaError{fmt.Sprintf("the database was changed by a newer Muster (its schema is %d, this program's is %d, and "+
			"programs from %d may write)", v.Schema, own, v.LowestWriter),
			"use the newer program, or restore a backup that this one made"}
	case v.Schema < own && use != Upgrade:
		return &SchemaError{fmt.Sprintf("the database was made by an older Muster (its schema is %d, this program's is %d)", v.Schema, own),
			"back it up with the older program, then run `muster migrate` or start `muster serve`"}
	}
	return nil
}

// readVersion reads what the database says of itself.
func readVersion(ctx context.Context, c Conn, d Dialect) (Version, error) {
	tables, err := tableNames(ctx, c, d)
	switch {
	case err != nil:
		return Version{}, err
	case slices.Contains(tables, "versions"):
		return One(ctx, c, Into(func(v *Version) []any { return []any{&v.Schema, &v.LowestWriter} }),
			`SELECT schema_number, lowest_writer FROM versions WHERE id = 1`)
	case slices.Contains(tables, formerTable):
		return Version{1, 1}, nil
	}
	return Version{}, nil
}

func tableNames(ctx context.Context, c Conn, d Dialect) ([]string, error) {
	return List(ctx, c, ScanValue[string], d.tables())
}

// outdated is the error of every write once a newer program has changed the
// tables so that this one would damage them.
func outdated(lowest int64) error {
	return fault.New(fault.Unavailable, "a newer Muster changed the database: programs from %d may write, this one is %d; start the "+
		"newer program instead", lowest, SchemaNumber())
}

// Current returns an error, and refuses every write from then on, if a newer
// program has changed the tables so that this one may no longer write.
func (db *DB) Current(ctx context.Context) error {
	lowest, err := Value[int64](ctx, db.Read(), `SELECT lowest_writer FROM versions WHERE id = 1`)
	if err != nil || lowest <= SchemaNumber() {
		return err
	}
	stop := outdated(lowest)
	db.outdated.Store(&stop)
	return stop
}

// mayWrite returns the error of Current once it was one, and errNested inside a write.
func (db *DB) mayWrite(ctx context.Context) error {
	if ctx.Value(inside{}) != nil {
		return errNested
	}
	if stop := db.outdated.Load(); stop != nil {
		return *stop
	}
	return nil
}

// Outdated reports whether a newer program ended this one's writing.
func (db *DB) Outdated() bool { return db.outdated.Load() != nil }
