package text_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/text"
)

func TestCell_Formulas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a=1": "a=1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\ta": "'\ta", "\ra": "'\ra",
		"\na": "'\na", "|a": "'|a", "%a": "'%a", "ä": "ä", "'a": "'a",
		"\uff1d1": "'\uff1d1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff20a": "'\uff20a", " =1": "' =1", "\u00a0=1": "'\u00a0=1",
		"\u3000\u200b\ufeff@a": "'\u3000\u200b\ufeff@a", "kiosk;=1": "kiosk;'=1", "a; -1;b": "a;' -1;b", "a\n\uff0b1": "a\n'\uff0b1",
		"a\t=1": "a\t'=1", "\t=1": "'\t'=1", ";=1": ";'=1", "a=1;b": "a=1;b", "front-desk": "front-desk", "50 %": "50 %"} {
		t.Run(in, func(t *testing.T) {
			if got := text.Cell(in); got != want {
				t.Errorf("Cell(%q) is %q, want %q", in, got, want)
			}
		})
	}
}

func TestSpan_DaysAndNoZeros(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{0: "0s", 720 * time.Hour: "30d", 36 * time.Hour: "1d12h", 90 * time.Minute: "1h30m", time.Hour: "1h",
		10 * time.Minute: "10m", 90 * time.Second: "1m30s", 24*time.Hour + time.Second: "1d1s", 24*time.Hour + 10*time.Minute: "1d10m",
		20 * time.Second: "20s", -48 * time.Hour: "-2d", -36 * time.Hour: "-1d12h", 1500 * time.Millisecond: "1.5s", 10 * time.Hour: "10h"} {
		if got := text.Span(in); got != want {
			t.Errorf("Span(%v) is %q, want %q", in, got, want)
		}
	}
}

func TestCount_OneAndMore(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 entries", 1: "1 entry", 2: "2 entries"} {
		if got := text.Count(n, "entry", "entries"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}
