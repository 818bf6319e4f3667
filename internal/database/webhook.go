package database

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/webhook"
)

var (
	_ webhook.Store = (*DB)(nil)
	_ webhook.Queue = (*DB)(nil)
)

const webhookColumns = `w.id, w.company_id, w.url, w.events, w.state, w.why, w.disabled_at, w.secret, w.former, w.former_until,
	w.created_at, w.pos, w.moved_at, w.next_at, w.missed, w.version`

const readWebhook = `SELECT ` + webhookColumns + `, c.slug, (SELECT COUNT(*) FROM webhook_held h WHERE h.webhook_id = w.id)`

const fromWebhooks = ` FROM webhooks w JOIN companies c ON c.id = w.company_id`

// webhookFields are the fields of webhookColumns.
func webhookFields(w *webhook.Webhook) []any {
	return []any{&w.ID, &w.CompanyID, &w.URL, asTypes{&w.Events}, &w.State, &w.Why, at(&w.DisabledAt), asBase64{&w.Secret},
		asBase64{&w.Former}, at(&w.FormerUntil),
		at(&w.CreatedAt), &w.Position, at(&w.MovedAt), at(&w.NextAt), &w.Missed, &w.Version}
}

func shownWebhook(w *webhook.Webhook) []any { return append(webhookFields(w), &w.CompanySlug, &w.Held) }

// asTypes are types of events that their column keeps with spaces between.
type asTypes struct{ types *[]event.Type }

func (a asTypes) Scan(column any) error {
	text, err := kept[string](column)
	for _, name := range strings.Fields(text) {
		*a.types = append(*a.types, event.Type(name))
	}
	return err
}

// asBase64 are bytes that their column keeps as text.
type asBase64 struct{ bytes *[]byte }

func (a asBase64) Scan(column any) error {
	text, err := kept[string](column)
	if err == nil {
		*a.bytes, err = base64.StdEncoding.DecodeString(text)
	}
	return err
}

// CreateWebhook implements webhook.Store.
func (db *DB) CreateWebhook(ctx context.Context, w webhook.Webhook) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := findCompany(ctx, t, `c.id = ?`+t.lock(), w.CompanyID) // the count is exact
		t.check(err)
		t.check(beingDeleted(ctx, t, w.CompanyID))
		if n := valueIn[int](ctx, t, `SELECT COUNT(*) FROM webhooks WHERE company_id = ?`, w.CompanyID); n >= webhook.MaxOfCompany {
			return fault.New(fault.Refused, "the company has %d webhooks, which is the most: delete one first", n)
		}
		t.do(ctx,
			`INSERT INTO webhooks (id, company_id, url, events, state, why, disabled_at, secret, former, former_until, created_at, pos, moved_at,
				next_at, missed, tried, version, claim, claim_until)
			SELECT ?, ?, ?, ?, ?, '', 0, ?, '', 0, CAST(? AS BIGINT), COALESCE((SELECT e.last FROM event_heads e WHERE e.company_id = ?), 0), CAST(? AS BIGINT), 0, 0, 0, 1, '', 0`,
			w.ID, w.CompanyID, w.URL, strings.Join(event.Names(w.Events), " "), string(w.State),
			base64.StdEncoding.EncodeToString(w.Secret),
			millis(w.CreatedAt), w.CompanyID, millis(w.MovedAt))
		return db.recordWebhook(ctx, t, w, activity.WebhookCreated,
			activity.Change{Field: "events", After: strings.Join(event.Names(w.Types()), " ")})
	})
}

// recordWebhook records a step of a webhook, and hints to the pages that show it.
func (db *DB) recordWebhook(ctx context.Context, t *tx, w webhook.Webhook, action activity.Action, changes ...activity.Change) error {
	t.changed(w.CompanyID, "webhook", w.ID)
	return db.record(ctx, t, w.CompanyID, activity.Event{Action: action, Reference: w.ID, Changes: activity.Differences(changes...),
		Target: activity.Target{Kind: activity.Webhook, ID: w.ID, Name: w.Host()}})
}

