package ops_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/poll"
)

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
	gate := ops.NewGate(server.Listener.(*net.TCPListener), 2)
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

// Connections that bring no request do not keep others out.
func TestGate_ClosesConnectionsWithoutARequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	gate := ops.NewGate(server.Listener.(*net.TCPListener), 2)
	server.Listener, server.Config.ConnState = gate, gate.ConnState
	server.Start()
	t.Cleanup(server.Close)
	for range 6 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost")
	}
	client := &http.Client{Timeout: 20 * time.Second}
	answer, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

// A gate that waits for room ends with its listener.
func TestGate_Close(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := ops.NewGate(inner.(*net.TCPListener), 1)
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

// A gate that is left loses no request: neither of a connection that is not accepted
// yet, nor of one that has sent nothing yet.
func TestGate_Leave(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := ops.NewGate(inner.(*net.TCPListener), 100)
	var clients []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	server := &http.Server{ConnState: gate.ConnState,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
	left, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		gate.Leave(time.Minute)
		close(left)
	}()
	go func() { ended <- server.Serve(gate) }()
	poll.Until(t, "the gate is closed", func() error {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			return nil
		}
		return errors.Join(errors.New("it accepts"), c.Close())
	})
	select {
	case <-left:
		t.Error("it was left before the requests were sent")
	default:
	}
	for i, c := range clients {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != http.StatusNoContent {
			t.Errorf("client %d: %v, %v", i, answer, err)
		}
	}
	<-left
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server ended: %v", err)
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A connection that sends nothing does not keep the service running.
func TestGate_LeaveAtLast(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := ops.NewGate(inner.(*net.TCPListener), 1)
	gate.ConnState(nil, http.StateNew)
	gate.Leave(time.Millisecond)
	if c, err := gate.Accept(); err == nil {
		t.Error("a gate that was left accepted a connection:", c.RemoteAddr())
	}
}

// A gate that is left while clients go on connecting answers each that it let connect.
func TestGate_LeaveUnderLoad(t *testing.T) {
	t.Parallel()
	for range 20 {
		var config net.ListenConfig
		config.SetMultipathTCP(false)
		inner, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gate := ops.NewGate(inner.(*net.TCPListener), 1000)
		server := &http.Server{ConnState: gate.ConnState,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
		go func() { _ = server.Serve(gate) }()
		var clients sync.WaitGroup
		var answered atomic.Int64
		for range 8 {
			clients.Go(func() {
				for {
					c, err := net.DialTimeout("tcp", inner.Addr().String(), 500*time.Millisecond)
					if err != nil {
						return // a client that cannot connect asks another replica
					}
					fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
					if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
						t.Errorf("a request was lost: %v", err)
					}
					_ = c.Close()
					answered.Add(1)
				}
			})
		}
		poll.Until(t, "clients are answered", func() error {
			if answered.Load() < 100 {
				return errors.New("not yet")
			}
			return nil
		})
		gate.Leave(10 * time.Second)
		clients.Wait()
		_ = server.Close()
	}
}
