package database

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
)

// beginLimited begins a command that the company's limit counts, or its key's, and a move to
// another policy. Limit, count and command are one transaction, in which one caller of the company
// waits for the other: the window never holds more devices than it may.
func (db *DB) beginLimited(ctx context.Context, c command.Command, held *agentdevice.Delivery) (begun bool, refused, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		begun, refused = false, nil
		l := t.locks(ctx, c)
		admission, controls, now, err := db.admission(ctx, t, c, l)
		if err != nil {
			return err
		}
		if f := admission.Decide(); f != nil {
			refused = f
			return db.recordRefusal(ctx, t, c, admission)
		}
		if !inTurn(c) && c.Ask != nil && approval.Needed(c.Actor.Kind, controls, false, c.Ask.Difference) {
			return access.ErrMoved // it needs an authorization only since its caller was let in
		}
		if err := holdMove(ctx, t, c); err != nil {
			return err
		}
		use, refusal, err := db.authorize(ctx, t, c, controls, now, l)
		if err != nil {
			return err
		}
		if refusal != nil {
			refused = refusal
			return db.askFor(ctx, t, c, refusal, now)
		}
		if begun, err = db.beginCommand(ctx, t, c, held, l.later && c.Ask.Move != approval.Move{}, db.notes(c, now)); err != nil || !begun {
			return err
		}
		t.compared = true
		if admission.Company != nil && !admission.Company.Managed {
			return errOtherDevice
		}
		if use != nil {
			return useAuthorization(ctx, t, use, c, now)
		}
		return nil
	})
	return begun, refused, err
}

// errOtherDevice is the answer to a destructive command whose asset got or lost its device
// since the command was prepared. Whatever replaces a device holds the company.
var errOtherDevice error = fault.New(fault.Unavailable, "the device of this asset changed at this moment: nothing was sent, look at the "+
	"asset and send it again")

// WhyNot implements command.Store: it reads what Begin decides by, and locks nothing.
func (db *DB) WhyNot(ctx context.Context, c command.Command) (refused, err error) {
	a, controls, now, err := db.admission(ctx, db.read(), c, locks{})
	if err != nil {
		return nil, err
	}
	if f := a.Decide(); f != nil {
		return f, nil
	}
	_, refusal, err := db.authorize(ctx, db.read(), c, controls, now, locks{})
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f, nil
	}
	if refusal != nil {
		refused = refusal
	}
	return refused, err
}

// DestructiveLeft reads how many more devices of a company may get destructive commands
// now, and when another leaves the window, 0 if none counts. It locks nothing.
func (db *DB) DestructiveLeft(ctx context.Context, companyID string) (remaining int, frees time.Duration, limited bool, err error) {
	s, _, now, err := db.companyState(ctx, db.read(), command.Command{CompanyID: companyID}, "")
	if err == nil && s.Devices > 0 && s.Frees == 0 && !s.Limit.Off() {
		s.Frees, err = leaves(ctx, db.read(), companyID, s, 0, now)
	}
	return s.Remaining(), s.Frees, !s.Limit.Off(), err
}

// locks are what the decision about a command holds until the command is recorded: the
// rows of the key and of the company. Both are empty where
// it is only explained.
type locks struct {
	key, company string
	// later: what the decision depends on is compared in the statement that records the
	// command: see compareMove. The permit has the controls.
	later bool
}

// locks holds the company for what counts in its limit or uses an authorization. Other
// moves of a company's devices run beside each other.
func (t *tx) locks(ctx context.Context, c command.Command) locks {
	rows := t.Dialect().Rows()
	l := locks{key: rows.Hold}
	if inTurn(c) {
		l.company = rows.Hold
	} else {
		l.later = c.Ask != nil && access.PermitOf(ctx) != nil
	}
	return l
}

// inTurn reports whether a command is decided about while no other of its company is.
func inTurn(c command.Command) bool {
	return c.Type.Destructive() || c.Ask != nil && c.Ask.Needed
}

// admission reads what the decision about a command depends on. With locks nothing
// of it is read before they are held.
func (db *DB) admission(ctx context.Context, t conn, c command.Command,
	l locks) (a limit.Admission, k access.Controls, now time.Time, err error) {
	if a.Key, err = db.keyState(ctx, t, c, l.key); err == nil && a.Key.Allows() && c.Type.Destructive() {
		var s limit.State
		s, k, now, err = db.companyState(ctx, t, c, l.company)
		a.Company = &s
	} else if err == nil && c.Ask != nil && !l.later {
		k, err = holdControls(ctx, t, c.CompanyID, l.company)
		now = db.now()
	}
	if err == nil && a.Decide() != nil && c.IdempotencyRef != "" { // the repetition of a request whose command there is already
		a.Known, err = isRepetition(ctx, t, c)
	}
	return a, k, now, err
}

