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

// NameKey is what names have in common that count as the same: outer spaces and
// case do not matter (decisions "Policy changes"). Two names have one key
// exactly if strings.EqualFold says that they are equal, trimmed.
func NameKey(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, strings.TrimSpace(text))
}

// SameName reports whether two names count as the same.
func SameName(a, b string) bool { return NameKey(a) == NameKey(b) }
