package database

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/webhook"
)

// DueWebhooks implements webhook.Queue.
func (db *DB) DueWebhooks(ctx context.Context, now time.Time) ([]webhook.Due, error) {
	return list(ctx, db.read(), into(func(d *webhook.Due) []any { return append(webhookFields(&d.Webhook), &d.CompanySlug, &d.Last) }),
		`SELECT `+webhookColumns+`, c.slug, COALESCE(e.last, 0)`+fromWebhooks+` LEFT JOIN event_heads e ON e.company_id = w.company_id
		WHERE w.state = 'ENABLED' AND w.claim_until <= ? AND (COALESCE(e.last, 0) > w.pos OR w.next_at > 0 AND w.next_at <= ?)
		ORDER BY w.claim_until, w.id`, millis(now), millis(now))
}

const heldColumns = `held, asset_id, pos, attempts, since, next_at`

// HeldBack implements webhook.Queue.
func (db *DB) HeldBack(ctx context.Context, webhookID string) ([]webhook.Held, error) {
	return list(ctx, db.read(), into(func(h *webhook.Held) []any {
		return []any{&h.Key, &h.AssetID, &h.Position, &h.Attempts, at(&h.Since), at(&h.NextAt)}
	}), `SELECT `+heldColumns+` FROM webhook_held WHERE webhook_id = ? ORDER BY next_at, pos`, webhookID)
}

// ClaimWebhook implements webhook.Queue.
func (db *DB) ClaimWebhook(ctx context.Context, w webhook.Webhook, claim string, until time.Time) (bool, error) {
	n, err := db.engine.ExecRelaxed(ctx, `UPDATE webhooks SET claim = ?, claim_until = ?, version = version + 1
		WHERE id = ? AND version = ? AND state = 'ENABLED' AND claim_until <= ?`, claim, millis(until), w.ID, w.Version, millis(db.now()))
	return n == 1, err
}

// PassEvents implements webhook.Queue.
func (db *DB) PassEvents(ctx context.Context, w webhook.Webhook, position int64) error {
	now := millis(db.now())
	return db.execRelaxed(ctx,
		`UPDATE webhooks SET pos = ?, moved_at = ?, version = version + 1 WHERE id = ? AND version = ? AND claim_until <= ?`,
		position, now, w.ID, w.Version, now)
}

// RecordWave implements webhook.Queue. A power cut may undo it, unless it disables the
// webhook: what was sent is then sent again.
func (db *DB) RecordWave(ctx context.Context, r webhook.Record) (mine bool, err error) {
	write := db.writeRelaxed
	if r.Disable != "" || r.Missed > 0 {
		write = db.write
	}
	err = write(ctx, func(ctx context.Context, t *tx) (err error) {
		mine, err = db.recordWave(ctx, t, r)
		return err
	})
	return mine, err
}

func (db *DB) recordWave(ctx context.Context, t *tx, r webhook.Record) (bool, error) {
	if r.Disable != "" || r.Missed > 0 {
		if err := holdCompany(ctx, t, r.CompanyID); err != nil {
			return false, unlessGone(err)
		}
	}
	mine := t.count(ctx,
		`UPDATE webhooks SET pos = ?, moved_at = ?, next_at = ?, missed = missed + ?, tried = tried + ?, claim_until = ?, version = version + 1
		WHERE id = ? AND claim = ? AND state = 'ENABLED'`, r.Position, millis(db.now()), millis(r.NextAt), r.Missed, len(r.Attempts),
		millis(r.Until), r.WebhookID, r.Claim)
	if mine == 0 {
		return false, nil
	}
	for _, key := range r.Free {
		t.do(ctx, `DELETE FROM webhook_held WHERE webhook_id = ? AND held = ?`, r.WebhookID, key)
	}
	for _, h := range r.Held {
		t.do(ctx, `INSERT INTO webhook_held (webhook_id, `+heldColumns+
			`) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (webhook_id, held) DO UPDATE
			SET pos = excluded.pos, attempts = excluded.attempts, since = excluded.since, next_at = excluded.next_at`,
			r.WebhookID, h.Key, h.AssetID, h.Position, h.Attempts, millis(h.Since), millis(h.NextAt))
	}
	t.check(addAttempts(ctx, t, r.WebhookID, r.Attempts))
	return true, db.tellWebhook(ctx, t, r)
}

// tellWebhook records what people have to know of a wave.
func (db *DB) tellWebhook(ctx context.Context, t *tx, r webhook.Record) error {
	if r.Disable == "" && r.Missed == 0 {
		return nil
	}
	w, err := one(ctx, t, into(webhookFields), `SELECT `+webhookColumns+` FROM webhooks w WHERE w.id = ?`, r.WebhookID)
	if err == nil && r.Missed > 0 {
		err = db.recordWebhook(ctx, t, w, activity.WebhookMissed,
			activity.Change{Field: "eventsAtMost", After: strconv.FormatInt(r.Missed, 10)})
	}
	if err != nil || r.Disable == "" {
		return err
	}
	t.do(ctx, `UPDATE webhooks SET state = 'DISABLED', why = ?, disabled_at = ? WHERE id = ?`, r.Disable, millis(db.now()),
		r.WebhookID)
	t.changed(r.CompanyID, attentionHint, w.ID)
	t.check(mailAgain(ctx, t, r.CompanyID, w.ID))
	return db.recordWebhook(ctx, t, w, activity.WebhookDisabled, activity.Change{Field: "why", After: r.Disable})
}

// WebhookFigures counts the webhooks that are disabled, and enabled ones with events that
// their receiver did not take yet.
func (db *DB) WebhookFigures(ctx context.Context) (disabled, failing int, err error) {
	return pair[int, int](ctx, db.read(), `SELECT (SELECT COUNT(*) FROM webhooks w WHERE w.state = 'DISABLED' AND w.disabled_at > 0),
			(SELECT COUNT(*) FROM webhooks w WHERE w.state = 'ENABLED' AND w.next_at > 0)`)
}

// DisabledWebhooks returns the webhooks that are disabled, of all companies and at most 100,
// the longest first.
func (db *DB) DisabledWebhooks(ctx context.Context) ([]webhook.Webhook, error) {
	return list(ctx, db.read(), into(shownWebhook),
		readWebhook+fromWebhooks+` WHERE w.state = 'DISABLED' AND w.disabled_at > 0 ORDER BY w.disabled_at LIMIT ?`, 100)
}
