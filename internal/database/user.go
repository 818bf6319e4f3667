package database

import (
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
)

const userColumns = `u.id, u.company_id, u.email, u.name, u.role, u.rights, u.policies, u.password_hash, u.disabled,
	u.created_at, u.last_sign_in_at`

// userFields receives userColumns.
func userFields(u *account.User) []any {
	return []any{&u.ID, &u.CompanyID, &u.Email, &u.Name, &u.Role, &u.Rights, encoded{&u.Policies}, &u.PasswordHash, &u.Disabled,
		at(&u.CreatedAt), at(&u.LastSignInAt)}
}

// CreateUser adds a portal user.
func (db *DB) CreateUser(ctx context.Context, u account.User) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error { return db.createUser(ctx, t, u) })
}

// CreateUserAmong implements account.UserStore. A new row of the company keeps the provider
// from being saved, see lockUsers; so it is read after that.
func (db *DB) CreateUserAmong(ctx context.Context, u account.User, check func(account.IdentityProvider) error) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if err := db.createUser(ctx, t, u); err != nil {
			return err
		}
		p, err := anyProvider(ctx, t, u.CompanyID)
		if err != nil {
			return err
		}
		return check(p)
	})
}

func (db *DB) createUser(ctx context.Context, t *tx, u account.User) error {
	if err := t.Insert(ctx, "users", userColumns, userFields(&u)); err != nil {
		return taken(err, "there is a user %s already", u.Email)
	}
	t.check(followMail(ctx, t, u.CompanyID, u.ID))
	return db.recordUser(ctx, t, activity.UserCreated, account.User{}, u)
}

// UserByID finds a user of a company.
func (db *DB) UserByID(ctx context.Context, companyID, id string) (account.User, error) {
	return findUser(ctx, db.read(), `u.id = ? AND u.company_id = ?`, id, companyID)
}

// UserByEmail finds a user of any company.
func (db *DB) UserByEmail(ctx context.Context, email string) (account.User, error) {
	return findUser(ctx, db.read(), `u.email = ?`, email)
}

func findUser(ctx context.Context, c conn, where string, args ...any) (account.User, error) {
	return find(ctx, c, "user", into(userFields), `SELECT `+userColumns+` FROM users u WHERE `+where, args...)
}

// Users lists a company's users, by address.
func (db *DB) Users(ctx context.Context, companyID string) ([]account.User, error) {
	return list(ctx, db.read(), into(userFields), `SELECT `+userColumns+` FROM users u WHERE u.company_id = ? ORDER BY u.email`, companyID)
}

// UpdateUser changes what change changes, but for id, company and creation. A
// user that is disabled, or gets another password, loses every session, and what they have
// begun to sign in with.
func (db *DB) UpdateUser(ctx context.Context, companyID, id string, change func(*account.User) error) (account.User, error) {
	return db.updateUser(ctx, companyID, id, func(_ context.Context, _ *tx, u *account.User) error { return change(u) })
}

// ofUser removes what is a user's alone, in an order that foreign keys allow.
func ofUser() []string {
	const connections = `SELECT c.id FROM oauth_connections c WHERE c.user_id = ?`
	return []string{
		`DELETE FROM oauth_codes WHERE user_id = ?`, // a code that is being redeemed is waited for: its connection is found after it
		`DELETE FROM oauth_tokens WHERE grant_id IN (SELECT g.id FROM oauth_grants g WHERE g.connection_id IN (` + connections + `))`,
		`DELETE FROM oauth_grants WHERE connection_id IN (` + connections + `)`,
		`DELETE FROM oauth_connections WHERE user_id = ?`,
		`DELETE FROM identities WHERE user_id = ?`,
		`DELETE FROM passkeys WHERE user_id = ?`,
		`DELETE FROM recovery_codes WHERE user_id = ?`,
		`DELETE FROM mail_letters WHERE user_id = ?`,
		`DELETE FROM mail_told WHERE user_id = ?`,
		`DELETE FROM mail_users WHERE user_id = ?`,
		`DELETE FROM saved_views WHERE user_id = ?`,
		`DELETE FROM sessions WHERE user_id = ?`,
		`DELETE FROM signin_steps WHERE user_id = ? AND user_id <> ''`,
		`DELETE FROM users WHERE id = ?`,
	}
}

// DeleteUser implements account.UserStore.
func (db *DB) DeleteUser(ctx context.Context, companyID, id string) (account.User, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (account.User, error) {
		u, err := holdUser(ctx, t, companyID, id)
		t.check(err)
		t.raises(companyID)
		t.changed(companyID, attentionHint, "") // what waits for a person because of the user's connections does no more
		for _, statement := range ofUser() {
			t.do(ctx, statement, id)
		}
		t.check(db.record(ctx, t, companyID, activity.Event{Action: activity.UserDeleted, Target: userTarget(u)}))
		db.voidDecisions(ctx, t, companyID)
		return u, nil
	})
}

// UpdateUserAmong implements account.UserStore. The company is locked, so that two people
// cannot take each other's right at one moment.
func (db *DB) UpdateUserAmong(ctx context.Context, companyID, id string, change func(u *account.User,
	among account.Among) error) (account.User, error) {
	return db.updateUser(ctx, companyID, id, func(ctx context.Context, t *tx, u *account.User) error {
		others, err := list(ctx, t, into(userFields), `SELECT `+userColumns+` FROM users u WHERE u.company_id = ? AND u.id <> ?`,
			companyID, id)
		t.check(err)
		var among account.Among
		if among.Provider, err = anyProvider(ctx, t, companyID); err != nil {
			return err
		}
		for _, other := range others {
			if !other.Disabled && other.Rights.Has(account.ManageUsers) {
				among.Managers++
			}
		}
		return change(u, among)
	})
}

