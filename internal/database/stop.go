package database

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
)

// automated are open commands, as c, that keys and connections of a company sent.
// They are found among the open ones, not in the company's history.
const automated = `c.company_id || '' = ? AND ` + byAutomation

// byAutomation is automated for all companies.
const byAutomation = `c.state IN ('PREPARED', 'SENT', 'UNCONFIRMED') AND c.state <> 'PREPARED'
	AND c.actor_kind IN ('API_KEY', 'CONNECTION')`

// unoffered are deliveries that no device can have: from the first offer on, a
// lease is longer than it was made.
const unoffered = `lease_until = created_at AND accepted_at = 0`

// recordStop records that a company was stopped, or resumed.
func (db *DB) recordStop(ctx context.Context, t *tx, before, after access.Stop, e activity.Event) error {
	if before == after {
		return nil
	}
	e.Action = activity.CompanyStopped
	if !after.On() {
		e.Action = activity.CompanyResumed
	}
	e.Changes = activity.Differences(activity.Change{Field: "reason", Before: before.Reason, After: after.Reason},
		activity.Change{Field: "portal", Before: access.OnOff(before.All), After: access.OnOff(after.All)})
	if err := db.record(ctx, t, e.Target.ID, e); err != nil || before.On() || !after.On() {
		return err
	}
	db.pauseJobs(ctx, t, e.Target.ID, after)
	return nil
}

// stopped is a company whose automation is stopped.
type stopped struct{ company, reason string }

func (db *DB) stopped(ctx context.Context) ([]stopped, error) {
	return list(ctx, db.read(), into(func(s *stopped) []any { return []any{&s.company, &s.reason} }),
		`SELECT c.id, c.stop_reason FROM companies c WHERE c.stopped_at > 0 ORDER BY c.stopped_at, c.id`)
}

// waiting is a command that waits here for its device.
type waiting struct{ command, device, kind string }

// waitingFields receives what a query for withdraw begins with; it ends with waitsHere.
func waitingFields(w *waiting) []any { return []any{&w.command, &w.device, &w.kind} }

const (
	waitingCommands = `SELECT c.id, v.device_id, c.type FROM agent_deliveries v JOIN commands c ON c.id = v.command_id
			WHERE `
	waitsHere = ` AND v.lease_until = v.created_at AND v.accepted_at = 0 AND c.ref LIKE 'agent/%' ORDER BY c.created_at, c.id`
)

// Withdraw implements command.Cancels. What was pushed to a companion app stays:
// it is not known whether the push arrived.
func (db *DB) Withdraw(ctx context.Context, outcome string, limit int) (withdrawn []command.Type, err error) {
	companies, err := db.stopped(ctx)
	for _, s := range companies {
		found, err := list(ctx, db.read(), into(waitingFields), waitingCommands+automated+waitsHere+` LIMIT ?`, s.company, limit)
		if err != nil {
			return withdrawn, err
		}
		for _, w := range found {
			taken, err := written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
				return db.withdraw(ctx, t, w, outcome+" ("+s.reason+")")
			})
			if err != nil {
				return withdrawn, err
			}
			if taken {
				withdrawn = append(withdrawn, command.Type(w.kind))
			}
		}
	}
	return withdrawn, err
}

// withdraw ends a command if it still is not offered. The row of its delivery
// decides: either an offer changed it before, or none can come any more.
func (db *DB) withdraw(ctx context.Context, t *tx, w waiting, outcome string) (taken bool, err error) {
	t.holds(ctx, `SELECT id FROM agent_devices WHERE id = ?`+t.lock(), w.device)
	if !t.holds(ctx, `SELECT command_id FROM agent_deliveries WHERE command_id = ? AND `+unoffered+t.lock(), w.command) {
		return false, nil
	}
	restored := agentdevice.State("")
	if strings.Contains(endings, "'"+w.kind+"'") {
		restored = agentdevice.Active
	}
	t.check(endDelivery(ctx, db, t, w.device, w.command, restored))
	ended, err := db.advanceWithin(ctx, t, w.command,
		command.Transition{From: []command.State{command.Sent, command.Unconfirmed}, To: command.Failed,
			Outcome: outcome})
	if errors.Is(err, engine.ErrNoRow) { // settled otherwise: nothing to carry out in any case
		return false, nil
	}
	t.changed(ended.CompanyID, "command", ended.AssetID)
	return err == nil, err
}

// ToCancel implements command.Cancels.
func (db *DB) ToCancel(ctx context.Context, pause time.Duration, limit int) (due []command.Command, err error) {
	companies, err := db.stopped(ctx)
	now := db.now()
	since := millis(now.Add(-pause))
	for _, s := range companies {
		found, err := list(ctx, db.read(), into(commandFields), `SELECT `+columnsOf("c", commandColumns)+` FROM commands c
			WHERE `+automated+` AND c.ref LIKE 'enterprises/%'
			AND NOT EXISTS (SELECT 1 FROM command_cancels x WHERE x.command_id = c.id AND x.tried_at > ?)
			ORDER BY c.created_at, c.id LIMIT ?`, s.company, since, limit)
		if err != nil {
			return due, err
		}
		for _, c := range found {
			mine := false
			if err := db.statement(ctx, func(ctx context.Context, on conn) (err error) {
				mine, err = holds(ctx, on, `INSERT INTO command_cancels (command_id, tried_at) VALUES (?, ?)
					ON CONFLICT (command_id) DO UPDATE SET tried_at = excluded.tried_at WHERE command_cancels.tried_at <= ?
					RETURNING command_id`, c.ID, millis(now), since)
				return err
			}); err != nil {
				return due, err
			}
			if mine {
				due = append(due, c)
			}
		}
	}
	return due, err
}

// columnsOf puts a table's name before each column of a list.
func columnsOf(table, columns string) string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		names[i] = table + "." + strings.TrimSpace(name)
	}
	return strings.Join(names, ", ")
}
