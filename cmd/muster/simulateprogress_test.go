package main

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fleetsim"
)

// shownProgress plays a run of twelve seconds.
func shownProgress(terminal bool) string {
	var out strings.Builder
	l := &progressLine{out: &out, terminal: terminal}
	l.say("Enrolling agents …")
	for n := range 24 {
		at := time.Duration(n+1) * time.Second / 2
		l.show(fleetsim.Progress{Doing: "Enrolling agents", Done: int64(10 * (n + 1)), Total: 240, Rate: 20, Since: at})
	}
	l.say("Sending commands …")
	l.end()
	return out.String()
}

// Without a terminal, progress is a line every five seconds.
func TestProgress_LineEverySeconds(t *testing.T) {
	t.Parallel()
	want := `Enrolling agents …
Enrolling agents: 100 of 240 (41 %), 20 a second, 5 s
Enrolling agents: 200 of 240 (83 %), 20 a second, 10 s
Sending commands …
`
	if got := shownProgress(false); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// On a terminal, one line is renewed, and makes room for what stays.
func TestProgress_RenewedOnATerminal(t *testing.T) {
	t.Parallel()
	got := shownProgress(true)
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("%d lines, want the two that stay: %q", n, got)
	}
	if want := clearLine + "Enrolling agents: 240 of 240 (100 %), 20 a second, 12 s" + clearLine +
		"Sending commands …\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}
