package port_test

import (
	"net"
	"testing"

	"github.com/musterhq/muster/test/port"
)

// No two tests get the same port at a time, and a program can listen on it.
func TestReserve_IsNotGivenTwice(t *testing.T) {
	given := map[int]bool{}
	for range 200 {
		n := port.Reserve(t)
		if given[n] {
			t.Fatalf("port %d was given twice", n)
		}
		given[n] = true
	}
	l, err := net.Listen("tcp", port.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
