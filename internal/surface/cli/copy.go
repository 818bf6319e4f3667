package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/musterhq/muster/internal/config"
)

// Copied is what a copy did, table by table.
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

// Copy moves a whole database to the other engine.
type Copy struct {
	From   string `name:"from" required:"" placeholder:"DATABASE" help:"The database to copy: sqlite:PATH or a postgres:// URL. No service may run on it."`
	To     string `name:"to" required:"" placeholder:"DATABASE" help:"The database to copy into, which must be empty."`
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

// Run copies.
func (c *Copy) Run(env *Env) error {
	from, to := config.Store{Database: c.From}, config.Store{Database: c.To}
	if from.Check() != nil || to.Check() != nil {
		return errors.New("--from and --to must each be sqlite:PATH or a postgres:// URL")
	}
	done, err := env.Maintenance.Copy(env, from, to)
	if err != nil {
		return err
	}
	return Print(env.Out, c.Output, done, func(w io.Writer) {
		row(w, "TABLE", "ROWS", "SHA-256")
		for _, t := range done.Tables {
			row(w, t.Name, strconv.FormatInt(t.Rows, 10), t.Checksum[:16])
		}
		fmt.Fprintf(w, "Copied %d rows; counts and checksums are the same on both sides.\nGive the service the same key file, and set MUSTER_DATABASE to the copy.\n", done.Rows)
	})
}
