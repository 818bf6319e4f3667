package cli

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/config"
)

// Maintenance changes databases as a whole. It is nothing that an Admin can do: a
// Admin works on one database at this program's schema.
type Maintenance interface {
	// Migrate brings a database to this program's schema, recounts what is kept
	// in counts, and returns both numbers and how many counts were wrong.
	Migrate(env *Env, store config.Store) (Migrated, error)
	// Restore puts a backup in the place of the embedded database.
	Restore(env *Env, settings config.Service, file string) (Restored, error)
	// Copy copies a whole database into an empty one.
	Copy(env *Env, from, to config.Store) (Copied, error)
}

// Migrated is what a migration did.
type Migrated struct {
	From      int64 `json:"from"` // 0: the database was empty
	To        int64 `json:"to"`
	Corrected int64 `json:"corrected"` // counts
}

// Migrate changes the schema without serving.
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
