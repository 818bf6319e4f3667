// Package validate holds the rules about single values that the contract names
// in words: what a valid e-mail address is, what a package name looks like
// (contract 4.2). It knows nothing of arguments or of who gives them.
package validate

import (
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxLocalPart = 64  // bytes, RFC 5321 4.5.3.1.1
	maxDomain    = 255 // bytes, RFC 5321 4.5.3.1.2
)

var domainLabel = regexp.MustCompile(`^[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$`)

// Email reports whether s is one bare e-mail address: no display name, no
// quoting that changes it, no control characters, none that are not shown, a domain of well-formed labels and no IP literal.
func Email(s string) bool {
	address, err := mail.ParseAddress(s)
	if err != nil || address.Address != s || address.Name != "" || strings.ContainsFunc(s, unicode.IsControl) ||
		strings.ContainsFunc(s, Ignorable) {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	local, domain := s[:at], s[at+1:]
	if len(local) > maxLocalPart || len(domain) > maxDomain {
		return false
	}
	for label := range strings.SplitSeq(domain, ".") {
		if !domainLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// MaxPackage is how long a package name may be, in characters. Android's own
// limit is 223.
const MaxPackage = 255

// PackagePattern is the shape of an Android application id: at least two
// segments, each beginning with a letter.
const PackagePattern = `^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`

var packageShape = regexp.MustCompile(PackagePattern)

// Package reports whether s is a package name in reverse-domain shape.
func Package(s string) bool {
	return len(s) <= MaxPackage && packageShape.MatchString(s)
}

// Blank reports whether s is empty or holds nothing but white space and characters that are not shown.
func Blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !Ignorable(r) && r != BrailleBlank })
}

// Visible reports whether people see a text as it is: it has a character that is shown, and none
// that changes the direction of others.
func Visible(s string) bool {
	turns := func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }
	return strings.ContainsFunc(s, VisibleRune) && !strings.ContainsFunc(s, turns)
}

// VisibleRune reports whether a character is shown.
func VisibleRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !Ignorable(r) && r != BrailleBlank
}

// BrailleBlank is a letter of Braille without dots.
const BrailleBlank = '\u2800'

// Ignorable reports characters that are not shown (Default_Ignorable_Code_Point).
func Ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// shown reports whether a cleaned line may have a character: one that people see, or U+0020.
func shown(r rune) bool { return unicode.IsPrint(r) && !Ignorable(r) }

// CleanLines makes text of many lines that a device supplied fit to be kept and shown:
// valid UTF-8 without control characters and others that are not shown, but for the ends of
// lines. The result is not longer than the text, in bytes.
func CleanLines(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r == utf8.RuneError:
			return '?'
		case !shown(r):
			return -1
		}
		return r
	}, text)
}

// Clean makes text that a device or a vendor supplied fit to be kept and
// shown: valid UTF-8, white space as single spaces, no control characters and no others that
// are not shown or turn the direction of text, no outer spaces, at most limit characters.
func Clean(text string, limit int) string {
	var out strings.Builder
	kept, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if !shown(r) { // U+FFFD for broken bytes is
			continue
		}
		if space && kept > 0 {
			if kept+1 >= limit {
				break
			}
			out.WriteByte(' ')
			kept++
		}
		if kept >= limit {
			break
		}
		space = false
		out.WriteRune(r)
		kept++
	}
	return out.String()
}

// timeShape is that of RFC 3339 in capitals. time.Parse takes more, such as hours of one digit.
var timeShape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// Time reads a time of RFC 3339, whose letters may be small (5.6). It knows no leap seconds.
func Time(s string) (at time.Time, ok bool) {
	s = strings.ToUpper(s)
	at, err := time.Parse(time.RFC3339, s)
	return at, err == nil && timeShape.MatchString(s)
}
