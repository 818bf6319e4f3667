package database

import (
	"context"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

const sessionColumns = `s.id, s.token_hash, s.user_id, s.company_id, s.created_at, s.seen_at, s.proved_at, s.address, s.agent`

// sessionFields receives sessionColumns.
func sessionFields(s *account.Session) []any {
	return []any{&s.ID, digest(s.TokenHash[:]), &s.UserID, &s.CompanyID, at(&s.CreatedAt), at(&s.SeenAt), at(&s.ProvedAt),
		&s.Address, &s.Agent}
}

// CreateSession adds a session and notes the sign-in; fault.Unauthorized for a user who
// was disabled, got another password, or lost the passkeys, since they showed who they are.
func (db *DB) CreateSession(ctx context.Context, s account.Session) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if t.count(ctx, `UPDATE users SET last_sign_in_at = ? WHERE id = ? AND NOT disabled AND password_hash = ?`,
			millis(s.CreatedAt), s.UserID, s.PasswordHash) == 0 {
			return errSignInMoved
		}
		if s.Method == account.ByPasskey && !t.holds(ctx, `SELECT id FROM passkeys WHERE user_id = ? LIMIT 1`, s.UserID) {
			return errSignInMoved
		}
		t.check(t.Insert(ctx, "sessions", sessionColumns, sessionFields(&s)))
		return db.recordPerson(ctx, t, s.UserID, activity.SignedIn, activity.OK, activity.Change{Field: "method", After: s.Method})
	})
}

var errSignInMoved error = fault.New(fault.Unauthorized, "the account changed at this moment: sign in again")

// recordPerson records what a person did about their own signing in. Who it
// was is known by the change, as the context has no user yet.
func (db *DB) recordPerson(ctx context.Context, t *tx, userID string, action activity.Action, outcome activity.Outcome,
	changes ...activity.Change) error {
	u, err := findUser(ctx, t, `u.id = ?`, userID)
	t.check(err)
	e := activity.Event{Action: action, Target: userTarget(u), Outcome: outcome, Changes: activity.Differences(changes...)}
	if access.OriginOf(ctx).Actor == (access.Actor{}) {
		e.Actor = access.Actor{Kind: access.User, ID: u.ID, UserID: u.ID, Name: u.Name}
	}
	return db.record(ctx, t, u.CompanyID, e)
}

const (
	// refusalsRecorded is how many refused sign-ins of a user are recorded, of each reason, in a window of refusalWindow:
	// strangers who know an address cannot fill the activity log, nor hide a wrong second factor among wrong passwords.
	refusalsRecorded = 20
	refusalWindow    = 15 * time.Minute
)

// SignInFailed records a refused sign-in with its reason, if few were recorded lately. Without a user, or after many refusals,
// it records nothing, but takes as long: it makes as many statements.
func (db *DB) SignInFailed(ctx context.Context, u account.User, why string) error {
	limit := refusalsRecorded
	if u.ID == "" {
		limit = math.MaxInt32
	}
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		few, err := db.counted(ctx, t, "signin-recorded:"+u.ID+":"+why, limit, refusalWindow)
		t.check(err)
		if few && u.ID != "" {
			return db.recordPerson(ctx, t, u.ID, activity.SignInRefused, activity.Refused, activity.Change{Field: "reason", After: why})
		}
		listed(ctx, t, into(userFields), `SELECT `+userColumns+` FROM users u WHERE u.id = ? AND u.company_id = ?`, u.ID, u.CompanyID)
		_, err = db.counted(ctx, t, "signin-unknown", math.MaxInt32, time.Minute)
		return err
	})
}

// counted counts an attempt under a key, and reports whether there were at most limit in the key's window.
func (db *DB) counted(ctx context.Context, t *tx, key string, limit int, window time.Duration) (bool, error) {
	count := spending(key, limit, window, db.now())
	_, within, err := maybe(one(ctx, t, into(windowFields), count.text, count.args...))
	return within, err
}

// signedIn is a session with what decides its person's rights.
type signedIn struct {
	session account.Session
	user    account.User
	company access.Principal // see callersColumns
}