// holdUser locks a company, and a user of it, whose decisions may end: who claims or
// decides holds the company, and needs no lock of the user. The user's connections, which may
// end as well, are locked before.
func holdUser(ctx context.Context, t *tx, companyID, id string) (account.User, error) {
	lockConnectionsOf(ctx, t, companyID, id)
	t.check(holdCompany(ctx, t, companyID))
	return findUser(ctx, t, `u.id = ? AND u.company_id = ?`+t.hold(), id, companyID)
}

func (db *DB) updateUser(ctx context.Context, companyID, id string, change func(context.Context, *tx,
	*account.User) error) (account.User, error) {
	var updated account.User
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		u, err := holdUser(ctx, t, companyID, id)
		if err != nil {
			return err
		}
		next := u
		if err := change(ctx, t, &next); err != nil {
			return err
		}
		next.ID, next.CompanyID, next.CreatedAt = u.ID, u.CompanyID, u.CreatedAt
		updated = next
		return db.saveUser(ctx, t, u, next)
	})
	if err = taken(err, "there is a user %s already", updated.Email); err != nil {
		return account.User{}, err
	}
	return updated, nil
}

// saveUser saves a user, and records what changed, with more that the record is
// to say.
func (db *DB) saveUser(ctx context.Context, t *tx, before, next account.User, more ...activity.Change) error {
	t.do(ctx, `UPDATE users SET email = ?, name = ?, role = ?, rights = ?, policies = ?, password_hash = ?,
			disabled = ?, last_sign_in_at = ?, rights_at = CASE WHEN CAST(? AS BOOLEAN) THEN CAST(? AS BIGINT) ELSE rights_at END WHERE id = ?`,
		next.Email, next.Name, string(next.Role), int64(next.Rights), encode(next.Policies), next.PasswordHash,
		next.Disabled, millis(next.LastSignInAt), gains(before, next), millis(db.now()), next.ID)
	if lessens(before, next) {
		t.raises(next.CompanyID)
	}
	if next.Disabled || next.PasswordHash != before.PasswordHash {
		t.do(ctx, `DELETE FROM sessions WHERE user_id = ?`, next.ID)
		t.do(ctx,
			`DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind IN ('SECOND_FACTOR', 'LINKING_IDENTITY')`,
			next.ID)
	}
	t.check(db.recordUser(ctx, t, activity.UserChanged, before, next, more...))
	// Older programs left the connections of a user whom they disabled: they end when the user is enabled.
	if before.Disabled != next.Disabled {
		db.endConnections(ctx, t, next)
	}
	if loses(before, next) {
		db.voidDecisions(ctx, t, next.CompanyID)
	}
	return nil
}

// loses reports whether a user can do less than before.
func loses(before, next account.User) bool {
	return gains(next, before) || !slices.Equal(before.Policies, next.Policies)
}

// gains reports whether a user can do more than before, or the same for more policies.
func gains(before, next account.User) bool {
	return next.Rights&^before.Rights != 0 || before.Disabled && !next.Disabled ||
		before.Policies != nil && (next.Policies == nil ||
			slices.ContainsFunc(next.Policies, func(id string) bool { return !slices.Contains(before.Policies, id) }))
}

// lessens reports whether a save may take from a user what they could do, or end their
// sessions.
func lessens(before, next account.User) bool {
	return next.Rights != before.Rights || next.Role != before.Role || next.Disabled != before.Disabled ||
		next.PasswordHash != before.PasswordHash ||
		(next.Policies == nil) != (before.Policies == nil) || !slices.Equal(next.Policies, before.Policies)
}

// recordUser records what a save changed about a user; of a password only
// that it was set.
func (db *DB) recordUser(ctx context.Context, t *tx, action activity.Action, before, after account.User, more ...activity.Change) error {
	changes := activity.Differences(
		activity.Change{Field: "email", Before: before.Email, After: after.Email},
		activity.Change{Field: "name", Before: before.Name, After: after.Name},
		activity.Change{Field: "role", Before: string(before.Role), After: string(after.Role)},
		activity.Change{Field: "rights", Before: strings.Join(before.Rights.Names(), " "), After: strings.Join(after.Rights.Names(), " ")},
		activity.Change{Field: "policies", Before: policiesText(before), After: policiesText(after)},
		activity.Change{Field: "disabled", Before: access.OnOff(before.Disabled), After: access.OnOff(after.Disabled)},
	)
	if before.PasswordHash != after.PasswordHash {
		changes = append(changes, activity.Change{Field: "password", After: "changed"})
	}
	if changes = append(changes, more...); len(changes) == 0 {
		return nil
	}
	return db.record(ctx, t, after.CompanyID, activity.Event{Action: action, Changes: changes, Target: userTarget(after)})
}

func userTarget(u account.User) activity.Target {
	return activity.Target{Kind: activity.User, ID: u.ID, Name: u.Email}
}

func policiesText(u account.User) string {
	switch {
	case u.ID == "":
		return ""
	case u.Policies == nil:
		return "all"
	}
	return strings.Join(u.Policies, " ")
}
