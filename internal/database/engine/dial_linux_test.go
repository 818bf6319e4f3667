package engine_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
)

// A connection to PostgreSQL whose other end vanishes is given up in twenty
// seconds, whether it sends or awaits an answer.
func TestDialer_GivesUpSilentServers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	c, err := engine.NewDialer().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value int) {
		t.Helper()
		var failed error
		if err := raw.Control(func(fd uintptr) { value, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name) }); err != nil ||
			failed != nil {
			t.Fatal(err, failed)
		}
		return value
	}
	const tcpUserTimeout = 18
	unacknowledged := time.Duration(option(tcpUserTimeout)) * time.Millisecond
	silent := time.Duration(option(syscall.TCP_KEEPIDLE)+option(syscall.TCP_KEEPINTVL)*option(syscall.TCP_KEEPCNT)) * time.Second
	if unacknowledged != 20*time.Second || silent != 20*time.Second {
		t.Errorf("sending is given up after %s, waiting after %s; want 20 s", unacknowledged, silent)
	}
}