// Webhooks implements webhook.Store.
func (db *DB) Webhooks(ctx context.Context, companyID string) ([]webhook.Webhook, error) {
	return list(ctx, db.read(), into(shownWebhook), readWebhook+fromWebhooks+` WHERE w.company_id = ? ORDER BY w.created_at, w.id`,
		companyID)
}

// Webhook implements webhook.Store.
func (db *DB) Webhook(ctx context.Context, companyID, id string) (webhook.Webhook, error) {
	return find(ctx, db.read(), "webhook", into(shownWebhook), readWebhook+fromWebhooks+` WHERE w.id = ? AND w.company_id = ?`, id,
		companyID)
}

// lockWebhook locks a company, and a webhook of it.
func lockWebhook(ctx context.Context, t *tx, companyID, id string) (webhook.Webhook, error) {
	t.check(holdCompany(ctx, t, companyID))
	return find(ctx, t, "webhook", into(webhookFields),
		`SELECT `+webhookColumns+` FROM webhooks w WHERE w.id = ? AND w.company_id = ?`+t.lock(), id, companyID)
}

// changeWebhook changes a webhook: change returns the assignments of an UPDATE with their
// arguments, and what is recorded. Who sends for it loses the claim.
func (db *DB) changeWebhook(ctx context.Context, companyID, id string, action activity.Action,
	change func(ctx context.Context, t *tx, w webhook.Webhook) (set string, args []any, changes []activity.Change,
		err error)) (webhook.Webhook, error) {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		w, err := lockWebhook(ctx, t, companyID, id)
		t.check(err)
		set, args, changes, err := change(ctx, t, w)
		if err != nil {
			return err
		}
		t.do(ctx, `UPDATE webhooks SET `+set+`, claim = '', claim_until = 0, version = version + 1 WHERE id = ?`,
			append(args, id)...)
		t.hint(event.Topic, companyID)
		if w.State == webhook.Disabled {
			t.changed(companyID, attentionHint, id)
		}
		return db.recordWebhook(ctx, t, w, action, changes...)
	})
	if err != nil {
		return webhook.Webhook{}, err
	}
	return db.Webhook(ctx, companyID, id)
}

// ReplayWebhook implements webhook.Store.
func (db *DB) ReplayWebhook(ctx context.Context, companyID, id string, after int64) (webhook.Webhook, error) {
	return db.changeWebhook(ctx, companyID, id, activity.WebhookReplayed,
		func(ctx context.Context, t *tx, w webhook.Webhook) (string, []any, []activity.Change, error) {
			to := min(after, w.Position)
			t.do(ctx, `DELETE FROM webhook_held WHERE webhook_id = ? AND pos > ?`, id, to)
			return `pos = ?, moved_at = ?, next_at = ` + firstHeld, []any{to, millis(db.now()), id},
				[]activity.Change{{Field: "position", Before: strconv.FormatInt(w.Position, 10), After: strconv.FormatInt(to, 10)}}, nil
		})
}

// firstHeld is when the first of what a webhook, the argument, holds is due.
const firstHeld = `COALESCE((SELECT MIN(h.next_at) FROM webhook_held h WHERE h.webhook_id = ?), 0)`

// RotateWebhook implements webhook.Store.
func (db *DB) RotateWebhook(ctx context.Context, companyID, id string, secret []byte, until time.Time) (webhook.Webhook, error) {
	return db.changeWebhook(ctx, companyID, id, activity.WebhookRotated,
		func(context.Context, *tx, webhook.Webhook) (string, []any, []activity.Change, error) {
			return `former = secret, former_until = ?, secret = ?`, []any{millis(until), base64.StdEncoding.EncodeToString(secret)}, nil,
				nil
		})
}

