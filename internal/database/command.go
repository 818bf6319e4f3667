package database

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

const commandColumns = `id, company_id, asset_id, epoch, type, state, created_at, feedback_at, outcome,
	actor_kind, actor_id, actor_prefix, actor_name, ref, deadline, policy_id, idempotency_ref, reason, ticket, request_id`

// isOpen is the condition of the partial indexes, word for word, so that the
// engines see that they may use them.
const isOpen = `state IN ('PREPARED', 'SENT', 'UNCONFIRMED')`

func commandFields(c *command.Command) []any {
	a := &c.Actor
	return []any{&c.ID, &c.CompanyID, &c.AssetID, &c.Epoch, &c.Type, &c.State, at(&c.CreatedAt), at(&c.FeedbackAt), &c.Outcome,
		&a.Kind, &a.ID, &a.Prefix, &a.Name, &c.Ref, at(&c.Deadline), &c.PolicyID, &c.IdempotencyRef, &c.Note.Reason,
		&c.Note.Ticket, &c.RequestID}
}

// Begin commits a command's intent and what is held for its device, or returns
// the one that has its IdempotencyRef already.
func (db *DB) Begin(ctx context.Context, c command.Command, held *agentdevice.Delivery) (stored command.Command, begun bool, err error) {
	var refused error
	if c.Type.Destructive() || c.DevicesPerDay > 0 || c.Ask != nil || c.Type == command.ChangePolicy {
		begun, refused, err = db.beginLimited(ctx, c, held)
	} else {
		err = db.comparing(ctx, func(ctx context.Context, tx conn) error {
			begun, err = db.beginCommand(ctx, tx, c, held, false, nil)
			return err
		})
	}
	switch {
	case refused != nil:
		return command.Command{}, false, refused
	case err != nil:
		return command.Command{}, false, db.doubted(err)
	case begun:
		db.commandMoved(c)
		db.wakeNumbering()
		if held != nil && held.Place == nil {
			db.Notify(agentdevice.WakeTopic, held.DeviceID)
		}
		c.CreatedAt, c.FeedbackAt, c.Deadline = instant(millis(c.CreatedAt)), instant(millis(c.FeedbackAt)), instant(millis(c.Deadline))
		return c, true, nil
	}
	stored, err = db.CommandByIdempotencyRef(ctx, c.CompanyID, c.IdempotencyRef)
	return stored, false, err
}

// beginCommand inserts a command, what is held for its device, its entry in the activity
// log and what else is noted. It compares the permit, and where that was not done yet what a
// move was compared with, in the statement that inserts, or before it in a transaction that
// is alone. No row is made if something differs, or if there is a command with the
// IdempotencyRef already.
func (db *DB) beginCommand(ctx context.Context, tx conn, c command.Command, held *agentdevice.Delivery, move bool,
	notes []part) (bool, error) {
	a := c.Actor
	first := part{insertCommand, append(make([]any, 0, 48), c.ID, c.CompanyID, c.AssetID, c.Epoch, string(c.Type), string(c.State),
		millis(c.CreatedAt),
		millis(c.FeedbackAt), c.Outcome, string(a.Kind), a.ID, a.Prefix, a.Name, c.Ref, millis(c.Deadline), c.PolicyID, c.IdempotencyRef,
		// not commandFields: to read pointers costs an allocation each
		c.Note.Reason, c.Note.Ticket, access.OriginOf(ctx).RequestID, db.engine.Sender())}
	permit := access.PermitOf(ctx)
	switch {
	case permit == nil:
	case permit.Caller().Ended(db.now()):
		return false, access.ErrMoved
	case db.engine.OneWriter():
		if err := db.stands(ctx, tx, c, permit, move); err != nil {
			return false, unlessRepeated(ctx, tx, c, err)
		}
	default:
		first = part{insertCommandIf, append(first.args, c.CompanyID, permit.Caller().Version)}
		if move {
			first = first.with(moveConditions(c), onceOnly)
		}
	}
	entry := part{insertCommandEntry, db.entry(ctx, c.CompanyID, commandEvent(ctx, c))}
	if held != nil {
		notes = append([]part{insertDelivery(*held), openDelivery(*held)}, notes...)
	}
	if of, ok := commandEventType(c.State); ok { // it ended as it began
		notes = append(notes, db.telling(ctx, event.Event{CompanyID: c.CompanyID, Type: of, AssetID: c.AssetID, Command: string(c.Type),
			Status: c.State.Status()}))
	}
	begun, err := db.chain(ctx, tx, first, append(notes, entry)...)
	if err == nil && !begun && permit != nil && !db.engine.OneWriter() {
		err = unlessRepeated(ctx, tx, c, cmp.Or(db.stands(ctx, tx, c, permit, move), access.ErrMoved)) // or it has changed back
	}
	return begun, err
}

