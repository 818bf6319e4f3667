package account

import (
	"context"
	"crypto/sha256"
	"github.com/musterhq/muster/internal/access"
	"time"
	"unicode/utf8"
)

// How long a portal session lasts.
const (
	SessionIdle  = 12 * time.Hour
	SessionLimit = 7 * 24 * time.Hour
	// ReauthFresh is how long after a sign-in or a renewed proof of identity the
	// portal lets a person turn on destructive commands.
	ReauthFresh = 5 * time.Minute
)

// SessionTokenHash is how a session is found: its token is never stored.
type SessionTokenHash [sha256.Size]byte

// HashSessionToken returns the token's hash.
func HashSessionToken(token string) SessionTokenHash { return sha256.Sum256([]byte(token)) }

// Session is a signed-in browser.
type Session struct {
	ID        string // for lists; not the token
	TokenHash SessionTokenHash
	UserID    string
	CompanyID string
	CreatedAt time.Time
	SeenAt    time.Time // coalesced
	ProvedAt  time.Time // when the person last proved who they are
	Address   string    // of the client, for the person's own list
	Agent     string
	Method    string // how the person signed in; for the record, not kept here
}

// Live reports whether the session is good at now.
func (s Session) Live(now time.Time) bool {
	return now.Before(s.SeenAt.Add(SessionIdle)) && now.Before(s.CreatedAt.Add(SessionLimit))
}

// Fresh reports whether identity was proved lately enough for dangerous changes.
func (s Session) Fresh(now time.Time) bool { return now.Before(s.ProvedAt.Add(ReauthFresh)) }

// SessionStore keeps sessions. Find methods return fault.NotFound.
type SessionStore interface {
	CreateSession(ctx context.Context, s Session) error
	// SessionByToken returns the session with its user, the company's slug and
	// settings, in one query; a disabled user has none.
	SessionByToken(ctx context.Context, hash SessionTokenHash) (Session, User, access.Principal, error)
	TouchSession(ctx context.Context, id string, seen time.Time) error
	ProveSession(ctx context.Context, id string, at time.Time) error
	EndSession(ctx context.Context, userID, id string) error
	Sessions(ctx context.Context, userID string) ([]Session, error)
}

// clip shortens hostile text to at most n bytes, at a character's border.
func clip(text string, n int) string {
	for len(text) > n {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
		if len(text) > n+utf8.UTFMax {
			text = text[:n+utf8.UTFMax]
		}
	}
	return text
}
