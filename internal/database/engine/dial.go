package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// deadAfter is how long a PostgreSQL server may acknowledge nothing before its
// connection is given up. A server whose machine lost its power says nothing;
// the system's own limits are many minutes, in which no other server is asked.
const deadAfter = 20 * time.Second

// newDialer returns the dialer for PostgreSQL.
func newDialer() *net.Dialer {
	return &net.Dialer{
		// While an answer is awaited, probes find out; while data is not
		// acknowledged there are no probes, and limitUnacknowledged counts.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter / 2, Interval: deadAfter / 4, Count: 2},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			return limitUnacknowledged(c, deadAfter)
		},
	}
}

// answerLimit is how long PostgreSQL may say nothing while a statement waits for it, as a process
// that was stopped or a proxy that passes nothing on does, although the system acknowledges what
// is sent. It is longer than wakes.quiet, for which the connection that listens hears nothing.
const answerLimit = 30 * time.Second

var errSilent = errors.New("PostgreSQL does not answer on a connection that is open")

// dialPostgres connects with a limit for each wait for the server.
func dialPostgres(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := newDialer().DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &limitedConn{Conn: c, limit: answerLimit}, nil
}

// limitedConn is a connection on which no Read and no Write takes longer than limit. A deadline
// that is set goes before it: pgx ends by one what a context cancels.
type limitedConn struct {
	net.Conn
	limit time.Duration
	mu    sync.Mutex
	fixed bool // a deadline is set
}

// SetDeadline implements net.Conn.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (c *limitedConn) Read(p []byte) (int, error) {
	c.begin(c.Conn.SetReadDeadline)
	n, err := c.Conn.Read(p)
	return n, c.end(err)
}

// Write implements net.Conn.
func (c *limitedConn) Write(p []byte) (int, error) {
	c.begin(c.Conn.SetWriteDeadline)
	n, err := c.Conn.Write(p)
	return n, c.end(err)
}

// begin sets the limit. A socket's deadline is in real time, also where a test moves the clock.
func (c *limitedConn) begin(set func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fixed {
		_ = set(time.Now().Add(c.limit)) //nolint:forbidigo // see above
	}
}

// end tells the limit from a deadline that was set.
func (c *limitedConn) end(err error) error {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed {
		return err
	}
	return errSilent
}
