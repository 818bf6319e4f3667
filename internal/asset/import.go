package asset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/phrase"
)

// Line is one line of an import: what it says of an asset. Members that are empty say
// nothing.
type Line struct {
	Number         int
	Identification string
	Specifications map[string]string // serialNumber, model, manufacturer, brand
	Tags           []string          // nil: they stay; else they replace those that there are
	CustomData     map[string]string
}

// SerialKey is the line's serial number as it is compared; empty: none.
func (l Line) SerialKey() string { return IdentityKey(l.Specifications["serialNumber"]) }

// LineError is what is wrong with a line.
type LineError struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// Imported is what an import made of its lines. With errors nothing was written.
type Imported struct {
	Made    int         `json:"made"`
	Changed int         `json:"changed"`
	Left    int         `json:"left"` // as they were
	Errors  []LineError `json:"errors"`

	// Plan stands for all that is changed: two imports that would change the same have the
	// same one. Sample is the first of it, by line.
	Plan   string    `json:"-"`
	Sample []Planned `json:"-"`
	// Moved: nothing was written, because the plan was not the expected one.
	Moved bool `json:"-"`
}

// ImportOptions say how much of an import is done.
type ImportOptions struct {
	Dry bool // nothing is written
	// Plan, if not empty, is the plan without which nothing is written.
	Plan string
}

// Failed says what is wrong with the lines, of which the first few are named.
func (i Imported) Failed() string {
	lines := phrase.First(i.Errors, 10, func(e LineError) string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) })
	return strings.Join(lines, "; ")
}

// Match finds the asset that each line means among those that have a line's serial number
// or, without one, its identification; -1: a new one. It reports the lines that mean none
// or several.
func Match(lines []Line, there []Asset) (meant []int, errors []LineError) {
	bySerial, byName := map[string][]int{}, map[string]*namesakes{}
	for i, a := range there {
		if key := IdentityKey(a.Specifications["serialNumber"]); key != "" {
			bySerial[key] = append(bySerial[key], i)
		} else {
			if byName[a.Identification] == nil {
				byName[a.Identification] = &namesakes{}
			}
			byName[a.Identification].add(i, a)
		}
	}
	meant = make([]int, len(lines))
	for n, l := range lines {
		meant[n] = -1
		switch key := l.SerialKey(); {
		case key != "":
			which, wrong := oneOf(bySerial[key], there)
			if wrong != "" {
				errors = append(errors, LineError{l.Number, wrong})
			}
			meant[n] = which
		case l.Identification != "":
			if same := byName[l.Identification]; same != nil {
				meant[n] = same.take(l, there)
			}
		}
		if meant[n] < 0 && l.Identification == "" && (len(errors) == 0 || errors[len(errors)-1].Line != l.Number) {
			errors = append(errors, LineError{l.Number, "identification is blank, and no asset has this serial number"})
		}
	}
	return meant, errors
}

// oneOf is the asset that a serial number means: the managed one of several.
func oneOf(candidates []int, there []Asset) (int, string) {
	managed := slices.DeleteFunc(slices.Clone(candidates), func(i int) bool { return !there[i].Status.Enrolled() })
	switch {
	case len(managed) == 1:
		return managed[0], ""
	case len(managed) > 1:
		return -1, "several managed assets have this serial number"
	case len(candidates) > 1:
		return -1, "several assets have this serial number, and none of them is managed"
	case len(candidates) == 1:
		return candidates[0], ""
	}
	return -1, ""
}

// Apply changes an asset as the line says. The hardware facts of a managed device are its
// own. An archived asset is restored.
func (l Line) Apply(a *Asset) error {
	a.Archived = false
	if !a.Status.Enrolled() && len(l.Specifications) > 0 {
		facts := map[string]string{}
		maps.Copy(facts, a.Specifications)
		maps.Copy(facts, l.Specifications)
		a.Specifications = facts
	}
	return l.edit().Apply(a)
}

// edit is what the line changes of any asset.
func (l Line) edit() Edit {
	e := Edit{Tags: l.Tags, CustomData: map[string]*string{}}
	if l.Identification != "" {
		e.Identification = &l.Identification
	}
	for key, value := range l.CustomData {
		e.CustomData[key] = &value
	}
	return e
}
