package database

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// Claims of idempotent requests. Each step is one statement that compares what
// it expects, so that of many twins, on any replica, one wins.

type claimRow struct {
	ref, fingerprint, answer string
	attempt                  int
	leased                   bool
}

func claimFields(c *claimRow) []any {
	return []any{&c.ref, &c.fingerprint, &c.attempt, &c.leased, &c.answer}
}

// leased is that a claim is held. A lease from a clock that was ahead has ended. Its parameters are leasedAt.
const leased = `(leased_until > ? AND (leased_until <= ? OR NOT ` + notBehind + `))`

func leasedAt(c operation.Claim) []any {
	return []any{millis(c.Now), latest(c.Now.Add(c.Lease)), agedMost(c.Now)}
}

// Claim implements operation.Claims.
func (db *DB) Claim(ctx context.Context, c operation.Claim) (operation.Holding, error) {
	h, err := db.firstClaim(ctx, c)
	if !errors.Is(err, engine.ErrNoRow) {
		return h, err
	}
	h, seen, err := db.seeClaim(ctx, c)
	switch {
	case err != nil || h.State != operation.Claimed:
		return h, err
	case seen.ref == "": // released this moment: the caller may come again
		return operation.Holding{State: operation.Running, ID: c.ID}, nil
	}
	return db.takeOver(ctx, c, seen)
}

// FindClaim implements operation.Claims.
func (db *DB) FindClaim(ctx context.Context, c operation.Claim) (operation.Holding, error) {
	h, _, err := db.seeClaim(ctx, c)
	return h, err
}

// seeClaim reads a claim's row; without one, or once it has expired, the row is
// empty.
func (db *DB) seeClaim(ctx context.Context, c operation.Claim) (operation.Holding, claimRow, error) {
	h := operation.Holding{State: operation.Claimed, ID: c.ID}
	seen, err := one(ctx, db.read(), into(claimFields), `SELECT ref, fingerprint, attempt, `+leased+`, answer FROM claims
		WHERE id = ? AND expires_at > ?`, append(leasedAt(c), c.ID, millis(c.Now))...)
	switch {
	case errors.Is(err, engine.ErrNoRow):
		return h, claimRow{}, nil
	case err != nil:
		return operation.Holding{}, seen, err
	}
	same, err := c.Same(seen.fingerprint)
	switch {
	case err != nil:
		return operation.Holding{}, seen, err
	case !same:
		h.State = operation.Differs
	case seen.answer != "":
		h.State, h.Ref = operation.Answered, seen.ref
		h.Answer, err = base64.StdEncoding.DecodeString(seen.answer)
	case seen.leased:
		h.State = operation.Running
	}
	return h, seen, err
}

// firstClaim makes the claim, if there is none or it has expired; engine.ErrNoRow
// if there is.
func (db *DB) firstClaim(ctx context.Context, c operation.Claim) (operation.Holding, error) {
	h := operation.Holding{State: operation.Claimed, ID: c.ID, Ref: resource.NewID(), Attempt: 1}
	err := db.statement(ctx, func(ctx context.Context, on conn) error {
		_, err := value[string](ctx, on,
			`INSERT INTO claims (id, ref, fingerprint, attempt, leased_until, expires_at) VALUES (?, ?, ?, 1, ?, ?)
			ON CONFLICT (id) DO UPDATE SET ref = excluded.ref, fingerprint = excluded.fingerprint, attempt = 1,
				leased_until = excluded.leased_until, expires_at = excluded.expires_at, answer = ''
			WHERE claims.expires_at <= ? RETURNING ref`,
			c.ID, h.Ref, c.Fingerprint, millis(c.Now.Add(c.Lease)), millis(c.Now.Add(c.Keep)), millis(c.Now))
		return err
	})
	return h, err
}

// takeOver takes a claim whose lease has ended, unless another was faster.
func (db *DB) takeOver(ctx context.Context, c operation.Claim, seen claimRow) (operation.Holding, error) {
	h := operation.Holding{State: operation.Claimed, ID: c.ID, Ref: seen.ref, Attempt: seen.attempt + 1}
	n, err := db.execCount(ctx, `UPDATE claims SET attempt = ?, leased_until = ?
		WHERE id = ? AND ref = ? AND attempt = ? AND answer = '' AND NOT `+leased,
		append([]any{h.Attempt, millis(c.Now.Add(c.Lease)), c.ID, seen.ref, seen.attempt}, leasedAt(c)...)...)
	if err != nil {
		return operation.Holding{}, err
	}
	if n == 0 {
		return operation.Holding{State: operation.Running, ID: c.ID}, nil
	}
	return h, nil
}

// ExtendClaim implements operation.Claims.
func (db *DB) ExtendClaim(ctx context.Context, h operation.Holding, until time.Time) error {
	return db.exec(ctx, `UPDATE claims SET leased_until = ? WHERE id = ? AND ref = ? AND attempt = ? AND answer = ''`,
		millis(until), h.ID, h.Ref, h.Attempt)
}

// SettleClaim implements operation.Claims.
func (db *DB) SettleClaim(ctx context.Context, h operation.Holding, answer []byte) error {
	return db.exec(ctx, `UPDATE claims SET answer = ? WHERE id = ? AND ref = ? AND attempt = ? AND answer = ''`,
		base64.StdEncoding.EncodeToString(answer), h.ID, h.Ref, h.Attempt)
}

// ReleaseClaim implements operation.Claims.
func (db *DB) ReleaseClaim(ctx context.Context, h operation.Holding) error {
	return db.exec(ctx, `DELETE FROM claims WHERE id = ? AND ref = ? AND attempt = ? AND answer = ''`, h.ID, h.Ref, h.Attempt)
}

// EndClaimLeases lets every claim be taken over at once. Only a service that
// is alone with its database may do so, and only before it serves: the
// process that held a lease is gone.
func (db *DB) EndClaimLeases(ctx context.Context) error {
	return db.exec(ctx, `UPDATE claims SET leased_until = 0 WHERE answer = '' AND leased_until > 0`)
}
