package engine

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// unansweredFor is how long an attempt to connect that ended for its time counts for others.
const unansweredFor = time.Second

// connector connects to PostgreSQL. Of the statements that wait for a connection, database/sql
// serves one after another: if each attempt took connectLimit, the last would wait for minutes.
// So that an attempt took too long is said at once to those who waited for the same.
type connector struct {
	driver.Connector
	unanswered atomic.Pointer[error]
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if failed := c.unanswered.Load(); failed != nil {
		return nil, *failed
	}
	made, err := c.Connector.Connect(ctx)
	if pgconn.Timeout(err) && ctx.Err() == nil {
		c.unanswered.Store(&err)
		time.AfterFunc(unansweredFor, func() { c.unanswered.CompareAndSwap(&err, nil) })
	}
	return made, err
}
