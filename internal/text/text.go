// Package text holds what several packages do to the texts that they write.
package text

import (
	"strconv"
	"strings"
	"time"
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

// Count is a number and its noun, such as 1 entry or 3 entries.
func Count[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + more
}

// Span shows a duration with days of 24 hours and without units that are zero: 30d, 1d12h,
// 90s as 1m30s. ParseDuration of the command line reads it.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	days, rest := d/day, d%day
	if days == 0 {
		return trimmed(rest)
	}
	text := strconv.FormatInt(int64(days), 10) + "d"
	if rest != 0 {
		text += trimmed(rest.Abs())
	}
	return text
}

func trimmed(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Cell keeps a spreadsheet that opens a CSV file from taking a text for a formula: it puts
// an apostrophe before what begins like one. Programs skip blanks, and East Asian ones know
// full-width signs. What follows a semicolon, a tab or a line break begins like
// a text of its own, because a program may separate cells there.
func Cell(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return separates(r) || strings.ContainsRune(formula, narrow(r)) }) {
		return s
	}
	var b strings.Builder
	for s != "" {
		end := len(s)
		if i := strings.IndexFunc(s, separates); i >= 0 {
			end = i + 1 // each of them is one byte long
		}
		if b.Len() == 0 && end == 1 && s[0] != ';' || formulaLike(s[:end]) {
			b.WriteByte('\'')
		}
		b.WriteString(s[:end])
		s = s[end:]
	}
	return b.String()
}

// formula is what a formula, or a call of another program, begins with.
const formula = "=+-@|%"

func separates(r rune) bool { return strings.ContainsRune(";\t\r\n", r) }

func formulaLike(s string) bool {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	first, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune(formula, narrow(first))
}

// narrow is the ASCII character of a full-width one; others stay.
func narrow(r rune) rune {
	if r >= '\uFF01' && r <= '\uFF5E' {
		return r - '\uFF01' + '!'
	}
	return r
}
