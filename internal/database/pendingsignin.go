package database

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

const stepColumns = `kind, company_id, user_id, data, expires_at`

func scanStep(r row) (s account.PendingSignIn, err error) {
	var data string
	var expires int64
	err = r.Scan(&s.Kind, &s.CompanyID, &s.UserID, &data, &expires)
	s.Data, s.ExpiresAt = json.RawMessage(data), instant(expires)
	return s, err
}

// SaveStep implements access.PendingStore, and drops what has expired.
func (db *DB) SaveStep(ctx context.Context, token access.SecretHash, s account.PendingSignIn) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.exec(ctx, `DELETE FROM signin_steps WHERE expires_at < ?`, millis(db.now())); err != nil {
			return err
		}
		return saveStep(ctx, t, token, s)
	})
	if unique(err) {
		return fault.New(fault.Refused, "this step was begun already")
	}
	return err
}

func saveStep(ctx context.Context, t *tx, token access.SecretHash, s account.PendingSignIn) error {
	return t.exec(ctx, `INSERT INTO signin_steps (hash, `+stepColumns+`) VALUES (?, ?, ?, ?, ?, ?)`,
		hex.EncodeToString(token[:]), string(s.Kind), s.CompanyID, s.UserID, string(s.Data), millis(s.ExpiresAt))
}

// Step implements access.PendingStore.
func (db *DB) Step(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	s, err := one(ctx, db.read(), scanStep, `SELECT `+stepColumns+` FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ?`,
		hex.EncodeToString(token[:]), string(kind), millis(db.now()))
	return found(s, err, "step")
}

// TakeStep implements access.PendingStore.
func (db *DB) TakeStep(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	var s account.PendingSignIn
	err := db.statement(ctx, func(ctx context.Context, c conn) (err error) {
		s, err = one(ctx, c, scanStep, `DELETE FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ? RETURNING `+stepColumns,
			hex.EncodeToString(token[:]), string(kind), millis(db.now()))
		return err
	})
	return found(s, err, "step")
}

// DropSteps implements access.PendingStore.
func (db *DB) DropSteps(ctx context.Context, userID string, kind account.PendingKind) error {
	return db.statement(ctx, func(ctx context.Context, c conn) error {
		return c.exec(ctx, `DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind = ?`, userID, string(kind))
	})
}
