package pgtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Pair is a primary and its synchronous standby, both empty and private to the
// test: a commit that the primary acknowledged is on the standby too.
type Pair struct {
	// URL names both, and leads to the one that takes writes.
	URL string
	tb  testing.TB
	process
}

// What Do does.
const (
	Stop    = "stop"    // the primary dies
	Promote = "promote" // the standby takes over, and commits alone
	Fence   = "fence"   // the former primary dies, which Stop has not done
	Rebuild = "rebuild" // the former primary becomes the synchronous standby
)

// NewPair starts a pair, which ends with the test. It needs PostgreSQL's
// programs on this machine, wherever the other tests' server is.
func NewPair(tb testing.TB) *Pair {
	tb.Helper()
	p, err := start(double)
	must(tb, err)
	tb.Cleanup(func() { _, _ = p.lifeline.Close(), p.stdout.Close() })
	return &Pair{URL: p.address, tb: tb, process: p}
}

// Do does one thing, and returns when it is done.
func (p *Pair) Do(what string) {
	p.tb.Helper()
	_ = p.stdout.SetReadDeadline(time.Now().Add(2 * patience))
	var output strings.Builder
	_, err := fmt.Fprintln(p.lifeline, what)
	for line := ""; err == nil && line != what+" done\n"; {
		line, err = p.answers.ReadString('\n')
		output.WriteString(line)
	}
	if err != nil {
		p.tb.Fatalf("cannot %s a PostgreSQL server: %v: %s", what, err, output.String())
	}
}
