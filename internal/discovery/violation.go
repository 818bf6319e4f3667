package discovery

import (
	"strings"
	"unicode"

	"github.com/musterhq/muster/internal/slice"
)

// Violation is one thing that is wrong with a JSON document or a query.
type Violation struct {
	// Field is the place in the vendor's spelling: protocol names, beginning
	// with the name of the request's body, as in "policy.device_radio_state".
	// It is empty for the document as a whole.
	Field string
	// Description is the vendor's sentence about it.
	Description string
}

// Error says everything that is wrong with a JSON document or a query.
type Error struct {
	Violations []Violation
}

// maxViolations bounds the length of an error whatever was sent.
const maxViolations = 50

// Error gives the vendor's sentences, one a line.
func (e *Error) Error() string {
	return strings.Join(slice.Map(e.Violations, func(v Violation) string { return v.Description }), "\n")
}

func (e *Error) add(field, description string) {
	if len(e.Violations) < maxViolations {
		e.Violations = append(e.Violations, Violation{Field: field, Description: description})
	}
}

func (e *Error) orNil() error {
	if len(e.Violations) == 0 {
		return nil
	}
	return e
}

// snake turns a JSON name into a protocol name: cameraAccess, camera_access.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
