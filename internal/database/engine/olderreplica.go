package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/database/migrations"
	"github.com/musterhq/muster/internal/wait"
)

const (
	// lookAgain is how often it is looked whether older programs have ended.
	lookAgain = 200 * time.Millisecond
	// silence is after how long without a word a replica counts as ended. It says
	// that it is present every PresentEvery.
	silence = 5 * time.Second
	// endLimit is how long replicas that can be told to end are waited for.
	endLimit = 30 * time.Second
	// toldFor is for how long after it told older programs to end a newer one may be at it: it waits for
	// endLimit, and clocks differ.
	toldFor = 2 * time.Minute
	// changeLimit is how long a program that was told to end waits for one that changes the tables.
	changeLimit = time.Second
)

// upgradeLease is of the program that last told older ones to end.
const upgradeLease = "upgrade"

// replicaLease is what a replica last said of its replicaLease.
type replicaLease struct {
	name, holder string
	until        int64
}

// program is the number of a replica's program. The first version names none.
func (l replicaLease) program() int64 {
	text, _, named := strings.Cut(l.holder, "/")
	if n, err := strconv.ParseInt(text, 10, 64); named && err == nil {
		return n
	}
	return 1
}

// endOlder waits until no program runs that may not write what this one makes
// of the database. Those that can be told to end are told first.
func (db *DB) endOlder(ctx context.Context, pool *sql.DB, seen Version) error {
	if seen.Empty() || seen.LowestWriter >= migrations.LowestWriter && !seen.told() {
		return nil
	}
	if seen.Schema > 1 {
		ask := func(ctx context.Context, t Tx) error { // older programs end; durable when inUpgrade returns
			if err := t.Exec(ctx, `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
				ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at`,
				upgradeLease, strconv.FormatInt(SchemaNumber(), 10), db.now().Add(toldFor).UnixMilli()); err != nil {
				return err
			}
			return t.Exec(ctx, `UPDATE versions SET lowest_writer = ? WHERE id = 1 AND lowest_writer < ?`, migrations.LowestWriter,
				migrations.LowestWriter)
		}
		if err := db.inUpgrade(ctx, pool, ask); err != nil {
			return err
		}
	}
	c := session{db: db, run: pool}
	before, err := db.olderReplicas(ctx, c)
	if err != nil || len(before) == 0 {
		return err
	}
	db.logger.DebugContext(ctx, "waiting for older programs to end", "replicas", len(before))
	for waited, quiet := lookAgain, lookAgain; ; waited, quiet = waited+lookAgain, quiet+lookAgain {
		if !wait.For(ctx, lookAgain) {
			return ctx.Err()
		}
		now, err := db.olderReplicas(ctx, c)
		if err != nil {
			return err
		}
		if spoke(before, now) {
			if seen.Schema == 1 || waited >= endLimit {
				return &SchemaError{"an older Muster serves this database and would damage what this one makes of it",
					"stop every older `muster serve`, then start this one"}
			}
			before, quiet = now, 0
		}
		if len(now) == 0 || quiet >= silence {
			return nil
		}
	}
}

// errLetIn is of a process that waited while another one failed, and let older programs in again.
var errLetIn = errors.New("older programs may write again")

// letIn takes back what endOlder told, after the change failed: the tables are as seen, and the
// program that they are of is to go on.
func (db *DB) letIn(ctx context.Context, pool *sql.DB, seen Version) error {
	if seen.Schema <= 1 || seen.LowestWriter >= migrations.LowestWriter {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if now, err := readVersion(ctx, session{db: db, run: pool}, db.dialect); err == nil && now == seen {
		return nil // they were not told
	}
	return db.inUpgrade(ctx, pool, func(ctx context.Context, t Tx) error {
		return t.Exec(ctx, `UPDATE versions SET lowest_writer = ? WHERE id = 1 AND schema_number = ? AND lowest_writer = ?`,
			seen.LowestWriter, seen.Schema, migrations.LowestWriter)
	})
}

// resume lets this program write again if a newer one that told it to end was killed before it
// changed the tables. It refuses every other version that Check does, and leaves a program alone
// that may still be at it: while it waits for others, by its lease, and then by the transaction in
// which it changes the tables.
func (db *DB) resume(ctx context.Context, pool *sql.DB, use SchemaUse, seen Version) error {
	refused := seen.Check(use)
	if refused == nil || !seen.told() || seen.Schema != SchemaNumber() {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	err := db.inUpgrade(ctx, pool, func(ctx context.Context, t Tx) error {
		if err := t.Exec(ctx, `UPDATE versions SET lowest_writer = ? WHERE id = 1 AND schema_number = ? AND lowest_writer > schema_number
			AND NOT EXISTS (SELECT 1 FROM leases WHERE name = ? AND expires_at > ?)`,
			migrations.LowestWriter, seen.Schema, upgradeLease, db.now().UnixMilli()); err != nil {
			return err
		}
		now, err := readVersion(ctx, t, db.dialect)
		return cmp.Or(err, now.Check(use))
	})
	if err == nil {
		db.logger.WarnContext(ctx, "a newer program ended before it changed the database; this one goes on")
	} else if _, is := errors.AsType[*SchemaError](err); !is {
		err = refused
	}
	return err
}

// spoke reports whether a replica said again that it is present.
func spoke(before, now []replicaLease) bool {
	return slices.ContainsFunc(now, func(l replicaLease) bool {
		i := slices.IndexFunc(before, func(b replicaLease) bool { return b.name == l.name })
		return i < 0 || before[i].until < l.until
	})
}

func (db *DB) olderReplicas(ctx context.Context, c Conn) ([]replicaLease, error) {
	all, err := db.replicas(ctx, c)
	return slices.DeleteFunc(all, func(l replicaLease) bool { return l.program() >= migrations.LowestWriter }), err
}

// clocksApart is how far this machine's clock may be ahead of the server's, by which replicas
// say until when they are present.
const clocksApart = time.Minute

// replicas are those that are present, or were within clocksApart: spoke decides.
func (db *DB) replicas(ctx context.Context, c Conn) ([]replicaLease, error) {
	tables, err := tableNames(ctx, c, db.dialect)
	if err != nil || !slices.Contains(tables, "leases") {
		return nil, err
	}
	return List(ctx, c, Into(func(l *replicaLease) []any { return []any{&l.name, &l.holder, &l.until} }),
		`SELECT name, holder, expires_at FROM leases WHERE name LIKE '`+ReplicaPrefix+`%' AND expires_at > ?`,
		db.now().Add(-clocksApart).UnixMilli())
}
