package frame

import (
	"net/http"
	"strings"
)

// Another administrator can change what a form shows while it is open. Such a form
// therefore says with the fields of WasField what it was shown with. A
// field that still has that is left as it is by now.

const wasPrefix = "was-"

// Was returns what the posted form was shown with in a field; false: the form does not say.
func (v *Visit) Was(name string) (string, bool) {
	return v.Form.Get(wasPrefix + name), v.Form.Has(wasPrefix + name)
}

// Kept reports whether a field of the posted form still has what it was shown with. A form
// that does not say what it was shown with changes every field.
func (v *Visit) Kept(name string) bool {
	was, told := v.Was(name)
	return told && plainText(was) == plainText(v.Form.Get(name))
}

// plainText is the text of a field without what browsers change.
func plainText(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r", "")) }

// shownWith is what a form says that its field was shown with: now, or, where the form is
// shown again with its faults, what it said before; false: it said nothing.
func (v *Visit) shownWith(name, now string) (string, bool) {
	if v.Request().Method == http.MethodPost {
		return v.Was(name)
	}
	return now, true
}

// Typed is the value of a field: now, or, where the form is shown again with its faults,
// what was typed.
func (v *Visit) Typed(name, now string) string {
	if v.Form.Has(name) {
		return v.Form.Get(name)
	}
	return now
}

// Ticked is the value of a check box that is selected or not, as a form posts it.
func Ticked(on bool) string {
	if on {
		return "true"
	}
	return ""
}
