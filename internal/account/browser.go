package account

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/internal/resource"
)

// Browser is a browser in which people signed in before, by a sealed cookie
// that it keeps. It does not sign anyone in: its failed attempts count apart from those
// of strangers (OWASP calls it a device cookie).
type Browser struct {
	ID     string   `json:"id"`
	Emails []string `json:"emails"` // of the people, the last one first
}

// maxBrowserPeople bounds the people of one browser.
const maxBrowserPeople = 5

const purposeBrowser = "browser that is known"

// Knows reports whether the person with the address signed in here before.
func (b Browser) Knows(email string) bool { return b.ID != "" && slices.Contains(b.Emails, email) }

// With returns the browser after a person signed in. It gets a new id if the
// person is new in it: the failures of before are not theirs.
func (b Browser) With(email string) Browser {
	if !b.Knows(email) {
		b.ID = resource.NewID()
	}
	others := slices.DeleteFunc(slices.Clone(b.Emails), func(other string) bool { return other == email })
	b.Emails = append([]string{email}, others[:min(len(others), maxBrowserPeople-1)]...)
	return b
}

// Browsers reads and writes the cookies of browsers.
type Browsers struct{ Sealer Sealer }

// Open returns the browser of a cookie; zero if the cookie is not ours.
func (s Browsers) Open(cookie string) (b Browser) {
	if s.Sealer == nil || openText(s.Sealer, purposeBrowser, cookie, &b) != nil {
		return Browser{}
	}
	return b
}

// Seal returns the browser's cookie.
func (s Browsers) Seal(b Browser) string {
	cookie, _ := sealText(s.Sealer, purposeBrowser, b) // it cannot fail
	return cookie
}

// sealText is a value as a cookie or a page of a browser holds it.
func sealText(s Sealer, purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(s.Seal(purpose, text)), err
}

// openText reads what sealText made.
func openText(s Sealer, purpose, text string, into any) error {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		sealed, err = s.Open(purpose, sealed)
	}
	if err == nil {
		err = json.Unmarshal(sealed, into)
	}
	return err
}
