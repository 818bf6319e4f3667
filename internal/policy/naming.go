package policy

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/musterhq/muster/internal/validate"
)

// CleanName returns a display name as it is kept, in NFC and without outer
// spaces (U+0020 alone), and what is wrong with it: nothing if the text is empty. A name has 1
// to 50 characters that can be seen, and spaces between them.
func CleanName(text string) (clean, wrong string) {
	clean = norm.NFC.String(strings.Trim(text, " "))
	switch {
	case clean == "":
		return clean, "must not be blank"
	case !utf8.ValidString(clean):
		return clean, "must be valid UTF-8"
	case utf8.RuneCountInString(clean) > MaxNameLength:
		return clean, "must be at most 50 characters"
	case strings.ContainsFunc(clean, refused):
		return clean, "must not contain control, invisible, formatting, private-use or unassigned characters, or blanks other " +
			"than the space"
	case !strings.ContainsFunc(clean, validate.VisibleRune):
		return clean, "must contain a visible character"
	}
	return clean, ""
}

// refused reports characters that a name must not contain, because people cannot
// see them or tell them from others.
func refused(r rune) bool {
	if r >= 0x20 && r < 0x7f {
		return false
	}
	assigned := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	return !assigned || validate.Ignorable(r) || r == validate.BrailleBlank
}

// ShownName is a name as people and models see it. A name from before the rules
// of CleanName is shown with the characters that would be refused now escaped,
// so that two names which look alike can be distinguished.
func ShownName(name string) string {
	escape := refused
	if !strings.ContainsFunc(name, validate.VisibleRune) {
		escape = func(r rune) bool { return r != ' ' }
	}
	if !strings.ContainsFunc(name, escape) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case !escape(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// NameKey is what two names have in common that differ in case alone. It is
// kept with each policy; Look compares names more strictly.
func NameKey(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, strings.TrimSpace(text))
}

// SameName reports whether a person typed a name: case and outer spaces do not
// matter, anything else does.
func SameName(typed, name string) bool { return typedForm(typed) == typedForm(name) }

// Confirms is SameName for a name that must be typed: nothing confirms nothing.
func Confirms(typed, name string) bool {
	return strings.TrimSpace(typed) != "" && SameName(typed, name)
}

func typedForm(text string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(text))))
}

// OddName is a policy's name from before the rules of names, as it is kept.
type OddName struct {
	Company  string // its slug
	PolicyID string
	Name     string
	// Wrong says why the name would be refused now; empty: its characters are
	// allowed. LooksLike is the id of an older policy of the company whose name
	// people would take for this one; empty: none.
	Wrong     string
	LooksLike string
}

// OddNames returns those of names that would be refused now. The names of a
// company are in the order in which they were given.
func OddNames(names []OddName) []OddName {
	type seen struct{ company, form string }
	exact, folded := map[seen]string{}, map[seen]string{}
	var odd []OddName
	for _, n := range names {
		if ShownName(n.Name) != n.Name {
			_, n.Wrong = CleanName(n.Name)
		}
		look := LookOf(n.Name)
		byExact, byFolded := seen{n.Company, look.exact}, seen{n.Company, look.folded}
		n.LooksLike = cmp.Or(exact[byExact], folded[byFolded])
		if n.Wrong != "" || n.LooksLike != "" {
			odd = append(odd, n)
		}
		exact[byExact], folded[byFolded] = cmp.Or(exact[byExact], n.PolicyID), cmp.Or(folded[byFolded], n.PolicyID)
	}
	return odd
}

// Look is what a name looks like. Two names of a company must not have the same
// look: people would confuse them.
type Look struct{ exact, folded string }

// LookOf returns the look of a name: its skeleton (UTS 39, section 4) with the
// case that it has, and that of its case-folded form (NFKC_Casefold). Runs of
// spaces count as one, and characters that are not shown as none. One form does
// not suffice: "I" looks like "l" and "i" does not, and a folded name has no
// "I".
func LookOf(name string) Look {
	plain := norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case validate.Ignorable(r):
			return -1
		case r == validate.BrailleBlank:
			return ' '
		}
		return r
	}, name))
	plain = strings.Join(strings.Fields(plain), " ")
	fold := func(text string) string { return norm.NFKC.String(cases.Fold().String(text)) }
	return Look{exact: skeleton(plain), folded: skeleton(fold(skeleton(fold(plain))))}
}

// Like reports whether two looks are the same to a person.
func (l Look) Like(other Look) bool { return l.exact == other.exact || l.folded == other.folded }

// skeleton replaces each character by the one that it looks like.
func skeleton(text string) string {
	prototypes := readConfusables()
	var b strings.Builder
	for _, r := range norm.NFD.String(text) {
		if prototype, ok := prototypes[r]; ok {
			b.WriteString(prototype)
		} else {
			b.WriteRune(r)
		}
	}
	return norm.NFD.String(b.String())
}

// confusables is written by web/confusables.mjs: a prototype and the characters
// that look like it, in hexadecimal, on each line.
//
//go:embed confusables.txt
var confusables string

var readConfusables = sync.OnceValue(func() map[rune]string { //nolint:gochecknoglobals // reads an embedded file once
	prototypes := map[rune]string{}
	for line := range strings.Lines(confusables) {
		to, from, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		var prototype strings.Builder
		for code := range strings.SplitSeq(to, "+") {
			prototype.WriteRune(codePoint(code))
		}
		for code := range strings.SplitSeq(from, ",") {
			prototypes[codePoint(code)] = prototype.String()
		}
	}
	return prototypes
})

func codePoint(hexadecimal string) rune {
	code, err := strconv.ParseUint(hexadecimal, 16, 21)
	if err != nil {
		panic("policy: confusables.txt is damaged: " + err.Error())
	}
	return rune(code)
}
