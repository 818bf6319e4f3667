package database

import (
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

const passkeyColumns = `p.id, p.user_id, p.name, p.credential, p.created_at, p.last_used_at`

func passkeyFields(p *account.Passkey) []any {
	return []any{&p.ID, &p.UserID, &p.Name, asText(&p.Credential), at(&p.CreatedAt), at(&p.LastUsedAt)}
}

func findPasskey(ctx context.Context, c conn, userID, id string) (account.Passkey, error) {
	return find(ctx, c, "passkey", into(passkeyFields), `SELECT `+passkeyColumns+` FROM passkeys p WHERE p.id = ? AND p.user_id = ?`, id,
		userID)
}

// Passkeys implements account.PasskeyStore.
func (db *DB) Passkeys(ctx context.Context, userID string) ([]account.Passkey, error) {
	return list(ctx, db.read(), into(passkeyFields),
		`SELECT `+passkeyColumns+` FROM passkeys p WHERE p.user_id = ? ORDER BY p.created_at, p.id`, userID)
}

// PasskeyUser returns the user whose passkey has the id, or fault.NotFound.
func (db *DB) PasskeyUser(ctx context.Context, id string) (account.User, error) {
	return findUser(ctx, db.read(), `u.id = (SELECT p.user_id FROM passkeys p WHERE p.id = ?)`, id)
}

// AddPasskey implements account.PasskeyStore.
func (db *DB) AddPasskey(ctx context.Context, p account.Passkey) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		lockUser(ctx, t, p.UserID)
		if n := valueIn[int](ctx, t, `SELECT COUNT(*) FROM passkeys WHERE user_id = ?`, p.UserID); n >= account.MaxPasskeys {
			return account.TooManyPasskeys()
		}
		t.check(t.Insert(ctx, "passkeys", passkeyColumns, passkeyFields(&p)))
		return db.recordPerson(ctx, t, p.UserID, activity.PasskeyAdded, activity.OK, activity.Change{Field: "passkey", After: p.Name})
	})
	return taken(err, "this passkey is known already")
}

// UsePasskey implements account.PasskeyStore.
func (db *DB) UsePasskey(ctx context.Context, p account.Passkey) error {
	n, err := db.execCount(ctx, `UPDATE passkeys SET credential = ?, last_used_at = ? WHERE id = ?`, string(p.Credential),
		millis(p.LastUsedAt), p.ID)
	if err == nil && n == 0 {
		err = fault.New(fault.Refused, "this passkey was removed")
	}
	return err
}

// lockUser makes changes of a user's second factors wait for each other: each
// depends on what the others left.
func lockUser(ctx context.Context, t *tx, userID string) {
	t.holds(ctx, `SELECT id FROM users WHERE id = ?`+t.hold(), userID)
}

// RemovePasskey implements account.PasskeyStore.
func (db *DB) RemovePasskey(ctx context.Context, userID, id string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		holdCompanyOf(ctx, t, "users", userID)
		lockUser(ctx, t, userID)
		called, err := find(ctx, t, "passkey", scanValue[string], `DELETE FROM passkeys WHERE id = ? AND user_id = ? RETURNING name`, id,
			userID)
		t.check(err)
		t.do(ctx, `DELETE FROM recovery_codes WHERE user_id = ?
			AND NOT EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = ?)`, userID, userID)
		t.check(db.recordPerson(ctx, t, userID, activity.PasskeyRemoved, activity.OK,
			activity.Change{Field: "passkey", Before: called}))
		db.voidDecisions(ctx, t, valueIn[string](ctx, t, `SELECT company_id FROM users WHERE id = ?`, userID))
		return nil
	})
}

// RemovePasskeys implements account.UserStore.
func (db *DB) RemovePasskeys(ctx context.Context, companyID, id string) (account.User, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (account.User, error) {
		u, err := holdUser(ctx, t, companyID, id)
		t.check(err)
		t.raises(companyID)
		for _, called := range listed(ctx, t, scanValue[string], `DELETE FROM passkeys WHERE user_id = ? RETURNING name`, id) {
			t.check(db.recordPerson(ctx, t, id, activity.PasskeyRemoved, activity.OK, activity.Change{Field: "passkey", Before: called}))
		}
		t.do(ctx, `DELETE FROM recovery_codes WHERE user_id = ?`, id)
		t.do(ctx, `DELETE FROM sessions WHERE user_id = ?`, id)
		t.do(ctx, `DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind <> ?`, id, string(account.Invitation))
		db.voidDecisions(ctx, t, companyID)
		return u, nil
	})
}

// SetRecoveryCodes implements account.PasskeyStore.
func (db *DB) SetRecoveryCodes(ctx context.Context, userID string, hashes []access.SecretHash) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		lockUser(ctx, t, userID)
		t.do(ctx, `DELETE FROM recovery_codes WHERE user_id = ?`, userID)
		for _, h := range hashes {
			t.do(ctx, `INSERT INTO recovery_codes (user_id, hash) VALUES (?, ?)`, userID,
				hex.EncodeToString(h[:]))
		}
		return db.recordPerson(ctx, t, userID, activity.RecoveryRenewed, activity.OK)
	})
}

// UseRecoveryCode implements account.PasskeyStore.
func (db *DB) UseRecoveryCode(ctx context.Context, userID string, hash access.SecretHash) error {
	n, err := db.execCount(ctx, `DELETE FROM recovery_codes WHERE user_id = ? AND hash = ?`, userID, hex.EncodeToString(hash[:]))
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "no such recovery code")
	}
	return err
}

// RecoveryCodes implements account.PasskeyStore.
func (db *DB) RecoveryCodes(ctx context.Context, userID string) (int, error) {
	return value[int](ctx, db.read(), `SELECT COUNT(*) FROM recovery_codes WHERE user_id = ?`, userID)
}