// SessionByToken finds a session with its user and its company's settings.
func (db *DB) SessionByToken(ctx context.Context, hash access.SecretHash) (account.Session, account.User, access.Principal, error) {
	fields := func(in *signedIn) []any {
		return slices.Concat(sessionFields(&in.session), userFields(&in.user), callersFields(&in.company))
	}
	in, err := find(ctx, db.read(), "session", into(fields), `SELECT `+sessionColumns+`, `+userColumns+`, `+callersColumns+`
		FROM sessions s JOIN users u ON u.id = s.user_id JOIN companies c ON c.id = u.company_id
		WHERE s.token_hash = ? AND NOT u.disabled`, hex.EncodeToString(hash[:]))
	if err != nil {
		return account.Session{}, account.User{}, access.Principal{}, err
	}
	p := in.user.Principal(in.company.CompanySlug, in.company.Settings)
	p.Version, p.Expires = in.company.Version, in.session.CreatedAt.Add(account.SessionLimit)
	return in.session, in.user, p, nil
}

// TouchSession notes a session's last use.
func (db *DB) TouchSession(ctx context.Context, id string, seen time.Time) error {
	return db.execRelaxed(ctx, `UPDATE sessions SET seen_at = ? WHERE id = ? AND seen_at < ?`, millis(seen), id, millis(seen))
}

// ProveSession notes that the person proved again who they are.
func (db *DB) ProveSession(ctx context.Context, id string, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		user, there, err := maybe(value[string](ctx, t, `UPDATE sessions SET proved_at = ? WHERE id = ? RETURNING user_id`, millis(at), id))
		if err != nil || !there {
			return err
		}
		return db.recordPerson(ctx, t, user, activity.IdentityProved, activity.OK)
	})
}

// EndSession ends one of a user's sessions.
func (db *DB) EndSession(ctx context.Context, userID, id string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		companyID, there, err := maybe(value[string](ctx, t, `DELETE FROM sessions WHERE id = ? AND user_id = ? RETURNING company_id`, id,
			userID))
		if err != nil || !there {
			return err
		}
		t.raises(companyID)
		return db.recordPerson(ctx, t, userID, activity.SessionEnded, activity.OK)
	})
}

// Sessions lists a user's sessions, the newest first.
func (db *DB) Sessions(ctx context.Context, userID string) ([]account.Session, error) {
	return list(ctx, db.read(), into(sessionFields), `SELECT `+sessionColumns+` FROM sessions s WHERE s.user_id = ?
		ORDER BY s.created_at DESC, s.id`, userID)
}

const stepColumns = `kind, company_id, user_id, data, expires_at`

func stepFields(s *account.PendingSignIn) []any {
	return []any{&s.Kind, &s.CompanyID, &s.UserID, asText(&s.Data), at(&s.ExpiresAt)}
}

// SaveStep implements account.PendingStore.
func (db *DB) SaveStep(ctx context.Context, token access.SecretHash, s account.PendingSignIn) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		if s.Kind == account.SecondFactor &&
			!t.holds(ctx, `SELECT id FROM users WHERE id = ? AND password_hash = ?`+t.hold(), s.UserID, s.PasswordHash) {
			return errSignInMoved
		}
		return saveStep(ctx, t, token, s)
	})
	return taken(err, "this step was begun already")
}

func saveStep(ctx context.Context, t *tx, token access.SecretHash, s account.PendingSignIn) error {
	return t.Insert(ctx, "signin_steps", stepColumns+", hash", append(stepFields(&s), digest(token[:])))
}

// Step implements account.PendingStore.
func (db *DB) Step(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	return db.findStep(ctx, db.read(), token, kind, "step")
}

func (db *DB) findStep(ctx context.Context, c conn, token access.SecretHash, kind account.PendingKind,
	noun string) (account.PendingSignIn, error) {
	return find(ctx, c, noun, into(stepFields), `SELECT `+stepColumns+` FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ?`,
		digest(token[:]), string(kind), millis(db.now()))
}

// TakeStep implements account.PendingStore.
func (db *DB) TakeStep(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	var s account.PendingSignIn
	err := db.statement(ctx, func(ctx context.Context, c conn) (err error) {
		s, err = db.takeStep(ctx, c, token, kind, "step")
		return err
	})
	return s, err
}

func (db *DB) takeStep(ctx context.Context, c conn, token access.SecretHash, kind account.PendingKind,
	noun string) (account.PendingSignIn, error) {
	return find(ctx, c, noun, into(stepFields),
		`DELETE FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ? RETURNING `+stepColumns,
		digest(token[:]), string(kind), millis(db.now()))
}

// DropSteps implements account.PendingStore.
func (db *DB) DropSteps(ctx context.Context, userID string, kind account.PendingKind) error {
	return db.exec(ctx, `DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind = ?`, userID, string(kind))
}
