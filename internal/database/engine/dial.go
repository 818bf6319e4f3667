package engine

import (
	"net"
	"strings"
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
