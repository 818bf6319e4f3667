package adbtest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// listen serves connections on a free port of this machine until the test ends,
// and returns its address.
func listen(tb testing.TB, serve func(ctx context.Context, conn net.Conn)) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer stop()
				defer conn.Close()
				serve(ctx, conn)
			})
		}
	})
	tb.Cleanup(func() {
		cancel()
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}