// companyState reads what the company's limit depends on. With a lock it holds what
// the company's callers share.
func (db *DB) companyState(ctx context.Context, t conn, c command.Command,
	lock string) (s limit.State, k access.Controls, now time.Time, err error) {
	if k, err = holdControls(ctx, t, c.CompanyID, lock); err != nil {
		return s, k, now, err
	}
	s.Limit = k.DestructiveLimit
	now = db.now()
	used, err := one(ctx, t, into(func(u *uses) []any { return []any{&u.devices, &u.ofDevice, &u.managed} }),
		`SELECT COUNT(*), COALESCE(SUM(CASE WHEN u.asset_id = ? AND u.epoch = ? THEN 1 ELSE 0 END), 0),
		EXISTS (SELECT 1 FROM assets a WHERE a.id = ? AND a.epoch = ? AND a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING'))
		FROM destructive_uses u WHERE u.company_id = ? AND u.at > ?`,
		c.AssetID, c.Epoch, c.AssetID, c.Epoch, c.CompanyID, millis(now.Add(-s.Limit.Window)))
	s.Devices, s.Counts, s.Managed = used.devices, used.ofDevice > 0, used.managed
	if err != nil || s.Allows() {
		return s, k, now, err
	}
	if c.Actor.Kind == access.User {
		if s.Reserved, err = holds(ctx, t, `SELECT p.id FROM passkeys p WHERE p.user_id = ? AND p.created_at <= ? LIMIT 1`,
			c.Actor.ID, millis(now.Add(-k.ApproverAge))); err != nil || s.Allows() {
			return s, k, now, err
		}
	}
	if writes, ok := t.(*tx); ok {
		// What was noted while the clock was ahead counts as noted now, for one window from the first
		// refusal on. To leave it out would let a company exceed its limit.
		if err = writes.Exec(ctx, `UPDATE destructive_uses SET at = ? WHERE company_id = ? AND at > ?`, millis(now), c.CompanyID,
			latest(now)); err != nil {
			return s, k, now, err
		}
	}
	s.Frees, err = leaves(ctx, t, c.CompanyID, s, s.Over()-1, now)
	return s, k, now, err
}

// uses are how many devices count in a window, how often one of them does, and whether
// that is the device that its asset has.
type uses struct {
	devices, ofDevice int
	managed           bool
}

// holdControls reads what limits the callers of a company. With a lock it holds what they
// share.
func holdControls(ctx context.Context, t conn, companyID, lock string) (access.Controls, error) {
	return one(ctx, t, into(func(k *access.Controls) []any {
		return []any{&k.DestructiveLimit.Devices, (*duration)(&k.DestructiveLimit.Window), &k.DestructiveApproval, &k.ApplyApproval,
			(*duration)(&k.ApproverAge)}
	}), `SELECT c.limit_devices, c.limit_window, c.destructive_approval, c.apply_approval, c.approver_age FROM companies c WHERE c.id = ?`+
		lock, companyID)
}

// leaves is how long it takes until the device that is next but others leaves the window.
func leaves(ctx context.Context, t conn, companyID string, s limit.State, others int, now time.Time) (time.Duration, error) {
	at, err := value[int64](ctx, t, `SELECT u.at FROM destructive_uses u WHERE u.company_id = ? AND u.at > ?
		ORDER BY u.at, u.asset_id, u.epoch LIMIT 1 OFFSET ?`, companyID, millis(now.Add(-s.Limit.Window)), others)
	return instant(min(at, latest(now))).Add(s.Limit.Window).Sub(now), err
}

// recordRefusal records that a command was refused for the company's limit, and tells that
// a limit is reached, also when it is the key's.
func (db *DB) recordRefusal(ctx context.Context, t *tx, c command.Command, a limit.Admission) error {
	switch {
	case !a.Known && !a.Key.Allows():
		return db.tell(ctx, t, event.Event{CompanyID: c.CompanyID, Type: event.LimitReached, AssetID: c.AssetID})
	case !a.OfCompany():
		return nil
	}
	return db.recordLimited(ctx, t, c.CompanyID, a.Company.Limit, commandEvent(ctx, c))
}

// recordLimited records an event as one that the company's limit refused.
func (db *DB) recordLimited(ctx context.Context, t *tx, companyID string, l access.DestructiveLimit, e activity.Event) error {
	e.Outcome, e.Reference = activity.Refused, ""
	e.Changes = []activity.Change{{Field: "destructiveLimit", After: l.String()}}
	t.check(db.record(ctx, t, companyID, e))
	return db.tell(ctx, t, event.Event{CompanyID: companyID, Type: event.LimitReached, AssetID: e.Target.ID})
}

// notes count the device of a command that begins: for the company if the command is
// destructive, and for a key that has a limit.
func (db *DB) notes(c command.Command, now time.Time) (notes []part) {
	if c.Type.Destructive() {
		notes = noteUse(c, now)
	}
	if c.DevicesPerDay > 0 {
		notes = append(notes, noteDevice("key_devices", "key_id", c.Actor.ID, c, db.now(), keyWindow)...)
	}
	return notes
}

// noteUse counts a device for its company.
func noteUse(c command.Command, now time.Time) []part {
	return noteDevice("destructive_uses", "company_id", c.CompanyID, c, now, access.MaxLimitWindow)
}

// noteDevice counts a device in a table for an owner, from now on, and forgets those that have left the window. A device that
// counts already counts for as long as a new one, so that any window holds all that got a command in it.
func noteDevice(table, owner, id string, c command.Command, now time.Time, window time.Duration) []part {
	return []part{{`INSERT INTO ` + table + ` (` + owner + `, asset_id, epoch, at)
		SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT) ` + fromFirst + ` WHERE TRUE
		ON CONFLICT (` + owner + `, asset_id, epoch) DO UPDATE SET
			at = CASE WHEN excluded.at > ` + table + `.at THEN excluded.at ELSE ` + table + `.at END`,
		[]any{id, c.AssetID, c.Epoch, millis(now)}},
		{`DELETE FROM ` + table + ` WHERE ` + owner + ` = ? AND at <= ? AND NOT (asset_id = ? AND epoch = ?)`,
			[]any{id, millis(now.Add(-window)), c.AssetID, c.Epoch}}}
}
