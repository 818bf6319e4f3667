// Package port gives tests ports for programs that cannot say which port the system
// chose for them. A port that was only looked for can be taken before the program
// listens on it: by a connection of another test, or by a listener on port 0.
package port

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// No system chooses a port of this range for a connection or for port 0, and the tests'
// PostgreSQL takes one above it.
const (
	first = 10000
	count = 10000
)

const attempts = 1000

// Reserve returns a TCP port of 127.0.0.1 on which no program listens, and that no other
// test gets before this one ends: it holds the UDP port of the same number as long.
func Reserve(tb testing.TB) int {
	tb.Helper()
	for range attempts {
		if n := first + rand.IntN(count); reserve(tb, n) {
			return n
		}
	}
	tb.Fatalf("none of %d ports from %d on is free", attempts, first)
	return 0
}

// Address returns "127.0.0.1:" and a port that it reserves.
func Address(tb testing.TB) string {
	tb.Helper()
	return "127.0.0.1:" + strconv.Itoa(Reserve(tb))
}

func reserve(tb testing.TB, n int) bool {
	address := "127.0.0.1:" + strconv.Itoa(n)
	claim, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	look, err := net.Listen("tcp", address)
	if err != nil {
		_ = claim.Close()
		return false
	}
	_ = look.Close()
	tb.Cleanup(func() { _ = claim.Close() })
	return true
}