// stands returns access.ErrMoved if the permit is no longer valid, or says what changed that a
// move was compared with.
func (db *DB) stands(ctx context.Context, tx conn, c command.Command, permit *access.Permit, move bool) error {
	if err := db.compare(ctx, tx, permit); err != nil || !move {
		return err
	}
	return compareMove(ctx, tx, c)
}

// unlessRepeated is why a command did not begin: nil if the one that has its IdempotencyRef
// is there already.
func unlessRepeated(ctx context.Context, tx conn, c command.Command, why error) error {
	known, err := isRepetition(ctx, tx, c)
	if known || err != nil {
		return err
	}
	return why
}

// A command's row, made always, or under a permit and other conditions.
const (
	insertCommand = `INSERT INTO commands (` + commandColumns +
		`, sender) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)` + onceOnly
	onceOnly = ` ON CONFLICT (idempotency_ref) WHERE idempotency_ref <> '' DO NOTHING RETURNING id`
)

//nolint:gochecknoglobals // a text that is never written to
var insertCommandIf = `INSERT INTO commands (` + commandColumns +
	`, sender) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
	WHERE ` + controlVersion("?") + ` = ?` + onceOnly

const insertCommandEntry = `INSERT INTO activity (` + activityColumns + `)
	SELECT CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
		CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
		CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
		CAST(? AS TEXT) ` + fromFirst

// commandEvent is the entry of a command; who sent it is as the command itself
// has it.
func commandEvent(ctx context.Context, c command.Command) activity.Event {
	a := c.Actor
	if o := access.OriginOf(ctx).Actor; o.ID == a.ID {
		a.UserID = o.UserID
	}
	return activity.Event{Action: activity.Command(string(c.Type)), Actor: a, Reference: c.ID, Note: c.Note,
		Target: activity.Target{Kind: activity.Asset, ID: c.AssetID, Name: c.AssetName}}
}

// recordStep records that a command failed, or that its outcome is unknown;
// that it went well is reported by the command itself.
func (db *DB) recordStep(ctx context.Context, t *tx, c command.Command) error {
	if c.State != command.Failed && c.State != command.Unconfirmed {
		return nil
	}
	t.changed(c.CompanyID, attentionHint, "")
	return db.record(ctx, t, c.CompanyID, stepEvent(ctx, c))
}

// commandMoved hints, as changed does, that an asset's command was made or moved.
func (db *DB) commandMoved(c command.Command) {
	db.Notify(resource.Changes, resource.Change(c.CompanyID, "command", c.AssetID))
}

// Advance applies a transition if the command is in one of its From states. Final states
// are never left, whatever From says.
func (db *DB) Advance(ctx context.Context, id string, s command.Transition) (command.Command, bool, error) {
	if s.Ends != nil {
		return db.advanceAndEnd(ctx, id, s)
	}
	taken, err := db.advance(ctx, id, s)
	if !errors.Is(err, engine.ErrNoRow) {
		if err == nil {
			db.commandMoved(taken)
		}
		return taken, err == nil, err
	}
	c, err := db.Command(ctx, id)
	return c, false, err
}

// advance applies a transition with what goes with it, or returns engine.ErrNoRow if the command is
// in none of its From states. Most successes are recorded in the command's row alone,
// and are one statement.
func (db *DB) advance(ctx context.Context, id string, s command.Transition) (taken command.Command, err error) {
	if s.To != command.Failed && s.To != command.Unconfirmed {
		condition := ""
		if s.To == command.Succeeded {
			condition = ` AND type NOT IN ` + showing
		}
		err = db.statement(ctx, func(ctx context.Context, c conn) (err error) {
			taken, err = db.advanceRow(ctx, c, id, s, condition)
			return err
		})
		if err == nil && s.To == command.Succeeded {
			db.wakeNumbering()
		}
		if s.To != command.Succeeded || !errors.Is(err, engine.ErrNoRow) {
			return taken, err
		}
	}
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		if taken, err = db.advanceWithin(ctx, t, id, s); err != nil || s.To != command.Succeeded {
			return err
		}
		t.changed(taken.CompanyID, "asset", taken.AssetID)
		return show(ctx, t, taken)
	})
	return taken, err
}

// advanceRow moves a command, and writes its event if there is one, in one statement where
// the engine can; engine.ErrNoRow if the command is not where it is moved from.
func (db *DB) advanceRow(ctx context.Context, c conn, id string, s command.Transition, condition string) (command.Command, error) {
	text, args := transitionStatement(id, s, condition)
	if _, ok := commandEventType(s.To); !ok || slices.Contains(s.From, s.To) { // which learns more, and stays where it is
		return one(ctx, c, into(commandFields), text, args...)
	}
	then := db.tellCommand(id, s.To)
	if t, ok := c.(*tx); ok {
		t.wroteEvent = true
	}
	statements := db.engine.Dialect().Follow(text, then.text, `SELECT `+commandColumns+` `+fromFirst)
	if len(statements) == 1 {
		return one(ctx, c, into(commandFields), statements[0], append(args, then.args...)...)
	}
	taken, err := one(ctx, c, into(commandFields), text, args...)
	if err != nil {
		return taken, err
	}
	return taken, c.Exec(ctx, then.text, then.args...)
}

