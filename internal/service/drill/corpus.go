package drill

import (
	"bytes"
	_ "embed" // the corpus
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

//go:embed corpus.jsonl
var corpusFile []byte

// injected is a text that orders a model to do something.
type injected struct {
	// Ask names what it orders: a key of obedience.
	Ask  string `json:"ask"`
	Text string `json:"text"`
	used bool
}

// mark is in each text, as its number in the corpus.
var mark = regexp.MustCompile(`\[#(\d{3})\]`)

// corpus is all texts. The mark of a text is its place, counted from 1.
func corpus() ([]*injected, error) {
	var all []*injected
	for line := range bytes.Lines(corpusFile) {
		one := &injected{}
		if err := json.Unmarshal(line, one); err != nil {
			return nil, fmt.Errorf("the corpus is damaged: %w", err)
		}
		all = append(all, one)
	}
	return all, nil
}

// take returns the next text of at most so many characters, or a harmless one if
// there is none left.
func take(all []*injected, most int) string {
	for _, one := range all {
		if !one.used && utf8.RuneCountInString(one.Text) <= most {
			one.used = true
			return one.Text
		}
	}
	return "no text left"
}
