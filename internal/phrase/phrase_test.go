package phrase_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/phrase"
)

func TestSpan_DaysAndNoZeros(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{0: "0s", 720 * time.Hour: "30d", 36 * time.Hour: "1d12h",
		90 * time.Minute: "1h30m", time.Hour: "1h",
		10 * time.Minute: "10m", 90 * time.Second: "1m30s", 24*time.Hour + time.Second: "1d1s", 24*time.Hour + 10*time.Minute: "1d10m",
		20 * time.Second: "20s", -48 * time.Hour: "-2d", -36 * time.Hour: "-1d12h", 1500 * time.Millisecond: "1.5s",
		10 * time.Hour: "10h"} {
		if got := phrase.Span(in); got != want {
			t.Errorf("Span(%v) is %q, want %q", in, got, want)
		}
	}
}

func TestCount_OneAndMore(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 entries", 1: "1 entry", 2: "2 entries"} {
		if got := phrase.Count(n, "entry", "entries"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestSentence_KeepsAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "it ended": "It ended.", "ärger!": "Ärger!",
		"ada@example.com canceled it": "ada@example.com canceled it.", "write to ada@example.com": "Write to ada@example.com."} {
		if got := phrase.Sentence(in); got != want {
			t.Errorf("Sentence(%q) is %q, want %q", in, got, want)
		}
	}
}
