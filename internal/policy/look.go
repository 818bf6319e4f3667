package policy

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/musterhq/muster/internal/validate"
)

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
