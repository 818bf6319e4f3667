package account

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// SignIn signs people in with e-mail and password, and opens their sessions.
type SignIn struct {
	Users    UserStore
	Sessions SessionStore
	// Passwords checks those of strangers, Reserved those of browsers and
	// sessions that are known, so that strangers cannot keep their owners waiting.
	Passwords *Passwords
	Reserved  *Passwords
	Throttle  FailureThrottle
	Log       SignInLog // nil: refusals are not recorded
	Now       func() time.Time
}

// SignInLog records that a sign-in was refused. An empty user is an address
// that no user has; it is recorded nowhere, but takes as long.
type SignInLog interface {
	SignInFailed(ctx context.Context, u User, why string) error
}

// Client is where an attempt to sign in comes from.
type Client struct {
	Address string
	Agent   string  // the User-Agent header; not trusted
	Browser Browser // zero: not used to sign in before
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

// verify checks the password, and gives back what was spent if it is right.
func (s SignIn) verify(ctx context.Context, hashes *Passwords, user User, password string, limits []limit) error {
	matches, err := hashes.Matches(ctx, user.PasswordHash, password)
	if err != nil {
		return err
	}
	if matches && !user.Disabled {
		return s.giveBack(ctx, limits)
	}
	if s.Log != nil {
		why := "wrong password"
		if matches {
			why = "the account is disabled"
		}
		if err := s.Log.SignInFailed(ctx, user, why); err != nil {
			return err
		}
	}
	return fault.New(fault.Unauthorized, "the e-mail address or the password is wrong")
}

// SecondFailed counts and records a second factor that was wrong, as a wrong
// password is.
func (s SignIn) SecondFailed(ctx context.Context, user User, from Client) error {
	if err := s.spend(ctx, signInLimits(user.Email, from), tooManyFailures); err != nil && fault.CodeOf(err) != fault.RateLimited {
		return err
	}
	if s.Log == nil {
		return nil
	}
	return s.Log.SignInFailed(ctx, user, "wrong second factor")
}

// Open opens a session for a user who proved their identity just now. method
// says how, for the activity log.
func (s SignIn) Open(ctx context.Context, user User, method string, from Client) (token string, err error) {
	return s.OpenProved(ctx, user, method, from, s.Now())
}

// OpenProved is Open for a proof of an earlier time; zero: of none. user is as they were
// when they showed who they are: fault.Unauthorized if they got another password since.
func (s SignIn) OpenProved(ctx context.Context, user User, method string, from Client, proved time.Time) (token string, err error) {
	now := s.Now()
	token = "ms_" + access.RandomText(access.SecretLength)
	return token, s.Sessions.CreateSession(ctx, Session{ID: resource.NewID(), TokenHash: HashSessionToken(token), UserID: user.ID,
		CompanyID: user.CompanyID, CreatedAt: now, SeenAt: now, ProvedAt: proved, Address: clip(from.Address, 64),
		Agent: clip(from.Agent, 200), Method: method, PasswordHash: user.PasswordHash})
}

// PendingKind is the stage of a multi-step sign-in.
type PendingKind string

// The kinds of steps.
const (
	Invitation   PendingKind = "INVITATION"    // sets a password for the first time
	SecondFactor PendingKind = "SECOND_FACTOR" // the password was right; a passkey is asked for
	AddPasskey   PendingKind = "ADD_PASSKEY"
	ProvePasskey PendingKind = "PROVE_PASSKEY" // shows the passkey again before a sensitive action
	NewKeyForm   PendingKind = "NEW_KEY"       // fills in the form of a new API key, which makes one key
	EnrollForm   PendingKind = "ENROLL"        // fills in the form of an enrollment code, which makes one code
	WebhookForm  PendingKind = "WEBHOOK"       // is at a form that makes one secret of a webhook
	ComputerCode PendingKind = "COMPUTER_CODE" // allowed a key for a computer, which exchanges a code for it
	Connecting   PendingKind = "CONNECTING"    // is at the platform's sign-up page
	// LinkingIdentity proves that an account is theirs, before the company's
	// provider signs them in to it.
	LinkingIdentity PendingKind = "LINKING_IDENTITY"
	UsedChallenge   PendingKind = "USED_CHALLENGE" // a passkey answered it: it is not taken again
)

// How long steps may take.
const (
	InvitationLife = 7 * 24 * time.Hour
	PendingLife    = 10 * time.Minute
	FormLife       = 12 * time.Hour
)

// PendingSignIn is something begun that its token goes on with. Only the token's hash
// is kept.
type PendingSignIn struct {
	Kind      PendingKind
	CompanyID string
	UserID    string // empty: not known yet
	Data      json.RawMessage
	ExpiresAt time.Time
	// PasswordHash, of a SecondFactor, is that of the user when they showed that they know
	// the password; not kept here.
	PasswordHash string
	// Letter, of an Invitation, is its sealed token, to be sent by mail; empty: it is not
	// sent. It is kept apart, until it was.
	Letter []byte
}

// PendingStore keeps steps. A step that expired, or is of another kind, is
// fault.NotFound.
type PendingStore interface {
	// A SecondFactor is fault.Unauthorized if the password is another one now, and one that
	// waits ends with it.
	SaveStep(ctx context.Context, token access.SecretHash, s PendingSignIn) error
	// Step shows a step and leaves it.
	Step(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// TakeStep takes a step: it is there once.
	TakeStep(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// DropSteps removes a user's steps of a kind.
	DropSteps(ctx context.Context, userID string, kind PendingKind) error
}

// Begin saves a step and returns its token.
func Begin(ctx context.Context, store PendingStore, s PendingSignIn) (string, error) {
	token := access.NewSecret("mst_")
	return token, store.SaveStep(ctx, access.HashSecret(token), s)
}
