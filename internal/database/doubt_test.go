package database_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database"
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
		"refused here":       {fmt.Errorf("begin: %w", access.ErrMoved), false},
		"the answer is lost": {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), true},
		"no answer in time":  {context.DeadlineExceeded, true},
	} {
		t.Run(text, func(t *testing.T) {
			if got := database.PostgresDoubts(test.err); got != test.want {
				t.Errorf("%s: doubt %v, want %v", text, got, test.want)
			}
		})
	}
}
