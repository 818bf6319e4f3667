package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/database/engine"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine *engine.DB
	logger *slog.Logger
	prover activity.Prover // nil: entries have no proof

	keyUse, deviceUse *engine.LastUsed
	numbering         atomic.Pointer[func()] // wakes who gives events their positions; nil: none does
	deepFrom          int64                  // see Assets
	few               int                    // see whole
}

// Open opens the database. What it does with an empty one, with a SQLite file
// that does not exist, and with one of another version, Options.Schema says; an
// error about the version is a *SchemaError, and then nothing was written. Its
// errors name the setting at fault, never a password.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Changed = recountChanged
	opened, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	db := &DB{engine: opened, logger: o.Logger, deepFrom: deepFrom, few: few}
	if o.Schema == Upgrade {
		if err := db.indexAssets(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	db.deviceUse = opened.NewLastUsed("asset_contacts", "asset_id", "at")
	db.keyUse = opened.NewLastUsed("api_keys", "id", "last_used_at")
	return db, nil
}

// Look opens a database at this program's schema for reading alone. Writing
// through it fails.
func Look(ctx context.Context, url string) (*DB, error) {
	opened, err := engine.Look(ctx, url)
	if err != nil {
		return nil, err
	}
	if opened == nil {
		return nil, errors.New("the database does not exist")
	}
	return &DB{engine: opened}, nil
}

// Inspection is what a look at a database found. The look changes nothing.
type Inspection struct {
	Version
	// Keys are the ids of the service's keys that the database needs.
	Keys []string
	// Heads are signed statements, one a company, of a database that does not name
	// its keys yet: the keys that belong to it verify them.
	Heads []activity.Head
}

// Inspect looks at a database, and creates or changes nothing. What its use
// would be refused for, Check says.
func Inspect(ctx context.Context, url string) (found Inspection, err error) {
	db, err := engine.Look(ctx, url)
	if err != nil || db == nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables []string
	found.Version, err = db.Version(ctx)
	if err == nil {
		tables, err = db.Tables(ctx)
	}
	if err == nil {
		err = found.readKeys(ctx, db.Read(), tables)
	}
	return found, engine.Explain(url, err)
}

// Restoring is a backup that lies, checked, beside the database whose place it is
// to take. Discard or Commit ends it.
type Restoring struct {
	*engine.Restoring
	Found Inspection // of the backup
}

// PrepareRestore copies a backup beside the SQLite database at path and checks
// the copy. The backup is only read, and the database is not touched.
func PrepareRestore(ctx context.Context, path, backup string) (*Restoring, error) {
	r := &Restoring{}
	var err error
	r.Restoring, err = engine.PrepareRestore(ctx, path, backup, func(ctx context.Context, url string) (err error) {
		r.Found, err = Inspect(ctx, url)
		return err
	})
	return r, err
}

// Backup makes a copy of the embedded database at a path that does not exist,
// as it is at this moment, while readers and writers go on, and notes when. What
// backups that were killed left in the directory is removed. fault.Unsupported
// for PostgreSQL, which has its own tools. An error says so if only the time cannot be noted.
func (db *DB) Backup(ctx context.Context, path string) error {
	if err := db.engine.Backup(ctx, path); err != nil {
		return err
	}
	if err := db.exec(ctx, `INSERT INTO operator_acts (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at`,
		backedUp, millis(db.now())); err != nil {
		return fmt.Errorf("the backup %s is complete, but the database cannot note its time, so that `muster doctor` and the alert for "+
			"old backups go by the backup before: %w", path, err)
	}
	return nil
}

// Copy copies a whole database into an empty one of the other engine, in one
// transaction, and compares what arrived. The source is read as it is at one moment. No
// service may run on it until the end, and a file may not change: else nothing is kept.
func Copy(ctx context.Context, from Options, to string) ([]TableCopy, error) {
	from.Changed = recountChanged
	return engine.Copy(ctx, from, to)
}

// backedUp is the name under which operator_acts has the last backup.
const backedUp = "backup"

// BackedUp returns when the last backup of an embedded database was made; zero: none.
func (db *DB) BackedUp(ctx context.Context) (time.Time, error) {
	ms, err := value[int64](ctx, db.read(), `SELECT COALESCE(MAX(at), 0) FROM operator_acts WHERE name = ?`, backedUp)
	return instant(ms), err
}

// publicURL is the name under which operator_acts has the service's public URL.
const publicURL = "public_url"

// SetPublicURL records the public URL with which the service starts.
func (db *DB) SetPublicURL(ctx context.Context, url string) error {
	return db.exec(ctx, `INSERT INTO operator_acts (name, at, value) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value`, publicURL, millis(db.now()), url)
}

// PublicURL returns the public URL with which the service last started; empty: it never did.
func (db *DB) PublicURL(ctx context.Context) (string, error) {
	return value[string](ctx, db.read(), `SELECT COALESCE(MAX(value), '') FROM operator_acts WHERE name = ?`, publicURL)
}
