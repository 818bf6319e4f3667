package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
)

const stepColumns = `kind, company_id, user_id, data, expires_at`

func stepFields(s *account.PendingSignIn) []any {
	return []any{&s.Kind, &s.CompanyID, &s.UserID, asText(&s.Data), at(&s.ExpiresAt)}
}

// SaveStep implements access.PendingStore, and drops what has expired.
func (db *DB) SaveStep(ctx context.Context, token access.SecretHash, s account.PendingSignIn) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.exec(ctx, `DELETE FROM signin_steps WHERE expires_at < ?`, millis(db.now())); err != nil {
			return err
		}
		return saveStep(ctx, t, token, s)
	})
	return taken(err, "this step was begun already")
}

func saveStep(ctx context.Context, t *tx, token access.SecretHash, s account.PendingSignIn) error {
	return t.insert(ctx, "signin_steps", stepColumns+", hash", append(stepFields(&s), digest(token[:])))
}

// Step implements access.PendingStore.
func (db *DB) Step(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	return find(ctx, db.read(), "step", into(stepFields), `SELECT `+stepColumns+` FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ?`,
		digest(token[:]), string(kind), millis(db.now()))
}

// TakeStep implements access.PendingStore.
func (db *DB) TakeStep(ctx context.Context, token access.SecretHash, kind account.PendingKind) (account.PendingSignIn, error) {
	var s account.PendingSignIn
	err := db.statement(ctx, func(ctx context.Context, c conn) (err error) {
		s, err = db.takeStep(ctx, c, token, kind, "step")
		return err
	})
	return s, err
}

func (db *DB) takeStep(ctx context.Context, c conn, token access.SecretHash, kind account.PendingKind, noun string) (account.PendingSignIn, error) {
	return find(ctx, c, noun, into(stepFields), `DELETE FROM signin_steps WHERE hash = ? AND kind = ? AND expires_at > ? RETURNING `+stepColumns,
		digest(token[:]), string(kind), millis(db.now()))
}

// DropSteps implements access.PendingStore.
func (db *DB) DropSteps(ctx context.Context, userID string, kind account.PendingKind) error {
	return db.exec(ctx, `DELETE FROM signin_steps WHERE user_id = ? AND user_id <> '' AND kind = ?`, userID, string(kind))
}
