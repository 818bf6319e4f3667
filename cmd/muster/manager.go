package main

import (
	"os"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/service/ops"
)

// manager is the service manager that started this very process (sd_notify(3)). Its
// variables are removed, so that no other process speaks for this one.
func manager() ops.Manager {
	m := ops.Manager{Socket: os.Getenv("NOTIFY_SOCKET")}
	microseconds, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && m.Socket != "" && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.Watchdog = max(0, time.Duration(microseconds)*time.Microsecond)
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name) // fails only for malformed names
	}
	return m
}
