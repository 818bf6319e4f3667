package cli

import (
	"context"
	"fmt"
	"io"
)

// Backup copies the embedded database while the service runs.
type Backup struct {
	Common
	To string `arg:"" placeholder:"FILE" help:"Where to put the copy; the file must not exist."`
}

// Run makes the copy.
func (c *Backup) Run(env *Env) error {
	return c.open(env, Reads, func(ctx context.Context, admin *Admin) (answer, error) {
		return answer{map[string]string{"path": c.To}, func(w io.Writer) {
			fmt.Fprintf(w, "Copied the database to %s.\nThe key file is not in it: keep a copy of that too, in another place.\n", c.To)
		}}, admin.Backup(ctx, c.To)
	})
}
