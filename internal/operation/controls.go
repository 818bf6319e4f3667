package operation

import (
	"strings"
	"unicode"

	"github.com/musterhq/muster/internal/validate"
)

// controls says which control characters (Unicode's class Cc) a text may hold.
type controls int

const (
	anyControls controls = iota
	noControls           // rule "line"
	lineBreaks           // rule "lines": line feed and carriage return alone
)

// in reports whether the text has a control character that it must not have.
func (c controls) in(text string) bool {
	return c != anyControls && strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && (c != lineBreaks || r != '\n' && r != '\r')
	})
}

func (c controls) words() string {
	if c == lineBreaks {
		return "control characters other than line breaks"
	}
	return "control characters"
}

// class is the refused characters as the inside of a regular expression's class.
func (c controls) class() string {
	switch c {
	case noControls:
		return `\x00-\x1f\x7f-\x9f`
	case lineBreaks:
		return `\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f`
	default:
		return ""
	}
}

// pattern says in one regular expression (ECMA 262, as JSON Schema has it) which
// characters a text may hold, and where; empty: any.
func (r *rule) pattern() string {
	refused := r.controls.class()
	ink, any := `[^\s`+refused+`]`, `[^`+refused+`]`
	if refused == "" {
		ink, any = `\S`, `[\s\S]`
	}
	switch {
	case r.pkg:
		return validate.PackagePattern
	case r.trimmed:
		return `^(` + ink + `(` + any + `*` + ink + `)?)?$`
	case r.notblank && refused == "":
		return ink
	case r.notblank:
		return `^` + any + `*` + ink + any + `*$`
	case refused != "":
		return `^` + any + `*$`
	}
	return ""
}
