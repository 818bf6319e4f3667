package engine_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
)

// A wait for a server that says nothing ends; a deadline that is set goes before, in both
// directions.
func TestLimitedConn(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	short, long := engine.LimitedConn(near, time.Millisecond), engine.LimitedConn(near, time.Hour)
	if _, err := short.Read(make([]byte, 1)); !errors.Is(err, engine.ErrSilent) {
		t.Errorf("a read ended with %v", err)
	}
	if _, err := short.Write(make([]byte, 1)); !errors.Is(err, engine.ErrSilent) {
		t.Errorf("a write ended with %v", err)
	}
	if err := long.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := long.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read past its deadline ended with %v", err)
	}
	if err := long.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = far.Write([]byte("a")) }()
	if _, err := long.Read(make([]byte, 1)); err != nil {
		t.Errorf("a read without a deadline: %v", err)
	}
}
