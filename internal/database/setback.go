package database

import (
	"context"
	"time"
)

// longestPause is longer than anything waits for its next try, and longer than any lease.
const longestPause = time.Hour + clockStep

// pauses are the columns that say until when something waits. Tables that may have many rows have an index of it.
func pauses() [][2]string {
	return [][2]string{
		{"leases", "expires_at"},
		{"platform_quotas", "paused_until"},
		{"platform_outages", "told"},
		{"push_retries", "next_at"},
		{"command_polls", "next_at"},
		{"command_cancels", "tried_at"},
		{"webhooks", "claim_until"},
		{"webhooks", "next_at"},
		{"webhook_held", "next_at"},
		{"mail_users", "next_at"},
		{"mail_letters", "next_at"},
	}
}

// endPauses ends what waits for a time that was set while the clock was ahead: nothing waits that long. Who holds a lease
// keeps it for clockStep, in which a replica that is alive renews it.
func (db *DB) endPauses(ctx context.Context) error {
	now := db.now()
	last := latest(now)
	if _, err := db.execRelaxed(ctx, `UPDATE platform_quotas SET filled_at = ? WHERE filled_at > ?`, millis(now), last); err != nil {
		return err
	}
	for _, p := range pauses() {
		if _, err := db.execRelaxed(ctx, `UPDATE `+p[0]+` SET `+p[1]+` = ? WHERE `+p[1]+` > ?`, last,
			millis(now.Add(longestPause))); err != nil {
			return err
		}
	}
	return nil
}
