package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The service tells systemd that it serves, that it lives, and that it ends.
func TestServe_TellsTheServiceManager(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "muster-notify") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	next := func(want string, others ...string) {
		t.Helper()
		buffer := make([]byte, 100)
		for {
			_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := socket.Read(buffer)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if got := string(buffer[:n]); got == want {
				return
			} else if len(others) == 0 || got != others[0] {
				t.Fatalf("the service said %q, want %q", got, want)
			}
		}
	}
	p := processes{t: t, dir: t.TempDir(), env: []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=300000"}}
	service := p.serve()
	const alive = "WATCHDOG=1"
	next("READY=1", alive)
	next(alive)
	next(alive)
	service.end()
	next("STOPPING=1", alive)
}
