package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// unansweredFor is how long an attempt to connect that ended for its time counts for others.
	unansweredFor = time.Second
	// fullFor is how long no connection is added after the server refused one for lack of room.
	fullFor = time.Minute
)

// connector connects to PostgreSQL. Of the statements that wait for a connection, database/sql
// serves one after another: if each attempt took connectLimit, the last would wait for minutes.
// So that an attempt took too long is said at once to those who waited for the same.
type connector struct {
	driver.Connector
	unanswered atomic.Pointer[error]
	logger     *slog.Logger
	pool       *sql.DB
	opened     atomic.Int64 // connections that are open

	mu         sync.Mutex
	connecting int  // attempts under way
	full       bool // the pool gets no more connections than it has
}

// open is the pool of the connector.
func (c *connector) open() *sql.DB {
	c.pool = sql.OpenDB(c)
	c.allow(maxConnections)
	return c.pool
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if failed := c.unanswered.Load(); failed != nil {
		return nil, *failed
	}
	c.mu.Lock()
	c.connecting++
	c.mu.Unlock()
	made, err := c.Connector.Connect(ctx)
	if pgconn.Timeout(err) && ctx.Err() == nil {
		c.unanswered.Store(&err)
		time.AfterFunc(unansweredFor, func() { c.unanswered.CompareAndSwap(&err, nil) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connecting--
	if err != nil {
		return nil, c.refused(err)
	}
	c.opened.Add(1)
	if c.full {
		c.allow(int(c.opened.Load()) + c.connecting)
	}
	return connection{made.(*stdlib.Conn), &c.opened}, nil
}

// refused is the error of an attempt that failed. If the server has no room, and there are other
// connections, the pool is full for now. c.mu is held.
func (c *connector) refused(err error) error {
	opened := int(c.opened.Load())
	room := opened + c.connecting // fewer would close a connection whose place the server does not have free at once
	if refused, is := errors.AsType[*pgconn.PgError](err); !is || refused.Code != "53300" || room == 0 {
		return err
	}
	if !c.full {
		c.full = true
		c.logger.Warn("PostgreSQL has no room for another connection; working with those that are open",
			slog.Int("connections", opened), slog.Any("error", err))
		time.AfterFunc(fullFor, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.full = false
			c.allow(maxConnections)
		})
	}
	c.allow(room)
	return noRoom{err}
}

// allow says how many connections the pool may have. It keeps all of them open.
func (c *connector) allow(most int) {
	c.pool.SetMaxOpenConns(most)
	c.pool.SetMaxIdleConns(most)
}

// connection counts itself as long as it is open.
type connection struct {
	*stdlib.Conn
	opened *atomic.Int64
}

// Close implements driver.Conn. database/sql calls it once.
func (c connection) Close() error {
	c.opened.Add(-1)
	return c.Conn.Close()
}

// noRoom is a refusal after which database/sql asks its pool again, which then has as many connections
// as it may: the statement waits for one of them.
type noRoom struct{ error }

// Is makes it a driver.ErrBadConn.
func (noRoom) Is(target error) bool { return target == driver.ErrBadConn }

// Unwrap returns what PostgreSQL said.
func (e noRoom) Unwrap() error { return e.error }
