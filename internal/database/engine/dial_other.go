//go:build !linux

package engine

import (
	"syscall"
	"time"
)

// limitUnacknowledged leaves the limit to the system.
func limitUnacknowledged(syscall.RawConn, time.Duration) error { return nil }
