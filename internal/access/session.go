package access

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
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
	SessionByToken(ctx context.Context, hash SessionTokenHash) (Session, UserAccount, Principal, error)
	TouchSession(ctx context.Context, id string, seen time.Time) error
	ProveSession(ctx context.Context, id string, at time.Time) error
	EndSession(ctx context.Context, userID, id string) error
	Sessions(ctx context.Context, userID string) ([]Session, error)
}

// Throttle counts attempts; budget.Store is one.
type Throttle interface {
	Spend(ctx context.Context, key string, limit int, window time.Duration, now time.Time) (used int, spent bool, closes time.Time, err error)
}

// SignIn lets people in with e-mail and password.
type SignIn struct {
	Users     UserStore
	Sessions  SessionStore
	Passwords *Passwords
	Throttle  Throttle
	Log       SignInLog // nil: refusals are not recorded
	Now       func() time.Time
}

// SignInLog records that somebody was refused.
type SignInLog interface {
	SignInFailed(ctx context.Context, u UserAccount, why string) error
}

// The sign-in throttle: attempts a minute for one address and for one client.
const (
	attemptsPerEmail  = 5
	attemptsPerClient = 30
)

// WithPassword opens a session and returns its token. It fails with
// fault.Unauthorized, the same for every cause, or fault.RateLimited.
func (s SignIn) WithPassword(ctx context.Context, email, password, client, agent string) (token string, session Session, err error) {
	user, err := s.Check(ctx, email, password, client)
	if err != nil {
		return "", Session{}, err
	}
	return s.Open(ctx, user, client, agent)
}

// Check returns the user whose e-mail and password these are.
func (s SignIn) Check(ctx context.Context, email, password, client string) (UserAccount, error) {
	normal, formErr := NormalEmail(email)
	if err := s.throttle(ctx, normal, client); err != nil {
		return UserAccount{}, err
	}
	refused := fault.New(fault.Unauthorized, "the e-mail address or the password is not right")
	user := UserAccount{}
	if formErr == nil {
		found, err := s.Users.UserByEmail(ctx, normal)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return UserAccount{}, err
		}
		user = found
	}
	matches, err := s.Passwords.Matches(ctx, user.PasswordHash, password)
	if err != nil {
		return UserAccount{}, err
	}
	if !matches || user.Disabled {
		if err := s.note(ctx, user, matches); err != nil {
			return UserAccount{}, err
		}
		return UserAccount{}, refused
	}
	return user, nil
}

// note records that somebody was refused. For an address that is nobody's
// there is nothing to record, but a write is made as well, so that time does not
// tell who exists.
func (s SignIn) note(ctx context.Context, user UserAccount, matched bool) error {
	if s.Log == nil {
		return nil
	}
	if user.ID == "" {
		_, _, _, err := s.Throttle.Spend(ctx, "signin-nobody", 1, time.Minute, s.Now())
		return err
	}
	why := "wrong password"
	if matched {
		why = "the account is disabled"
	}
	return s.Log.SignInFailed(ctx, user, why)
}

// Open opens a session for a user who has proved who they are.
func (s SignIn) Open(ctx context.Context, user UserAccount, client, agent string) (string, Session, error) {
	return s.OpenBy(ctx, user, "password", client, agent)
}

// OpenBy is Open with the way in which they proved it, for the record.
func (s SignIn) OpenBy(ctx context.Context, user UserAccount, method, client, agent string) (string, Session, error) {
	now := s.Now()
	token := "ms_" + randomText(secretLength)
	session := Session{ID: name.NewID(), TokenHash: HashSessionToken(token), UserID: user.ID, CompanyID: user.CompanyID,
		CreatedAt: now, SeenAt: now, ProvedAt: now, Address: clip(client, 64), Agent: clip(agent, 200), Method: method}
	if err := s.Sessions.CreateSession(ctx, session); err != nil {
		return "", Session{}, err
	}
	return token, session, nil
}

// Network is what attempts from an address are counted under: an IPv6 client
// has all addresses of its network, so those count as one.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // an IPv6 address has 64 bits
	return prefix.String()
}

// throttle counts an attempt for the client first, so that nobody who is over
// that limit fills the table with addresses.
func (s SignIn) throttle(ctx context.Context, email, client string) error {
	now := s.Now()
	for _, t := range []struct {
		key   string
		limit int
	}{{"signin-client:" + Network(client), attemptsPerClient}, {"signin-email:" + email, attemptsPerEmail}} {
		_, spent, closes, err := s.Throttle.Spend(ctx, t.key, t.limit, time.Minute, now)
		if err != nil {
			return err
		}
		if !spent {
			return fault.Limited(closes.Sub(now), "too many attempts to sign in: wait a minute")
		}
	}
	return nil
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