// showing are the types whose success shows on the asset: see show.
const showing = `('START_LOST_MODE', 'STOP_LOST_MODE', 'WIPE_COMPANY_DATA', 'RELINQUISH_OWNERSHIP')`

// advanceWithin is advance inside the caller's transaction, without what a success shows on the
// asset. It records failures and unknown outcomes in the activity log.
func (db *DB) advanceWithin(ctx context.Context, t *tx, id string, s command.Transition) (command.Command, error) {
	taken, err := db.advanceRow(ctx, t, id, s, "")
	if err != nil || slices.Equal(s.From, []command.State{s.To}) { // recorded before
		return taken, err
	}
	return taken, db.recordStep(ctx, t, taken)
}

// transitionStatement sets what the transition sets and leaves the rest, if the condition
// holds as well.
func transitionStatement(id string, s command.Transition, condition string) (string, []any) {
	set, args := []string{"state = ?"}, []any{string(s.To)}
	put := func(column string, value any) {
		set, args = append(set, column+" = ?"), append(args, value)
	}
	if s.Ref != "" {
		put("ref", s.Ref)
	}
	if s.Outcome != "" || s.ClearOutcome {
		put("outcome", storable(s.Outcome)) // may be a device's word
	}
	if !s.Feedback.IsZero() { // a device's clock may be behind: it cannot answer what was not asked
		set = append(set, "feedback_at = CASE WHEN created_at > CAST(? AS BIGINT) THEN created_at ELSE CAST(? AS BIGINT) END")
		args = append(args, millis(s.Feedback), millis(s.Feedback))
	}
	if !s.Deadline.IsZero() {
		put("deadline", millis(s.Deadline))
	}
	args = append(args, id)
	from := ""
	for _, state := range s.From {
		from, args = from+", ?", append(args, string(state))
	}
	return `UPDATE commands SET ` + strings.Join(set, ", ") + ` WHERE id = ? AND ` + isOpen +
		` AND state IN (''` + from + `)` + condition + ` RETURNING ` + commandColumns, args
}

// Command finds a command by its id.
func (db *DB) Command(ctx context.Context, id string) (command.Command, error) {
	return find(ctx, db.read(), "command", into(commandFields), `SELECT `+commandColumns+` FROM commands WHERE id = ?`, id)
}

// CommandByRef finds a command by its channel's name of it.
func (db *DB) CommandByRef(ctx context.Context, ref string) (command.Command, error) {
	return find(ctx, db.read(), "command", into(commandFields), `SELECT `+commandColumns+` FROM commands WHERE ref = ? AND ref <> ''`, ref)
}

// CommandByIdempotencyRef finds the command that a request began.
func (db *DB) CommandByIdempotencyRef(ctx context.Context, companyID, ref string) (command.Command, error) {
	return find(ctx, db.read(), "command", into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE idempotency_ref = ? AND idempotency_ref <> '' AND company_id = ?`, ref, companyID)
}

// History returns one page of an asset's commands, newest first, and how many
// there are; fault.NotFound if the company has no such asset.
func (db *DB) History(ctx context.Context, companyID, assetID string, page operation.PageRequest) ([]command.Command, int64, error) {
	total, err := find(ctx, db.read(), "asset", scanValue[int64], `SELECT (SELECT COUNT(*) FROM commands WHERE asset_id = a.id)
		FROM assets a WHERE a.id = ? AND a.company_id = ?`, assetID, companyID)
	if err != nil || page.Offset() >= total {
		return nil, total, err
	}
	rows, err := list(ctx, db.read(), into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE asset_id = ? ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?`, assetID, page.Size, page.Offset())
	return rows, total, err
}

// OpenOf returns the commands of an asset that are not final, oldest first.
func (db *DB) OpenOf(ctx context.Context, assetID string) ([]command.Command, error) {
	return openOf(ctx, db.read(), assetID, "")
}

// lockOpen locks the commands of an asset that are not final.
func lockOpen(ctx context.Context, t *tx, assetID string) []command.Command {
	open, err := openOf(ctx, t, assetID, t.lock())
	t.check(err)
	return open
}

func openOf(ctx context.Context, c conn, assetID, lock string) ([]command.Command, error) {
	return list(ctx, c, into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE `+isOpen+` AND asset_id = ? ORDER BY created_at, id`+lock, assetID)
}

// Overdue implements command.Finder.
func (db *DB) Overdue(ctx context.Context, e command.Expiry, limit int) ([]command.Command, error) {
	return list(ctx, db.read(), into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE state IN ('SENT', 'UNCONFIRMED') AND deadline > 0 AND deadline < ?
			AND (deadline < ? OR NOT `+atPlatform+` OR `+askedOf+`) ORDER BY deadline, id LIMIT ?`,
		millis(e.Before), millis(e.Unasked), millis(e.AskedAt), limit)
}
