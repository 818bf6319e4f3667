package operation

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/fault"
)

// Sorting is what the sort argument of one list may be (contract 4.1): a field
// and a direction, such as syncedAt,desc. Anything else is invalid; nothing is
// guessed.
type Sorting struct {
	Fields  []string
	Default string // field and direction of a list without sort
}

// Parse returns the field and the direction, or fault.InvalidArguments; text
// "" means the default.
func (s Sorting) Parse(text string) (field string, descending bool, err error) {
	if text == "" {
		text = s.Default
	}
	field, direction, _ := strings.Cut(text, ",")
	if !slices.Contains(s.Fields, field) || direction != "asc" && direction != "desc" {
		return "", false, fault.Invalid("sort "+s.rule(), fault.Field{Field: "sort", Message: s.rule()})
	}
	return field, direction == "desc", nil
}

// Rule states and checks the rule of the sort argument.
func (s Sorting) Rule(r *Rules, text string) {
	_, _, err := s.Parse(text)
	r.Must("sort", s.rule(), err == nil)
}

func (s Sorting) rule() string {
	return "must be <field>,<asc or desc> with one of the fields " + strings.Join(s.Fields, ", ") + "; default " + s.Default
}
