//go:build !linux

package database

import (
	"syscall"
	"time"
)

// limitUnacknowledged leaves the limit to the system.
func limitUnacknowledged(syscall.RawConn, time.Duration) error { return nil }
