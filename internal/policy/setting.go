package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/slice"
)

// The two values that a setting may have but that are not accepted as input
// (contract 2.4).
const (
	NotSet = "NOT_SET" // left to the device or vendor default
	Custom = "CUSTOM"  // set to something that the allowed values cannot express
)

// Setting is a row of the catalog of editable settings (contract 2.8).
type Setting struct {
	ID         string
	Label      string
	Help       string // what it does, in a sentence
	Group      string
	Allowed    []string // in the contract's order
	HighImpact bool
}

// Catalog returns all settings in the contract's order. The caller owns it.
func Catalog() []Setting {
	all := make([]Setting, len(catalog))
	for i := range catalog {
		all[i] = catalog[i].setting()
	}
	return all
}

// SettingIDs returns the ids of all settings, in the same order.
func SettingIDs() []string {
	return slice.Map(catalog[:], func(r row) string { return r.id })
}

// Lookup returns the setting of an id. Ids are matched exactly.
func Lookup(id string) (Setting, bool) {
	r := find(id)
	if r == nil {
		return Setting{}, false
	}
	return r.setting(), true
}

// SettingAt returns the id of the setting that a PLATFORM policy keeps in a member, given by
// its dotted path; empty: none, or several settings are kept below it.
func SettingAt(path string) string {
	found := ""
	for i := range catalog {
		r := &catalog[i]
		for _, p := range r.paths(Platform) {
			switch whole := strings.Join(p, "."); {
			case whole == path:
				return r.id
			case strings.HasPrefix(whole, path+"."):
				if found != "" && found != r.id {
					return ""
				}
				found = r.id
			}
		}
	}
	return found
}

// HighImpact reports whether the setting of a label is one of high impact.
func HighImpact(label string) bool {
	return slices.ContainsFunc(Catalog(), func(s Setting) bool { return s.Label == label && s.HighImpact })
}

// Lost returns what devices lose for good when the setting with a label gets a
// value, so that a rollback does not bring it back; empty: nothing.
func Lost(label, value string) string {
	for i := range catalog {
		if r := &catalog[i]; r.label == label && slices.Contains(r.lostBy, value) {
			return r.lost
		}
	}
	return ""
}

// Warning returns what the setting with an id can do to devices when it gets a value:
// erase data, or cut them off; empty: neither.
func Warning(id, value string) string {
	if r := find(id); r != nil {
		for _, w := range r.warnings {
			if w.value == value {
				return w.text
			}
		}
	}
	return ""
}

// WarningOf is Warning for the setting of a label.
func WarningOf(label, value string) string {
	for i := range catalog {
		if catalog[i].label == label {
			return Warning(catalog[i].id, value)
		}
	}
	return ""
}

// Warnings are those of moves, in their order.
func Warnings(moves []Move) []string {
	var all []string
	for _, m := range moves {
		if text := Warning(m.Setting.ID, m.To); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Normal returns the allowed value that value means: case does not matter
// (contract 4.3).
func (s Setting) Normal(value string) (string, bool) {
	upper := asciiUpper(value)
	return upper, slices.Contains(s.Allowed, upper)
}

// Change asks for a setting to be given a value.
type Change struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// NormalChanges returns the changes with their values as the catalog writes
// them, or every fault in them: unknown settings, values not allowed, settings
// listed twice. Fields are named changes[i].setting and changes[i].value.
func NormalChanges(changes []Change) ([]Change, []fault.Field) {
	normal := make([]Change, 0, len(changes))
	var faults []fault.Field
	complain := func(i int, member, format string, args ...any) {
		faults = append(faults, fault.Field{
			Field: fmt.Sprintf("changes[%d].%s", i, member), Message: fmt.Sprintf(format, args...)})
	}
	for i, c := range changes {
		s, known := Lookup(c.Setting)
		if !known {
			complain(i, "setting", "is not a setting that can be changed: GET /policies/{policyId}/settings lists them")
			continue
		}
		if slices.ContainsFunc(normal, func(n Change) bool { return n.Setting == c.Setting }) {
			complain(i, "setting", "%s is listed twice", c.Setting)
			continue
		}
		value, allowed := s.Normal(c.Value)
		if !allowed {
			complain(i, "value", "must be one of %s for %s", strings.Join(s.Allowed, ", "), s.ID)
		}
		normal = append(normal, Change{Setting: s.ID, Value: value})
	}
	return normal, faults
}

func find(id string) *row {
	for i := range catalog {
		if catalog[i].id == id {
			return &catalog[i]
		}
	}
	return nil
}

// asciiUpper leaves everything but a-z alone, so that no exotic letter folds
// into an allowed value.
func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}
