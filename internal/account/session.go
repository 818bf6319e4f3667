package account

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/resource"
)

// How long a portal session lasts.
const (
	SessionIdle  = 12 * time.Hour
	SessionLimit = 7 * 24 * time.Hour
	// ReauthFresh is how long a sign-in or a renewed proof of identity counts where a fresh one is required.
	ReauthFresh = 5 * time.Minute
)

// Session is a signed-in browser.
type Session struct {
	ID        string            // for lists; not the token
	TokenHash access.SecretHash // how it is found: the token is never stored
	UserID    string
	CompanyID string
	CreatedAt time.Time
	SeenAt    time.Time // coalesced
	ProvedAt  time.Time // when the person last proved who they are
	Address   string    // of the client, for the person's own list
	Agent     string
	Method    string // how the person signed in; for the record, and for ByPasskey a condition; not kept here
	// PasswordHash is that of the user when they showed who they are; not kept here.
	PasswordHash string
}

// ByPasskey is the Method of a sign-in with a passkey alone.
const ByPasskey = "passkey"

// Live reports whether the session is good at now.
func (s Session) Live(now time.Time) bool {
	return access.Holds(s.SeenAt, SessionIdle, now) && access.Holds(s.CreatedAt, SessionLimit, now)
}

// Fresh reports whether the person proved their identity less than ReauthFresh ago.
func (s Session) Fresh(now time.Time) bool { return access.Holds(s.ProvedAt, ReauthFresh, now) }

// SessionStore keeps sessions. Find methods return fault.NotFound.
type SessionStore interface {
	// CreateSession is fault.Unauthorized if the user was disabled, got another password, or
	// lost the passkeys that they signed in with, since they showed who they are.
	CreateSession(ctx context.Context, s Session) error
	// SessionByToken returns the session with its user, the company's slug and
	// settings, in one query; a disabled user has none.
	SessionByToken(ctx context.Context, hash access.SecretHash) (Session, User, access.Principal, error)
	// TouchSession notes when a session was used; one that has ended is no error.
	TouchSession(ctx context.Context, id string, seen time.Time) error
	// ProveSession notes that the person proved again who they are; a session that has ended
	// is no error.
	ProveSession(ctx context.Context, id string, at time.Time) error
	// EndSession ends one of a user's sessions; one that has ended is no error.
	EndSession(ctx context.Context, userID, id string) error
	// Sessions returns a user's sessions, the newest first.
	Sessions(ctx context.Context, userID string) ([]Session, error)
}

// clip shortens text that is not trusted to at most n bytes, without a part of a character.
func clip(text string, n int) string {
	return strings.ToValidUTF8(text[:min(len(text), n)], "")
}

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
type Browsers struct{ Sealer access.Sealer }

// Open returns the browser of a cookie; zero if the cookie is not ours.
func (s Browsers) Open(cookie string) (b Browser) {
	if openText(s.Sealer, purposeBrowser, cookie, &b) != nil {
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
func sealText(s access.Sealer, purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(s.Seal(purpose, text)), err
}

// openText reads what sealText made.
func openText(s access.Sealer, purpose, text string, into any) error {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		sealed, err = s.Open(purpose, sealed)
	}
	if err == nil {
		err = json.Unmarshal(sealed, into)
	}
	return err
}
