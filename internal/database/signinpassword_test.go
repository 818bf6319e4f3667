package database_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/poll"
)

// signsIn is a session of a user as they are.
func (f *fixture) signsIn(u account.User) account.Session {
	return account.Session{ID: resource.NewID(), TokenHash: access.HashSecret(resource.NewID()), UserID: u.ID,
		CompanyID: u.CompanyID,
		CreatedAt: f.clock.Now(), SeenAt: f.clock.Now(), PasswordHash: u.PasswordHash}
}

func (f *fixture) setPassword(u account.User, hash string) account.User {
	f.Helper()
	next, err := f.db.UpdateUser(f.Context(), u.CompanyID, u.ID, func(u *account.User) error { u.PasswordHash = hash; return nil })
	f.ok(err)
	return next
}

// Who knew a password that was changed since gets no session by it.
func TestCreateSession_OtherPassword(t *testing.T) {
	withCompany(t, func(f *fixture) {
		before := f.user(account.Manager)
		f.ok(f.db.CreateSession(f.Context(), f.signsIn(before)))
		after := f.setPassword(before, "another")
		f.code(fault.Unauthorized, f.db.CreateSession(f.Context(), f.signsIn(before)))
		all, err := f.db.Sessions(f.Context(), before.ID)
		f.ok(err)
		equal(f, "sessions", len(all), 0)
		kept, err := f.db.UserByID(f.Context(), after.CompanyID, after.ID)
		f.ok(err)
		equal(f, "the user", kept, after)
		f.ok(f.db.CreateSession(f.Context(), f.signsIn(after)))
	})
}

// A session that is made while the password changes is not there afterwards.
func TestCreateSession_WhileThePasswordChanges(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u, other := f.user(account.Manager), f.open(f)
		made := make(chan error, 1)
		_, err := f.db.UpdateUser(f.Context(), u.CompanyID, u.ID, func(next *account.User) error {
			go func() { made <- other.CreateSession(f.Context(), f.signsIn(u)) }()
			poll.Pause(300 * time.Millisecond) // it waits for us
			next.PasswordHash = "another"
			return nil
		})
		f.ok(err)
		f.code(fault.Unauthorized, <-made)
		all, err := f.db.Sessions(f.Context(), u.ID)
		f.ok(err)
		equal(f, "sessions", len(all), 0)
	})
}

// A person who is asked for a second factor, or to link an account, has shown a password:
// with that, what they have begun ends, and nothing is begun by it any more.
func TestSignInStep_EndsWithThePassword(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.user(account.Manager)
		begin := func(kind account.PendingKind) (access.SecretHash, error) {
			token, err := account.Begin(f.Context(), f.db, account.PendingSignIn{Kind: kind, CompanyID: u.CompanyID, UserID: u.ID,
				Data: json.RawMessage(`{}`), ExpiresAt: f.clock.Now().Add(time.Minute), PasswordHash: u.PasswordHash})
			return access.HashSecret(token), err
		}
		second, err := begin(account.SecondFactor)
		f.ok(err)
		link, err := begin(account.LinkingIdentity)
		f.ok(err)
		answered, err := begin(account.UsedChallenge)
		f.ok(err)
		u.PasswordHash = f.setPassword(u, "another").PasswordHash
		for kind, token := range map[account.PendingKind]access.SecretHash{account.SecondFactor: second, account.LinkingIdentity: link} {
			_, err := f.db.TakeStep(f.Context(), token, kind)
			f.code(fault.NotFound, err)
		}
		_, err = f.db.TakeStep(f.Context(), answered, account.UsedChallenge)
		f.ok(err)
		_, err = begin(account.SecondFactor)
		f.ok(err)
		u.PasswordHash = "x"
		_, err = begin(account.SecondFactor)
		f.code(fault.Unauthorized, err)
	})
}

// Strangers who know an address cannot fill the activity log, nor hide a refusal of another reason.
func TestSignInFailed_RecordsFew(t *testing.T) {
	withCompany(t, func(f *fixture) {
		u := f.user(account.Manager)
		refuse := func(u account.User, why string, times int) {
			f.Helper()
			for range times {
				f.ok(f.db.SignInFailed(f.Context(), u, why))
			}
		}
		recorded := func() (n int) {
			f.Helper()
			all, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID}, activity.Cursor{}, 100)
			f.ok(err)
			for _, e := range all {
				if e.Action == activity.SignInRefused {
					n++
				}
			}
			return n
		}
		refuse(u, "wrong password", 25)
		equal(f, "entries of 25 refusals", recorded(), 20)
		refuse(u, "wrong second factor", 1)
		equal(f, "entries with one of another reason", recorded(), 21)
		refuse(account.User{}, "wrong password", 25)
		equal(f, "entries with those of no user", recorded(), 21)
		other := f.user(account.Manager)
		refuse(other, "wrong password", 1)
		equal(f, "entries with one of another user", recorded(), 22)
		f.clock.Advance(15 * time.Minute)
		refuse(u, "wrong password", 1)
		equal(f, "entries with one of the next window", recorded(), 23)
	})
}
