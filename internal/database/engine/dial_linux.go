package engine

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall lacks.
const tcpUserTimeout = 18

// limitUnacknowledged ends a connection whose data stays unacknowledged for long.
func limitUnacknowledged(c syscall.RawConn, after time.Duration) error {
	var failed error
	if err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(after.Milliseconds())) // a file's number
	}); err != nil {
		return err
	}
	return failed
}
