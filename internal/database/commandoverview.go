package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
)

// dayMillis is a day of UTC in milliseconds, as in the statement of Tallies.
const dayMillis = int64(24 * time.Hour / time.Millisecond)

// ofPolicies is a condition with its arguments: what a query has is one of the policies. Nil: any.
func ofPolicies(what string, policies []string) (string, []any) {
	if policies == nil {
		return "", nil
	}
	if len(policies) == 0 {
		return ` AND 1 = 0`, nil
	}
	return ` AND ` + what + ` IN (` + marks(len(policies)) + `)`, anys(policies)
}

// policyOfCommand is the policy of the asset of a command c.
const policyOfCommand = `(SELECT a.policy_id FROM assets a WHERE a.id = c.asset_id)`

// Tallies implements command.Overview.
func (db *DB) Tallies(ctx context.Context, companyID string, policies []string, since time.Time) ([]command.Tally, error) {
	where, args := ofPolicies(policyOfCommand, policies)
	return list(ctx, db.read(), func(r row) (t command.Tally, err error) {
		var day int64
		err = r.Scan(&day, &t.State, &t.Count)
		t.Day = instant(day * dayMillis)
		return t, err
	}, `SELECT c.created_at / 86400000, c.state, COUNT(*) FROM commands c
		WHERE c.company_id = ? AND c.created_at >= ?`+where+` GROUP BY c.created_at / 86400000, c.state`,
		append([]any{companyID, millis(since)}, args...)...)
}

// fromUnfinished selects a company's commands that are not final, by the time of their creation. They are found among those
// that are open: SQLite, which does not know how few they are, would look at all of the company's.
const fromUnfinished = ` FROM commands c WHERE c.state IN ('PREPARED', 'SENT', 'UNCONFIRMED')
	AND c.company_id || '' = ? AND c.created_at >= ? AND c.created_at < ?`

// Unfinished implements command.Overview.
func (db *DB) Unfinished(ctx context.Context, companyID string, policies []string, from, before time.Time, limit int) (int, error) {
	where, args := ofPolicies(policyOfCommand, policies)
	args = append(append([]any{companyID, millis(from), millis(before)}, args...), limit)
	return value[int](ctx, db.read(), `SELECT COUNT(*) FROM (SELECT c.id`+fromUnfinished+where+` LIMIT ?) AS open`, args...)
}

// UnfinishedList implements command.Overview.
func (db *DB) UnfinishedList(ctx context.Context, companyID string, policies []string, from, before time.Time,
	limit int) ([]command.Named, error) {
	where, args := ofPolicies(policyOfCommand, policies)
	args = append(append([]any{companyID, millis(from), millis(before)}, args...), limit)
	return list(ctx, db.read(), into(func(n *command.Named) []any { return append(commandFields(&n.Command), &n.Identification) }),
		`SELECT `+commandColumns+`, COALESCE((SELECT a.identification FROM assets a WHERE a.id = c.asset_id
			AND a.company_id = c.company_id), '')`+fromUnfinished+where+` ORDER BY c.created_at DESC, c.id DESC LIMIT ?`, args...)
}

// Abandoned returns intents that no replica works on, oldest first: those
// made before a time, and those of a replica that is no longer present.
func (db *DB) Abandoned(ctx context.Context, before time.Time, limit int) ([]command.Command, error) {
	now := db.now()
	return list(ctx, db.read(), into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE `+isOpen+` AND state = 'PREPARED' AND (created_at < ? OR created_at < ? AND sender <> '' AND NOT EXISTS
			(SELECT 1 FROM leases WHERE name = ? || sender AND expires_at > ?))
		ORDER BY created_at, id LIMIT ?`, millis(before), millis(now.Add(-engine.PresentFor)), engine.ReplicaPrefix, millis(now), limit)
}

// maxQueue bounds the count of a queue.
const maxQueue = 10_000

// Queues counts what of a company is under way, each up to 10,000: commands without a final
// state, and jobs that are not over.
func (db *DB) Queues(ctx context.Context, companyID string) (commands, jobs int, err error) {
	commands, err = value[int](ctx, db.read(), `SELECT COUNT(*) FROM (SELECT id FROM commands WHERE company_id || '' = ? AND `+isOpen+
		` LIMIT ?) q`, companyID, maxQueue)
	if err != nil {
		return 0, 0, err
	}
	jobs, err = value[int](ctx, db.read(),
		`SELECT COUNT(*) FROM (SELECT id FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED') LIMIT ?) q`,
		companyID, maxQueue)
	return commands, jobs, err
}
