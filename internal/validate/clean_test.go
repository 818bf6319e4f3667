package validate_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/validate"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"plain":                         "plain",
		"  outer \t\n inner  ":          "outer inner",
		"a\x00b\x1b[31mc":               "ab[31mc",
		"right\u202eto\u2066left":       "righttoleft",
		"broken \xff\xfe bytes":         "broken \ufffd\ufffd by",
		"naïve 日本 🙂":                    "naïve 日本 🙂",
		strings.Repeat("x", 20):         strings.Repeat("x", 12),
		"12345678901 2":                 "12345678901",
		strings.Repeat("\u00e4", 15):    strings.Repeat("\u00e4", 12),
		"\u200b\u200bzero\u200bwidth":   "zerowidth",
		"line\u2028separator\u0085next": "line separat",
		"filled\u3164and\ufe0fvaried":   "filledandvar",
	} {
		t.Run(text, func(t *testing.T) {
			if got := validate.Clean(text, 12); got != want {
				t.Errorf("Clean(%q) = %q, want %q", text, got, want)
			}
		})
	}
}

func TestClean_IsBoundedPrintableAndStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		got := validate.Clean(text, limit)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > limit {
			t.Fatalf("Clean(%q, %d) = %q", text, limit, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("unprintable at %d of %q", i, got)
		}
		if strings.TrimSpace(got) != got || validate.Clean(got, limit) != got {
			t.Fatalf("%q is not stable", got)
		}
	})
}
