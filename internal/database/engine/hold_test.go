package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/database/pgtest"
)

// What is written to the source while it is copied would be missing in the copy: a service
// that begins in that time, and a command that writes to a file, end the copy, which keeps nothing.
func TestCopy_HoldsItsSource(t *testing.T) {
	each(t, func(t *testing.T, from place) {
		source := from.open(t)
		for _, c := range []struct {
			engine, says string
			during       func() error
		}{
			{"sqlite", "the source was written to during the copy", func() error {
				return write(t.Context(), source, nil, `INSERT INTO leases (name, holder, expires_at) VALUES ('a', 'b', 1)`)
			}},
			{"sqlite", "another service has it open", func() error {
				db, err := engine.Open(t.Context(), engine.Options{URL: from.url, Now: now, Alone: true})
				if err == nil {
					err = errors.Join(errors.New("a second service began"), db.Close())
				}
				return err
			}},
			{"postgres", "a service works on the source", func() error { return source.Present(t.Context()) }},
		} {
			if c.engine != from.name {
				continue
			}
			to := onSQLite(t)
			if from.name == "sqlite" {
				to = place{"postgres", pgtest.DSN(t)}
			}
			_, err := engine.Copy(t.Context(), engine.Options{URL: from.url, Now: now, Changed: func(context.Context, engine.Tx) error {
				return c.during()
			}}, to.url)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want one that says %q", err, c.says)
			}
			if n := leases(t, to.open(t)); n != 0 {
				t.Errorf("%d rows were kept of a copy that failed: %s", n, c.says)
			}
		}
	})
}