// FinishWebhookRotation implements webhook.Store.
func (db *DB) FinishWebhookRotation(ctx context.Context, companyID, id string) (webhook.Webhook, error) {
	return db.changeWebhook(ctx, companyID, id, activity.WebhookFinished,
		func(_ context.Context, _ *tx, w webhook.Webhook) (string, []any, []activity.Change, error) {
			if !w.Rotating(db.now()) {
				return "", nil, nil, fault.New(fault.Unsupported, "no rotation runs: one secret signs")
			}
			return `former = '', former_until = 0`, nil, nil, nil
		})
}

// EnableWebhook implements webhook.Store.
func (db *DB) EnableWebhook(ctx context.Context, companyID, id string) (webhook.Webhook, error) {
	return db.changeWebhook(ctx, companyID, id, activity.WebhookEnabled,
		func(ctx context.Context, t *tx, w webhook.Webhook) (string, []any, []activity.Change, error) {
			if w.State != webhook.Disabled {
				return "", nil, nil, fault.New(fault.Unsupported, "the webhook is enabled already")
			}
			now := millis(db.now())
			t.do(ctx, `UPDATE webhook_held SET attempts = 0, since = 0, next_at = ? WHERE webhook_id = ?`,
				now, id)
			return `state = 'ENABLED', why = '', disabled_at = 0, next_at = ` + firstHeld, []any{id}, nil, nil
		})
}

// DeleteWebhook implements webhook.Store.
func (db *DB) DeleteWebhook(ctx context.Context, companyID, id string) (webhook.Webhook, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (w webhook.Webhook, err error) {
		w, err = lockWebhook(ctx, t, companyID, id)
		t.check(err)
		t.do(ctx, `DELETE FROM webhook_held WHERE webhook_id = ?`, id)
		t.do(ctx, `DELETE FROM webhook_attempts WHERE webhook_id = ?`, id)
		t.do(ctx, `DELETE FROM webhooks WHERE id = ?`, id)
		return w, db.recordWebhook(ctx, t, w, activity.WebhookDeleted)
	})
}

const attemptColumns = `at, event_id, type, pos, attempt, status, detail, took, next_at`

// WebhookAttempts implements webhook.Store.
func (db *DB) WebhookAttempts(ctx context.Context, companyID, id string) ([]webhook.Attempt, error) {
	if _, err := db.Webhook(ctx, companyID, id); err != nil {
		return nil, err
	}
	return list(ctx, db.read(), into(func(a *webhook.Attempt) []any {
		return []any{at(&a.At), &a.EventID, &a.Type, &a.Position, &a.Number, &a.Status, &a.Detail, (*duration)(&a.Took), at(&a.NextAt)}
	}), `SELECT `+attemptColumns+` FROM webhook_attempts WHERE webhook_id = ? ORDER BY n DESC LIMIT ?`, id, webhook.MaxAttempts)
}

// AddWebhookAttempt implements webhook.Store.
func (db *DB) AddWebhookAttempt(ctx context.Context, companyID, id string, a webhook.Attempt) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if t.count(ctx, `UPDATE webhooks SET tried = tried + 1 WHERE id = ? AND company_id = ?`, id, companyID) == 0 {
			return nil // it was deleted
		}
		return addAttempts(ctx, t, id, []webhook.Attempt{a})
	})
}

// addAttempts keeps attempts of a webhook that is locked and counts them already, and
// removes older ones.
func addAttempts(ctx context.Context, t *tx, id string, all []webhook.Attempt) error {
	if len(all) == 0 {
		return nil
	}
	tried := valueIn[int64](ctx, t, `SELECT tried FROM webhooks WHERE id = ?`, id)
	for i, a := range all {
		t.check(t.Insert(ctx, "webhook_attempts", `webhook_id, n, `+attemptColumns,
			[]any{id, tried - int64(len(all)-1-i), millis(a.At), a.EventID, string(a.Type), a.Position,
				a.Number, a.Status, a.Detail, a.Took.Milliseconds(), millis(a.NextAt)}))
	}
	return t.Exec(ctx, `DELETE FROM webhook_attempts WHERE webhook_id = ? AND n <= ?`, id, tried-webhook.MaxAttempts)
}
