package database

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
)

// approver is the user who signed with a passkey.
func approver(ctx context.Context, t conn, companyID, userID, passkeyID string) (access.Approver, account.Passkey, error) {
	u, err := findRated(ctx, t, companyID, userID)
	if err != nil {
		return access.Approver{}, account.Passkey{}, err
	}
	key, err := findPasskey(ctx, t, userID, passkeyID)
	return u.approver(key), key, err
}

// rated is a user with the time since which they have their rights.
type rated struct {
	account.User
	rightsAt time.Time
}

const ratedColumns = userColumns + `, u.rights_at`

// sinceColumn is when an account was made, or when its user last got a right.
const sinceColumn = `CASE WHEN u.rights_at > u.created_at THEN u.rights_at ELSE u.created_at END`

func ratedFields(u *rated) []any { return append(userFields(&u.User), at(&u.rightsAt)) }

func findRated(ctx context.Context, c conn, companyID, userID string) (rated, error) {
	return find(ctx, c, "user", into(ratedFields), `SELECT `+ratedColumns+` FROM users u WHERE u.id = ? AND u.company_id = ?`, userID,
		companyID)
}

// approver is a user with what decides whether they may decide.
func (u rated) approver(keys ...account.Passkey) access.Approver {
	a := access.Approver{UserID: u.ID, Name: u.Name, Disabled: u.Disabled, Permissions: u.Rights.Permissions(),
		Manages: u.Rights.Has(account.ManageCompany), Policies: u.Policies, CreatedAt: u.CreatedAt, RightsAt: u.rightsAt}
	for _, k := range keys {
		a.Passkeys = append(a.Passkeys, k.CreatedAt)
	}
	return a
}

// Decider returns a user as one who may decide, with all of their passkeys.
func (db *DB) Decider(ctx context.Context, companyID, userID string) (access.Approver, error) {
	u, err := findRated(ctx, db.read(), companyID, userID)
	if err != nil {
		return access.Approver{}, err
	}
	keys, err := db.Passkeys(ctx, userID)
	return u.approver(keys...), err
}

// Approvers are the users of a company with what decides whether they may decide about
// what keys and connections ask for.
func (db *DB) Approvers(ctx context.Context, companyID string) (all []access.Approver, err error) {
	users, err := list(ctx, db.read(), into(ratedFields), `SELECT `+ratedColumns+` FROM users u WHERE u.company_id = ? ORDER BY u.id`,
		companyID)
	if err != nil {
		return nil, err
	}
	keys, err := list(ctx, db.read(), into(passkeyFields),
		`SELECT `+passkeyColumns+` FROM passkeys p JOIN users u ON u.id = p.user_id WHERE u.company_id = ?`, companyID)
	for _, u := range users {
		own := slices.DeleteFunc(slices.Clone(keys), func(k account.Passkey) bool { return k.UserID != u.ID })
		all = append(all, u.approver(own...))
	}
	return all, err
}
