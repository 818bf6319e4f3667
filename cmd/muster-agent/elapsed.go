//go:build linux

package main

import (
	"syscall"
	"time"
)

// sinceStart returns the time since the machine's start, with the time that it slept, to
// the second.
func sinceStart() func() time.Duration {
	return func() time.Duration {
		var info syscall.Sysinfo_t
		_ = syscall.Sysinfo(&info) // it fails for a bad address alone
		return time.Duration(info.Uptime) * time.Second
	}
}
