// Package triggertest adds triggers to an embedded database, by which a test takes
// back what the service writes: a control that keeps its state there is gone, and
// no program of a release has a way to switch it off.
package triggertest

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// Add runs statements on a SQLite database that a service may have open.
func Add(ctx context.Context, url string, statements ...string) error {
	pool, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	for _, statement := range statements {
		_, failed := pool.ExecContext(ctx, statement)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, pool.Close())
}
