package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

// lockInvited returns a user who may be invited and does not change until the end:
// fault.Refused for one who has a way to sign in, or ever signed in. A link for
// such a user would let its holder into an account that is in use.
func lockInvited(ctx context.Context, t *tx, companyID, id string) (account.User, error) {
	u, err := holdUser(ctx, t, companyID, id)
	t.check(err)
	ways := valueIn[int64](ctx, t,
		`SELECT (SELECT COUNT(*) FROM identities WHERE user_id = ?) + (SELECT COUNT(*) FROM passkeys WHERE user_id = ?)
		+ (SELECT COUNT(*) FROM sessions WHERE user_id = ?)`, id, id, id)
	switch {
	case u.Disabled:
		return u, fault.New(fault.Refused, "cannot invite %s: the user is disabled; enable the user first", u.Name)
	case u.PasswordHash != "" || ways > 0 || !u.LastSignInAt.IsZero():
		return u, fault.New(fault.Refused, "cannot invite %s: the user can sign in already; if that is lost, the operator can "+
			"set a password and remove passkeys", u.Name)
	}
	return u, nil
}

// BeginInvitation implements account.InvitationStore.
func (db *DB) BeginInvitation(ctx context.Context, token access.SecretHash, s account.PendingSignIn) (account.User, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (account.User, error) {
		invited, err := lockInvited(ctx, t, s.CompanyID, s.UserID)
		t.check(err)
		t.do(ctx, `DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind = ?`, s.UserID,
			string(s.Kind))
		t.check(saveStep(ctx, t, token, s))
		t.check(addLetter(ctx, t, s, db.now()))
		return invited, db.record(ctx, t, s.CompanyID, activity.Event{Action: activity.UserInvited, Target: userTarget(invited)})
	})
}

// AcceptInvitation implements account.InvitationStore.
func (db *DB) AcceptInvitation(ctx context.Context, token access.SecretHash, passwordHash string, by account.Inviter) (account.User,
	error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (account.User, error) {
		before, err := db.takeInvitation(ctx, t, token, by)
		t.check(err)
		accepted := before
		accepted.PasswordHash = passwordHash
		ctx = access.WithActor(ctx, access.Actor{Kind: access.User, ID: accepted.ID, UserID: accepted.ID, Name: accepted.Name}, "")
		return accepted, db.saveUser(ctx, t, before, accepted, activity.Change{Field: "byInvitationOf", After: by.Name})
	})
}

// takeInvitation ends an invitation and returns its user, who is locked: fault.NotFound or
// fault.Refused if it is over, fault.Forbidden while changes in the portal are stopped.
func (db *DB) takeInvitation(ctx context.Context, t *tx, token access.SecretHash, by account.Inviter) (account.User, error) {
	s, err := db.findStep(ctx, t, token, account.Invitation, "invitation")
	if err != nil {
		return account.User{}, err
	}
	u, err := lockInvited(ctx, t, s.CompanyID, s.UserID)
	if err == nil {
		err = checkInviter(ctx, t, u, by)
	}
	if err == nil {
		_, err = db.takeStep(ctx, t, token, account.Invitation, "invitation")
	}
	if err != nil {
		return u, err
	}
	return u, refuseStopped(ctx, t, s.CompanyID, "the invitation can be accepted once they are resumed")
}

// checkInviter returns fault.Refused if who made an invitation could not make it now: else a thief of an
// account could come back by a link after it was disabled, and who has the link could get rights that an
// administrator has given to the user since.
func checkInviter(ctx context.Context, t *tx, invited account.User, by account.Inviter) error {
	if by.ID == "" {
		return nil
	}
	u, err := findUser(ctx, t, `u.id = ? AND u.company_id = ?`, by.ID, invited.CompanyID)
	if err == nil && (u.Disabled || !u.Rights.Has(account.ManageUsers) || invited.MayDoMoreThan(u)) || fault.CodeOf(err) == fault.NotFound {
		return fault.New(fault.Refused, "the invitation is over: who made it may not invite any more, or may do less than its user now")
	}
	return err
}

// refuseStopped returns fault.Forbidden while changes in the portal are stopped. The stop's reason
// is not for someone who is not in yet.
func refuseStopped(ctx context.Context, t *tx, companyID, then string) error {
	of, err := findCompany(ctx, t, `c.id = ?`, companyID)
	if err == nil && of.Settings.Stop.Refuses(access.User) != nil {
		err = fault.New(fault.Forbidden, "changes are stopped: %s", then)
	}
	return err
}
