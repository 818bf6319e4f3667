package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/config"
)

// Restored is what a restore did.
type Restored struct {
	Path   string `json:"path"`            // of the database
	Aside  string `json:"aside,omitempty"` // where the old one is; empty: there was none
	Schema int64  `json:"schema"`          // of the backup
	Own    int64  `json:"-"`               // this program's
}

// Restore puts a backup in the place of the embedded database.
type Restore struct {
	Common
	File           string `arg:"" placeholder:"FILE" help:"A file that muster backup made."`
	KeyFile        string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's keys, which must be those of the backup; by default beside the SQLite file."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Restore although the key file lacks keys that the backup names."`
}

// Run restores.
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
