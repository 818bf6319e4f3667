//go:build linux

package main

import (
	"syscall"
	"time"
)

// sinceStart returns a clock for agent.Options.Elapsed: the time since the machine started, in whole seconds. It includes
// the time in which the machine slept.
func sinceStart() func() time.Duration {
	return func() time.Duration {
		var info syscall.Sysinfo_t
		_ = syscall.Sysinfo(&info) // fails only for a bad address, which &info is not
		return time.Duration(info.Uptime) * time.Second
	}
}
