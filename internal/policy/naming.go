package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanName returns a display name as it is kept, without outer spaces, and
// what is wrong with it: nothing if the text is empty. A name has 1 to 50
// characters and no control characters (contract 4.3).
func CleanName(text string) (clean, wrong string) {
	clean = strings.TrimSpace(text)
	switch {
	case clean == "":
		return clean, "must not be blank"
	case !utf8.ValidString(clean):
		return clean, "must be valid UTF-8"
	case utf8.RuneCountInString(clean) > MaxNameLength:
		return clean, "must be at most 50 characters"
	case strings.ContainsFunc(clean, unicode.IsControl):
		return clean, "must not hold control characters"
	}
	return clean, ""
}

// SameName reports whether two names count as the same: outer spaces and case
// do not matter (decisions "Policy changes").
func SameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}
