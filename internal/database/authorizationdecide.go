package database

import (
	"bytes"
	"context"

	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// DecideAuthorization records what a user decided with a passkey just now. It decides
// again, under the lock of the company, whether that counts, and whether what was signed
// is what there is now: fault.Refused if not. A refusal is recorded.
func (db *DB) DecideAuthorization(ctx context.Context, companyID, id, userID, passkeyID string, signed signature.Signed) error {
	var refused error
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		refused = nil
		c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
		if err != nil {
			return err
		}
		a, err := findAuthorization(ctx, t, companyID, id)
		if err != nil {
			return err
		}
		by, _, err := approver(ctx, t, companyID, userID, passkeyID, t.lock())
		if err != nil {
			return err
		}
		decision, err := db.decides(ctx, t, c, a, by, signed)
		if refused = err; fault.CodeOf(err) == fault.Refused {
			return db.recordAuthorization(ctx, t, activity.AuthorizationApproved, activity.Refused, a)
		}
		if refused = nil; err != nil {
			return err
		}
		return db.decide(ctx, t, a, by, passkeyID, decision, signed)
	})
	if err == nil {
		err = refused
	}
	return err
}

// decides returns the decision, or fault.Refused if it does not count.
func (db *DB) decides(ctx context.Context, t *tx, c company.Company, a approval.Authorization, by access.Approver, signed signature.Signed) (signature.Decision, error) {
	now := db.now()
	if err := a.MayBeDecided(now); err != nil {
		return "", err
	}
	device, seen, err := seenOf(ctx, t, c, a)
	if err != nil {
		return "", err
	}
	if device.Device == nil || device.Device.Epoch != a.Epoch {
		return "", fault.New(fault.Refused, "the device is no longer enrolled as it was when this was asked for")
	}
	if err := by.May(a.Matter(device.Device.PolicyID), c.Settings.Controls, now); err != nil {
		return "", err
	}
	head, err := signed.Head()
	if err != nil {
		return "", fault.New(fault.Refused, "what was signed cannot be read").Because(err)
	}
	want, err := a.Document(seen, signature.Person{ID: by.UserID, Name: by.Name}, head.Decision, head.At)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(want, signed.Document) || head.Decision != signature.Approve && head.Decision != signature.Decline {
		return "", fault.New(fault.Refused, "what you saw has changed since: look at it again")
	}
	return head.Decision, nil
}

// approver is the user who signed with a passkey.
func approver(ctx context.Context, t conn, companyID, userID, passkeyID, lock string) (access.Approver, account.Passkey, error) {
	u, err := findRated(ctx, t, companyID, userID, lock)
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

func findRated(ctx context.Context, c conn, companyID, userID, lock string) (rated, error) {
	return find(ctx, c, "user", into(ratedFields), `SELECT `+ratedColumns+` FROM users u WHERE u.id = ? AND u.company_id = ?`+lock, userID, companyID)
}

// approver is a user with what decides whether they may decide.
func (u rated) approver(keys ...account.Passkey) access.Approver {
	a := access.Approver{UserID: u.ID, Name: u.Name, Disabled: u.Disabled, Permissions: u.Rights.Permissions(), Policies: u.Policies,
		CreatedAt: u.CreatedAt, RightsAt: u.rightsAt}
	for _, k := range keys {
		a.Passkeys = append(a.Passkeys, k.CreatedAt)
	}
	return a
}

// decide takes the step from WAITING, and keeps what the user signed.
func (db *DB) decide(ctx context.Context, t *tx, a approval.Authorization, by access.Approver, passkeyID string, decision signature.Decision, signed signature.Signed) error {
	to, action := approval.Approved, activity.AuthorizationApproved
	if decision == signature.Decline {
		to, action = approval.Declined, activity.AuthorizationDeclined
	}
	n, err := t.execCount(ctx, `UPDATE authorizations SET state = ?, decided_at = ?, decided_by = ?, decided_by_name = ?, passkey_id = ?
		WHERE id = ? AND state = 'WAITING'`, string(to), millis(db.now()), by.UserID, by.Name, passkeyID, a.ID)
	if err != nil {
		return err
	}
	if n != 1 {
		return fault.New(fault.Refused, "this was decided at this moment")
	}
	if _, err := db.keepSigned(ctx, t, a.CompanyID, a.ID, signed); err != nil {
		return err
	}
	return db.recordAuthorization(ctx, t, action, activity.OK, a)
}

// seenOf reads what people see of an authorization: its device, and names.
func seenOf(ctx context.Context, c conn, of company.Company, a approval.Authorization) (device asset.Asset, s approval.Seen, err error) {
	device, err = findAsset(ctx, c, a.CompanyID, a.AssetID)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return device, s, err
	}
	s = approval.Seen{Company: of.Slug, DeviceName: device.Identification}
	for _, p := range []struct {
		id   string
		name *string
	}{{a.Move.From.ID, &s.FromName}, {a.Move.To.ID, &s.ToName}} {
		if p.id == "" {
			continue
		}
		found, err := findPolicy(ctx, c, a.CompanyID, p.id, "")
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return device, s, err
		}
		*p.name = found.Name
	}
	return device, s, nil
}

// SeenAuthorization reads an authorization with what people see of it: the device is of
// no enrollment if there is none any more. fault.NotFound: there is no such authorization.
func (db *DB) SeenAuthorization(ctx context.Context, companyID, id string) (a approval.Authorization, device asset.Asset, s approval.Seen, err error) {
	err = db.snapshot(ctx, func(ctx context.Context, c conn) error {
		if a, err = findAuthorization(ctx, c, companyID, id); err != nil {
			return err
		}
		of, err := findCompany(ctx, c, `c.id = ?`, companyID)
		if err != nil {
			return err
		}
		device, s, err = seenOf(ctx, c, of, a)
		return err
	})
	return a, device, s, err
}

// Approvers are the users of a company with what decides whether they may decide about
// what keys and connections ask for.
func (db *DB) Approvers(ctx context.Context, companyID string) (all []access.Approver, err error) {
	users, err := list(ctx, db.read(), into(ratedFields), `SELECT `+ratedColumns+` FROM users u WHERE u.company_id = ? ORDER BY u.id`, companyID)
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
