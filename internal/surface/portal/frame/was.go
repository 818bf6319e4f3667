package frame

import (
	"encoding/json"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
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
	was, sent := v.Was(name)
	return sent && plainText(was) == plainText(v.Form.Get(name))
}

// Set gives a value to what a field of the posted form is about, unless the field is Kept.
func Set[T any](v *Visit, field string, to *T, value T) {
	if !v.Kept(field) {
		*to = value
	}
}

// plainText is the text of a field without what browsers change.
func plainText(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r", "")) }

// shownWith is what a form says that its field was shown with: now, or, where the form is
// shown again with its faults, what it said before; false: it said nothing. The posted form may be
// another one of the page.
func (v *Visit) shownWith(name, now string) (string, bool) {
	if was, sent := v.Was(name); sent {
		return was, true
	}
	return now, !v.Form.Has(name)
}

// Typed is the value of a field: now, or, where the form is shown again with its faults,
// what was typed.
func (v *Visit) Typed(name, now string) string {
	return Either(v.Form.Has(name), v.Form.Get(name), now)
}

// SentBefore notes that the posted form, which makes one thing such as an API key, was sent. If it was sent before, it leads to a
// page with the text, and answered is true. A form without OnceField is not compared.
func (v *Visit) SentBefore(steps account.PendingStore, kind account.PendingKind, to, text string) (answered bool, err error) {
	once := v.Form.Get(OnceField)
	if once == "" {
		return false, nil
	}
	err = steps.SaveStep(v.Context(), access.HashSecret(v.User.ID+once), account.PendingSignIn{Kind: kind, CompanyID: v.Company.ID,
		UserID: v.User.ID, Data: json.RawMessage("{}"), ExpiresAt: v.Now.Add(account.FormLife)})
	if fault.CodeOf(err) == fault.Refused {
		return true, v.Redirect(to, Flash{Tone: Warn, Text: "This form was sent before: " + text})
	}
	return false, err
}

// Ticked is the value of a check box that is selected or not, as a form posts it.
func Ticked(on bool) string { return Either(on, "true", "") }
