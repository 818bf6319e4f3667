package validate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cell keeps a spreadsheet that opens a CSV file from taking a text for a formula: it puts
// an apostrophe before what begins like one. Programs skip blanks, and East Asian ones know
// full-width signs. What follows a semicolon, a tab or a line break begins like
// a text of its own, because a program may separate cells there.
func Cell(s string) string {
	return pieces(s, func(piece string, first bool) string {
		if first && len(piece) == 1 && piece != ";" || formulaLike(piece) {
			return "'" + piece
		}
		return piece
	})
}

// Uncell takes away the apostrophes with which Cell keeps a text from being a formula. Others stay.
func Uncell(s string) string {
	return pieces(s, func(piece string, _ bool) string {
		if text, ok := strings.CutPrefix(piece, "'"); ok && formulaLike(text) {
			return text
		}
		return piece
	})
}

// pieces changes the pieces of a text that a program may take for cells. Each has its end.
func pieces(s string, change func(piece string, first bool) string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return separates(r) || strings.ContainsRune(formula, narrow(r)) }) {
		return s
	}
	var b strings.Builder
	for s != "" {
		end := len(s)
		if i := strings.IndexFunc(s, separates); i >= 0 {
			end = i + 1 // each of them is one byte long
		}
		b.WriteString(change(s[:end], b.Len() == 0))
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
