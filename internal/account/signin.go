package account

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// SignIn signs people in with e-mail and password, and opens their sessions.
type SignIn struct {
	Users    UserStore
	Sessions SessionStore
	// Passwords checks the passwords of unknown browsers, Reserved those of browsers and sessions that are known. Each
	// limits how many it checks at once, so that attempts of strangers do not delay the users who are known.
	Passwords *Passwords
	Reserved  *Passwords
	Throttle  FailureThrottle
	// Refused records a refusal with its reason. For an e-mail address that no user has, u is zero: nothing is recorded, but
	// the call takes as long, so that the time does not show which addresses exist. It fails as the database does, and with
	// fault.NotFound if the user was deleted.
	Refused func(ctx context.Context, u User, why string) error
	Now     func() time.Time
}

// Client is where an attempt to sign in comes from.
type Client struct {
	Address string
	Agent   string  // the User-Agent header; not trusted
	Browser Browser // the browser as it identifies itself by a cookie; zero: no user signed in with it before
}

// Check returns the user whose e-mail and password these are. It fails with
// fault.Unauthorized, the same for every cause, or fault.RateLimited. Only
// failures count against the limits.
func (s SignIn) Check(ctx context.Context, email, password string, from Client) (User, error) {
	normal, formErr := NormalEmail(email)
	limits := signInLimits(normal, from)
	if err := s.spend(ctx, limits, tooManyFailures); err != nil {
		return User{}, err
	}
	user := User{}
	if formErr == nil {
		found, err := s.Users.UserByEmail(ctx, normal)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return User{}, err
		}
		user = found
	}
	hashes := s.Passwords
	if from.Browser.Knows(normal) {
		hashes = s.Reserved
	}
	return user, s.verify(ctx, hashes, user, password, limits)
}

// CheckAgain returns nil if the password is that of a user who is signed in. It
// counts failures under the session: strangers who fail to sign in cannot keep
// a person who is inside from proving their identity.
func (s SignIn) CheckAgain(ctx context.Context, session Session, user User, password string) error {
	limits := []limit{{"signin-session:" + session.ID, 5, time.Minute}}
	if err := s.spend(ctx, limits, tooManyProofs); err != nil {
		return err
	}
	return s.verify(ctx, s.Reserved, user, password, limits)
}

// verify returns nil if the password is right and the user is not disabled, and then gives the attempt back to the limits.
// Otherwise it records the refusal and returns fault.Unauthorized, the same for every cause.
func (s SignIn) verify(ctx context.Context, hashes *Passwords, user User, password string, limits []limit) error {
	matches, err := hashes.Matches(ctx, user.PasswordHash, password)
	if err != nil {
		return err
	}
	if matches && !user.Disabled {
		return s.Throttle.GiveBack(ctx, slice.Map(limits, func(l limit) string { return l.key }), s.Now())
	}
	why := "wrong password"
	if matches {
		why = "the account is disabled"
	}
	if err := s.Refused(ctx, user, why); err != nil {
		return err
	}
	return fault.New(fault.Unauthorized, "the e-mail address or the password is wrong")
}

// SecondFailed counts and records a wrong second factor in the same way as a wrong password. An attempt over
// a limit is no error here: the next call of Check refuses.
func (s SignIn) SecondFailed(ctx context.Context, user User, from Client) error {
	if err := s.spend(ctx, signInLimits(user.Email, from), tooManyFailures); err != nil && fault.CodeOf(err) != fault.RateLimited {
		return err
	}
	return s.Refused(ctx, user, "wrong second factor")
}

