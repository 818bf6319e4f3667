package database

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// maxTermLength is how many letters of a word or a tag count.
const maxTermLength = 200

// terms collects what an asset is found by. A term is a word; "#" and a whole tag; or
// "@" and the management of a managed device. No word begins with these two signs.
type terms struct {
	seen map[string]bool
	text strings.Builder // as search_terms keeps it: a newline before and after each
}

func (t *terms) add(term string) {
	if term == "" || t.seen[term] {
		return
	}
	t.seen[term] = true
	t.text.WriteString(term + "\n")
}

// textWords cuts text into words: runs of letters and digits, as they are compared.
func textWords(text string) []string {
	words := asset.Words(text)
	for i, word := range words {
		words[i] = clip(word)
	}
	return words
}

// tagTerm is the term of a whole tag. Newlines, which part terms, become another sign
// that no tag of a person's has.
func tagTerm(tag string) string {
	return clip("#" + storable(strings.ReplaceAll(tag, "\n", "\x01")))
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

// Searchable is what an asset's row holds that it is found by. Texts are as they are
// stored.
type Searchable struct {
	Identification, Specifications, Tags, Custom string
	Status                                       asset.Status
	Management                                   asset.Management
	Reported                                     string // the status report
}

// searchedFacts and searchedData are the specifications and the custom data that a search
// looks at.
func searchedFacts() []string { return []string{"serialNumber", "imei", "model"} }
func searchedData() []string  { return []string{asset.UserKey, asset.UserEmailKey} }

// Findable is what the table of assets keeps of the row besides, to find it by.
type Findable struct {
	Terms     string // search_terms
	patch     string
	battery   float64
	compliant int
}

// Findable makes what the row is found by. It fails if a text is not in its stored form.
func (s Searchable) Findable() (Findable, error) {
	facts, wrongFacts := decodeMap(s.Specifications)
	custom, wrongCustom := decodeMap(s.Custom)
	tags, wrongTags := decodeList(s.Tags)
	r, wrongReport := readReport(s.Reported)
	if err := cmp.Or(wrongFacts, wrongCustom, wrongTags, wrongReport); err != nil {
		return Findable{}, err
	}
	t := &terms{seen: map[string]bool{}}
	t.text.WriteString("\n")
	if s.Status.Enrolled() {
		t.add(managementTerm(s.Management))
	}
	texts := append([]string{s.Identification}, tags...)
	for _, name := range searchedFacts() {
		texts = append(texts, facts[name])
	}
	for _, name := range searchedData() {
		texts = append(texts, custom[name])
	}
	for _, tag := range tags {
		t.add(tagTerm(tag))
	}
	for _, word := range textWords(strings.Join(texts, " ")) {
		t.add(word)
	}
	return Findable{Terms: t.text.String(), patch: patchDay(facts["securityPatchLevel"]), battery: r.battery(), compliant: r.compliant()},
		nil
}
