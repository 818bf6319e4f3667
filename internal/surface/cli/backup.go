package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/phrase"
)

// Backup copies the embedded database while the service runs.
type Backup struct {
	Common
	To string `arg:"" placeholder:"FILE" help:"Where to put the copy; the file must not exist."`
}

// Run makes the copy. The key file is not part of it.
func (c *Backup) Run(env *Env) error {
	return c.open(env, Reads, func(ctx context.Context, admin *Admin) (answer, error) {
		return answerf(map[string]string{"path": c.To},
				"Copied the database to %s.\nThe key file is not in it: keep a copy of that too, in another place.\n", c.To),
			admin.Backup(ctx, c.To)
	})
}

// Restored is the result of a restore.
type Restored struct {
	Path   string `json:"path"`            // of the database
	Aside  string `json:"aside,omitempty"` // where the old one is; empty: there was none
	Schema int64  `json:"schema"`          // of the backup
	Own    int64  `json:"-"`               // this program's schema
}

// Restore puts a backup in the place of the embedded database.
type Restore struct {
	Common
	File           string `arg:"" placeholder:"FILE" help:"A file that muster backup made."`
	KeyFile        string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's keys, which must be those of the backup; by default beside the SQLite file."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Restore although the key file lacks keys that the backup names."`
}

// Run restores the backup. It refuses a PostgreSQL database.
func (c *Restore) Run(env *Env) error {
	if err := c.Store.Check(); err != nil {
		return err
	}
	if _, embedded := c.SQLitePath(); !embedded {
		return errors.New("muster restores its embedded database only: use pg_restore or psql for PostgreSQL")
	}
	settings := config.Service{Store: c.Store, KeyFile: c.KeyFile, AcceptLostKeys: c.AcceptLostKeys}.WithDefaults()
	done, err := env.Maintenance.Restore(env, settings, c.File)
	if err != nil {
		return err
	}
	return Print(env.Out, c.Output, done, func(w io.Writer) {
		fmt.Fprintf(w, "Restored %s to %s.\n", c.File, done.Path)
		if done.Aside != "" {
			fmt.Fprintf(w, "The database that was there is kept as %s; remove it when you no longer need it.\n", done.Aside)
		}
		if done.Schema < done.Own {
			fmt.Fprintf(w, "The backup is at schema %d: `muster serve` or `muster migrate` brings it to %d.\n", done.Schema, done.Own)
		}
	})
}

// Copied is the result of a copy.
type Copied struct {
	Rows   int64         `json:"rows"`
	Tables []CopiedTable `json:"tables"`
}

// CopiedTable is one table, whose rows and checksum are the same on both sides.
type CopiedTable struct {
	Name     string `json:"name"`
	Rows     int64  `json:"rows"`
	Checksum string `json:"checksum"` // SHA-256 of all rows in order, hexadecimal
}

// Copy copies a whole database into an empty one of the other engine. The source stays.
type Copy struct {
	From   string `name:"from" required:"" placeholder:"DATABASE" help:"The database to copy: sqlite:PATH or a postgres:// URL. No service may run on it. Give a password in PGPASSFILE or PGPASSWORD: other users can see flags."`
	To     string `name:"to" required:"" placeholder:"DATABASE" help:"The database to copy into, which must be empty. Give a password in PGPASSFILE or PGPASSWORD."`
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

// Validate returns an error unless From and To are addresses of databases.
func (c *Copy) Validate() error {
	if (config.Store{Database: c.From}).Check() != nil || (config.Store{Database: c.To}).Check() != nil {
		return errors.New("--from and --to must each be sqlite:PATH or a postgres:// URL")
	}
	return nil
}

// Run copies, and prints the rows and the beginning of the checksum of each table.
func (c *Copy) Run(env *Env) error {
	done, err := env.Maintenance.Copy(env, config.Store{Database: c.From}, config.Store{Database: c.To})
	if err != nil {
		return err
	}
	return Print(env.Out, c.Output, done, func(w io.Writer) {
		row(w, "TABLE", "ROWS", "SHA-256")
		for _, t := range done.Tables {
			row(w, t.Name, strconv.FormatInt(t.Rows, 10), t.Checksum[:16])
		}
		fmt.Fprintf(w, "Copied %s; counts and checksums are the same on both sides.\nGive the service the same key file, and set "+
			"MUSTER_DATABASE to the copy.\n", phrase.Count(done.Rows, "row", "rows"))
	})
}

// Maintenance changes databases as a whole. An Admin cannot: it works on one database that has this program's schema.
// Each method fails if a database or a file cannot be opened, read or written, or must not be used with this program.
type Maintenance interface {
	// Migrate brings a database to this program's schema and corrects the counts that are stored. It returns the schema
	// before and after, and how many counts were wrong.
	Migrate(env *Env, store config.Store) (Migrated, error)
	// Restore puts a backup in the place of the embedded database.
	Restore(env *Env, settings config.Service, file string) (Restored, error)
	// Copy copies a whole database into an empty one.
	Copy(env *Env, from, to config.Store) (Copied, error)
}

// Migrated is the result of a migration.
type Migrated struct {
	From      int64 `json:"from"`      // the schema before; 0: the database was empty
	To        int64 `json:"to"`        // the schema now
	Corrected int64 `json:"corrected"` // stored counts that were wrong
}

// Migrate brings the database to this program's schema, without starting the service.
type Migrate struct{ Common }

// Run brings the database to this program's schema.
func (c *Migrate) Run(env *Env) error {
	if err := c.Store.Check(); err != nil {
		return err
	}
	done, err := env.Maintenance.Migrate(env, c.Store)
	if err != nil {
		return err
	}
	return Print(env.Out, c.Output, done, func(w io.Writer) {
		switch done.From {
		case done.To:
			fmt.Fprintf(w, "The database is at schema %d already.\n", done.To)
		case 0:
			fmt.Fprintf(w, "Set up the empty database at schema %d.\n", done.To)
		default:
			fmt.Fprintf(w, "Changed the database from schema %d to %d.\n", done.From, done.To)
		}
		if done.Corrected > 0 {
			fmt.Fprintf(w, "Corrected %d kept counts.\n", done.Corrected)
		}
	})
}
