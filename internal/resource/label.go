package resource

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsLabel reports whether text may be the name that a person gives to a
// company or a key: 1 to limit printable characters without outer spaces.
func IsLabel(text string, limit int) bool {
	if text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > limit {
		return false
	}
	notPrintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return strings.IndexFunc(text, notPrintable) < 0 && strings.TrimSpace(text) == text
}
