package ops_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/service/ops"
)

func TestOpenFiles_Share(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ limit, cpus, streams, requests int }{
		{200, 2, 72, 72}, {1024, 2, 484, 484}, {20_000, 2, 19_432, 512}, {1 << 20, 64, 100_000, 948_272}, {10, 2, 1, 1},
	} {
		want := ops.Shares{OpenFiles: test.limit, Streams: test.streams, Requests: test.requests}
		if got := ops.ShareFiles(test.limit, test.cpus); got != want {
			t.Errorf("%d CPUs: %+v, want %+v", test.cpus, got, want)
		}
	}
}

// At its limit the gate gives the place of the connection that was idle the
// longest to a new one, and keeps those that are at work.
func TestGate_ClosesIdleConnections(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	gate := ops.NewGate(server.Listener, 2)
	server.Listener, server.Config.ConnState = gate, gate.ConnState
	server.Start()
	t.Cleanup(server.Close)
	connect := func() net.Conn {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn) error {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && answer.StatusCode != http.StatusNoContent {
			err = fmt.Errorf("answered %d", answer.StatusCode)
		}
		return err
	}
	busy, idle := connect(), connect()
	fmt.Fprint(busy, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1")
	if err := ask(idle); err != nil {
		t.Fatal(err)
	}
	if err := ask(connect()); err != nil {
		t.Fatalf("a third connection: %v", err)
	}
	if err := ask(idle); err == nil {
		t.Error("the idle connection was kept beyond the limit")
	}
	fmt.Fprint(busy, "2")
	if answer, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || answer.StatusCode != http.StatusNoContent {
		t.Errorf("the connection at work: %v, %v", answer, err)
	}
}

// A gate that waits for room ends with its listener.
func TestGate_Close(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := ops.NewGate(inner, 1)
	gate.ConnState(nil, http.StateNew)
	ended := make(chan error, 1)
	go func() {
		_, err := gate.Accept()
		ended <- err
	}()
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a closed gate accepted a connection")
	}
}
