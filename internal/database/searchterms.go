package database

import (
	"strings"
	"unicode"

	"github.com/musterhq/muster/internal/asset"
)

const (
	// maxTerms bounds an asset's terms, whose texts devices choose.
	maxTerms = 40
	// maxTermLength is how many letters of a word count.
	maxTermLength = 48
)

// terms collects what an asset is found by. A term is a word in lower case, or
// what follows punctuation inside one; "#" and a whole tag; or "@" and the
// management of an enrolled device. No word begins with these two signs.
type terms struct {
	seen map[string]bool
	text strings.Builder // as search_terms keeps it: a newline before and after each
}

func (t *terms) add(term string) {
	if term == "" || t.seen[term] || len(t.seen) == maxTerms {
		return
	}
	t.seen[term] = true
	t.text.WriteString(term + "\n")
}

func (t *terms) addWords(text string) {
	for _, word := range termWords(text) {
		for i := range word {
			if i == 0 || punctuated(word[:i]) && !punctuated(word[:i+1]) {
				t.add(clip(word[i:]))
			}
		}
	}
}

// punctuated reports whether text ends in an ASCII sign that parts words.
func punctuated(text string) bool {
	last := text[len(text)-1]
	return last < 0x80 && last != '\'' && !unicode.IsLetter(rune(last)) && !unicode.IsDigit(rune(last))
}

// termWords cuts text into words in lower case without leading punctuation.
func termWords(text string) []string {
	var all []string
	for _, word := range printable(text) {
		if word = strings.TrimLeftFunc(word, isSign); word != "" {
			all = append(all, word)
		}
	}
	return all
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r < 0x80 }

// printable cuts text at spaces and at everything that is not printed.
func printable(text string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.ToValidUTF8(text, "\uFFFD")), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// tagTerm is the term of a whole tag; empty if nothing of the tag can be seen.
func tagTerm(tag string) string {
	if tag = strings.Join(printable(tag), " "); tag != "" {
		return clip("#" + tag)
	}
	return ""
}

func managementTerm(m asset.Management) string { return "@" + strings.ToLower(string(m)) }

func clip(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxTermLength {
			return word[:i]
		}
	}
	return word
}

// searchTerms is what search_terms keeps of an asset. What distinguishes assets
// comes first, for the case that there is too much.
func searchTerms(identification string, specifications map[string]string, tags []string, device string, m asset.Management) string {
	t := &terms{seen: map[string]bool{}}
	t.text.WriteString("\n")
	if m != "" {
		t.add(managementTerm(m))
	}
	t.addWords(specifications["serialNumber"])
	t.addWords(device[strings.LastIndexByte(device, '/')+1:])
	t.addWords(identification)
	for _, tag := range tags {
		t.add(tagTerm(tag))
		t.addWords(tag)
	}
	for _, fact := range []string{"model", "manufacturer", "brand"} {
		t.addWords(specifications[fact])
	}
	return t.text.String()
}
