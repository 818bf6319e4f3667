package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/resource"
)

// advanceAndEnd is Advance for the word of the device to which the command was delivered: the
// delivery ends with the step, in one transaction, and without a delivery there is no step.
// A success that shows on the asset takes two: that one locks the asset after the command.
func (db *DB) advanceAndEnd(ctx context.Context, id string, s command.Transition) (command.Command, bool, error) {
	of := *s.Ends
	if s.To == command.Succeeded && shows(of.Command.Type) {
		s.Ends = nil
		c, taken, err := db.Advance(ctx, id, s)
		if err == nil {
			err = db.EndDelivery(ctx, of.Device, id, "")
		}
		return c, taken, err
	}
	var entry []any
	if s.To == command.Failed || s.To == command.Unconfirmed {
		became := of.Command
		became.State, became.Outcome = s.To, storable(s.Outcome)
		entry = db.entry(ctx, became.CompanyID, stepEvent(ctx, became))
	}
	var c command.Command
	taken := false
	err := db.statement(ctx, func(ctx context.Context, tx conn) (err error) {
		if db.engine.OneWriter() {
			c, taken, err = db.endApart(ctx, tx, id, s, entry)
			return err
		}
		text, args := db.endAtOnce(id, s, entry)
		c, taken, err = maybe(one(ctx, tx, into(commandFields), text, args...))
		return err
	})
	if err == nil && !taken {
		c, err = db.Command(ctx, id)
	}
	if err != nil || !taken {
		return c, false, err
	}
	if entry != nil {
		db.Notify(resource.Changes, resource.Change(c.CompanyID, attentionHint, ""))
	}
	db.commandMoved(c)
	db.wakeNumbering()
	return c, true, nil
}

// shows reports whether the success of a command shows on its asset; see showing.
func shows(t command.Type) bool {
	return slices.Contains([]command.Type{command.StartLostMode, command.StopLostMode, command.WipeCompanyData,
		command.RelinquishOwnership}, t)
}

// endApart is advanceAndEnd in statements of their own, inside a transaction that is alone.
func (db *DB) endApart(ctx context.Context, tx conn, id string, s command.Transition,
	entry []any) (c command.Command, taken bool, err error) {
	n, err := tx.ExecCount(ctx, `DELETE FROM agent_deliveries WHERE command_id = ? AND device_id = ?`, id, s.Ends.Device)
	if err != nil || n == 0 {
		return c, false, err
	}
	closing := closeDelivery(s.Ends.Device, id, "")
	if err := tx.Exec(ctx, closing.text, closing.args...); err != nil {
		return c, false, err
	}
	text, args := transitionStatement(id, s, "")
	if c, taken, err = maybe(one(ctx, tx, into(commandFields), text, args...)); err != nil || !taken {
		return c, false, err
	}
	insert := db.tellCommand(id, s.To)
	if err := tx.Exec(ctx, insert.text, insert.args...); err != nil || entry == nil {
		return c, true, err
	}
	return c, true, tx.Insert(ctx, "activity", activityColumns, entry)
}

// endAtOnce is advanceAndEnd as one statement, which locks the device, the delivery and the
// command, one after another, before it draws the number of the event.
func (db *DB) endAtOnce(id string, s command.Transition, entry []any) (string, []any) {
	text, args := transitionStatement(id, s, ifFirst)
	insert, closing := db.tellCommand(id, s.To), closeDelivery(s.Ends.Device, id, "")
	query := `WITH device AS (SELECT id FROM agent_devices WHERE id = ?` + db.engine.Dialect().Rows().Hold + `),
		gone AS (DELETE FROM agent_deliveries USING device WHERE command_id = ? AND device_id = device.id RETURNING command_id),
		taken AS (` + firstOf(text, "gone") + `), announced AS (` + firstOf(insert.text, "taken") + `), `
	args = slices.Concat([]any{s.Ends.Device, id}, args, insert.args)
	if entry != nil {
		query += `noted AS (` + firstOf(insertCommandEntry, "taken") + `), `
		args = append(args, entry...)
	}
	return query + `closed AS (` + firstOf(closing.text, "gone") + `) SELECT ` + commandColumns + ` FROM taken`,
		append(args, closing.args...)
}

// stepEvent is the entry of a command that failed, or whose outcome is unknown.
func stepEvent(ctx context.Context, c command.Command) activity.Event {
	e := commandEvent(ctx, c)
	e.Outcome = activity.Unconfirmed
	if c.State == command.Failed {
		e.Outcome = activity.Failed
	}
	if c.Outcome != "" {
		e.Changes = []activity.Change{{Field: "outcome", After: c.Outcome}}
	}
	return e
}

// closeDelivery notes with the device that one of its deliveries ended. A state is what it
// leaves the device in, unless another delivery keeps it elsewhere.
func closeDelivery(deviceID, commandID string, s agentdevice.State) part {
	return part{`UPDATE agent_devices SET open_deliveries = open_deliveries - 1,
		erasing_at = CASE WHEN EXISTS (` + openWipe + ` AND v.command_id <> ?) THEN erasing_at ELSE 0 END,
		state = CASE WHEN CAST(? AS TEXT) = '' OR state = 'DELETED' THEN state
			WHEN EXISTS (` + openWipe + ` AND v.command_id <> ?) THEN 'WIPE_PENDING'
			WHEN EXISTS (` + openRelease + ` AND v.command_id <> ?) THEN 'RELINQUISH_PENDING'
			ELSE CAST(? AS TEXT) END ` + fromFirst + ` WHERE agent_devices.id = ?`,
		[]any{commandID, string(s), commandID, commandID, string(s), deviceID}}
}