// OpenProved opens a session for a user who proved their identity at the time proved, and returns its token; zero: there is
// no such proof. method says how the user signed in, for the activity log. user is the user as read when they signed in: it
// fails with fault.Unauthorized if they were disabled, got another password, or signed in ByPasskey and lost all passkeys, since.
func (s SignIn) OpenProved(ctx context.Context, user User, method string, from Client, proved time.Time) (token string, err error) {
	now := s.Now()
	token = "ms_" + access.RandomText(access.SecretLength)
	return token, s.Sessions.CreateSession(ctx, Session{ID: resource.NewID(), TokenHash: access.HashSecret(token), UserID: user.ID,
		CompanyID: user.CompanyID, CreatedAt: now, SeenAt: now, ProvedAt: proved, Address: clip(from.Address, 64),
		Agent: clip(from.Agent, 200), Method: method, PasswordHash: user.PasswordHash})
}

// PendingKind is the stage of a multi-step sign-in.
type PendingKind string

// The kinds of steps. Some are forms of the portal that were sent, not of a sign-in: they make sure that one form makes one thing.
const (
	Invitation   PendingKind = "INVITATION"    // sets a password for the first time
	SecondFactor PendingKind = "SECOND_FACTOR" // the password was right; a passkey is asked for
	AddPasskey   PendingKind = "ADD_PASSKEY"   // adds a passkey to the account
	ProvePasskey PendingKind = "PROVE_PASSKEY" // shows the passkey again before a sensitive action
	NewKeyForm   PendingKind = "NEW_KEY"       // sent the form of a new API key, which makes one key
	EnrollForm   PendingKind = "ENROLL"        // sent the form of an enrollment code, which makes one code
	WebhookForm  PendingKind = "WEBHOOK"       // sent a form that makes one secret of a webhook
	ComputerCode PendingKind = "COMPUTER_CODE" // allowed a computer to get an API key in exchange for a code
	// LinkingIdentity: a person whom the company's provider identified proves that the account here is theirs. Then the
	// provider can sign them in to it.
	LinkingIdentity PendingKind = "LINKING_IDENTITY"
	// UsedChallenge marks a challenge that a passkey has answered, so that no second answer is accepted.
	UsedChallenge PendingKind = "USED_CHALLENGE"
)

// How long steps may take: an Invitation, and all others (PendingLife). FormLife is how long a form that was sent is known.
const (
	InvitationLife = 7 * 24 * time.Hour
	PendingLife    = 10 * time.Minute
	FormLife       = 30 * 24 * time.Hour
)

// pends reports whether a step that lasts PendingLife, until expires, can go on at now.
func pends(expires, now time.Time) bool {
	return access.Holds(expires.Add(-PendingLife), PendingLife, now)
}

// PendingSignIn is a step that has begun and that continues with its token. Only the hash of the token is stored.
type PendingSignIn struct {
	Kind      PendingKind
	CompanyID string
	UserID    string          // empty: not known yet
	Data      json.RawMessage // of the kind's own format
	ExpiresAt time.Time
	// PasswordHash, for a SecondFactor, is the user's hash when the password was found right. SaveStep compares it, and
	// does not store it.
	PasswordHash string
	// Letter, for an Invitation, is its sealed token, to be sent by mail; empty: no mail is sent. It is stored apart from
	// the step, until the mail is sent.
	Letter []byte
}

// PendingStore keeps steps. A step that has expired, or is of another kind than asked for, is fault.NotFound.
type PendingStore interface {
	// SaveStep stores a step under the hash of its token; fault.Refused if that hash is stored already. A SecondFactor is
	// fault.Unauthorized if the user's password has changed; one that is stored is removed when the password changes.
	SaveStep(ctx context.Context, token access.SecretHash, s PendingSignIn) error
	// Step returns a step, which stays.
	Step(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// TakeStep returns a step and removes it: of several calls, one gets it.
	TakeStep(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// DropSteps removes all steps of a user of a kind.
	DropSteps(ctx context.Context, userID string, kind PendingKind) error
}

// Begin saves a step under a new random token, which it returns. It fails as SaveStep does.
func Begin(ctx context.Context, store PendingStore, s PendingSignIn) (string, error) {
	token := access.NewSecret("mst_")
	return token, store.SaveStep(ctx, access.HashSecret(token), s)
}
