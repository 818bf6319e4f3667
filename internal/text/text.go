// Package text holds what several packages do to the texts that they write.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// UpperFirst writes the first letter of ASCII text as a capital.
func UpperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Sentence makes a phrase a sentence: with a capital, and a stop at its end.
func Sentence(phrase string) string {
	first, size := utf8.DecodeRuneInString(phrase)
	if size == 0 {
		return ""
	}
	phrase = string(unicode.ToUpper(first)) + phrase[size:]
	if !strings.ContainsRune(".!?", rune(phrase[len(phrase)-1])) {
		phrase += "."
	}
	return phrase
}

// OnOff is a switch in a word.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Plural returns one for the number 1, else more.
func Plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Cell keeps a spreadsheet that opens a CSV file from taking a text for a formula.
func Cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n|%", rune(s[0])) {
		return "'" + s
	}
	return s
}
