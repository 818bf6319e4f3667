package engine_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
)

// A statement is in doubt if its answer was lost; what PostgreSQL refused, and
// what never left this process, it did not do.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		err  error
		want bool
	}{
		"refused":            {&pgconn.PgError{Code: "23503"}, false},
		"never left":         {fmt.Errorf("writing: %w", driver.ErrBadConn), false},
		"refused here":       {fmt.Errorf("begin: %w", fault.New(fault.Refused, "no")), false},
		"the answer is lost": {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), true},
		"no answer in time":  {context.DeadlineExceeded, true},
		"silence":            {fmt.Errorf("reading: %w", engine.ErrSilent), true},
	} {
		t.Run(text, func(t *testing.T) {
			if got := engine.Postgres().Doubtful(test.err); got != test.want {
				t.Errorf("%s: doubt %v, want %v", text, got, test.want)
			}
		})
	}
}
