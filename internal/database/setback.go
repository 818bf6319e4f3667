package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
)

// pause is a column that says since or until when something waits, at most so long from the present.
type pause struct {
	table, column string
	longest       time.Duration
}

// retry is the longest time to a next try.
const retry = time.Hour

// pauses are those that a clock that was ahead makes longer. Tables that may have many rows have an index of the column.
func pauses() []pause {
	return []pause{
		{"platform_quotas", "filled_at", 0},
		{"platform_outages", "told", 0},
		{"company_deletions", "begun_at", 0},
		{"api_keys", "last_used_at", 0},
		{"oauth_connections", "last_used_at", 0},
		{"oauth_grants", "last_used_at", 0},
		{"retentions", "next_at", company.RetentionNotice},
		{"leases", "expires_at", 30 * time.Minute},
		{"platform_quotas", "paused_until", time.Minute},
		{"push_retries", "next_at", 10 * time.Minute},
		{"command_polls", "next_at", retry},
		{"command_cancels", "tried_at", 0},
		{"proposals", "look_at", 10 * time.Minute},
		{"enrollment_codes", "drop_at", time.Minute},
		{"webhooks", "moved_at", 0},
		{"webhooks", "claim_until", time.Minute},
		{"webhooks", "next_at", retry},
		{"webhook_held", "next_at", retry},
		{"mail_users", "next_at", retry},
		{"mail_letters", "next_at", retry},
	}
}

// endPauses ends what waits for a time that was set while the clock was ahead: nothing waits that long. Who holds a lease
// keeps it for access.ClockStep, in which a replica that is alive renews it.
func (db *DB) endPauses(ctx context.Context) error {
	now := db.now()
	for _, p := range pauses() {
		statement := `UPDATE ` + p.table + ` SET ` + p.column + ` = ? WHERE ` + p.column + ` > 0 AND ` + p.column + ` > ?`
		if err := db.execRelaxed(ctx, statement, latest(now), latest(now.Add(p.longest))); err != nil {
			return err
		}
	}
	// The silence of a device that set out to erase itself shows that it did.
	if err := db.execRelaxed(ctx, `UPDATE agent_devices SET erasing_at = CASE WHEN erasing_at > ? THEN ? ELSE erasing_at END,
			seen_at = CASE WHEN seen_at > ? THEN ? ELSE seen_at END
		WHERE erasing_at <> 0 AND (erasing_at > ? OR seen_at > ?)`,
		latest(now), millis(now), latest(now), millis(now), latest(now), latest(now)); err != nil {
		return err
	}
	return db.expireAhead(ctx, latest(now), latest(now.Add(time.Minute)))
}

// endRights ends sessions, steps, codes and access tokens, and calls and changes to decide about, that began while the clock
// was ahead. They would count for as much longer, or those that access.Holds refuses would count again when their time comes.
// What began before and was used then is set right, and a time that a person signed stays. What lasts for days or longer stays:
// a clock that is behind for a moment would end all of it. So do proposals, whose time it would have over when it is right again.
// The answer to an Idempotency-Key from then is kept for its time from now on: a repetition must find it.
func (db *DB) endRights(ctx context.Context) error {
	now := db.now()
	pending := latest(now.Add(account.PendingLife))
	over := millis(now.Add(-approval.WaitFor))
	for _, s := range []part{
		{`DELETE FROM sessions WHERE created_at > ?`, []any{latest(now)}},
		{`UPDATE sessions SET seen_at = CASE WHEN seen_at > ? THEN CAST(? AS BIGINT) ELSE seen_at END,
			proved_at = CASE WHEN proved_at > ? THEN 0 ELSE proved_at END WHERE seen_at > ? OR proved_at > ?`,
			[]any{latest(now), millis(now), latest(now), latest(now), latest(now)}},
		{`DELETE FROM signin_steps WHERE expires_at > ? AND kind IN (?, ?, ?, ?, ?, ?)`, []any{pending, string(account.SecondFactor),
			string(account.AddPasskey), string(account.ProvePasskey), string(account.SignDocument), string(account.ComputerCode),
			string(account.LinkingIdentity)}},
		{`DELETE FROM oauth_codes WHERE expires_at > ?`, []any{latest(now.Add(time.Minute))}},
		{`DELETE FROM oauth_tokens WHERE NOT refresh AND expires_at > ?`, []any{latest(now.Add(15 * time.Minute))}},
		{`UPDATE authorizations SET created_at = ? WHERE state = 'WAITING' AND created_at > ?`, []any{over, latest(now)}},
		{`UPDATE authorizations SET decided_at = ? WHERE state = 'APPROVED' AND decided_at > ? AND created_at > ?`,
			[]any{over, latest(now), latest(now.Add(-approval.WaitFor))}},
		{`UPDATE proposals SET expires_at = expires_at - (created_at - ?), created_at = ?
			WHERE status = 'PENDING' AND expiry_told = 0 AND approval = '' AND expires_at > ? AND created_at > ? AND ` +
			notBehind, []any{millis(now), millis(now), latest(now), latest(now), agedMost(now)}},
		{`UPDATE claims SET expires_at = ? WHERE expires_at > ? AND ` + notBehind, []any{millis(now.Add(operation.KeepAnswers)),
			latest(now.Add(operation.KeepAnswers)), agedMost(now)}},
	} {
		if err := db.execRelaxed(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}
