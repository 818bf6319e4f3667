package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

const looseningColumns = `l.id, l.company_id, l.control, l.value_before, l.value_after, l.asked_by, l.asked_by_name, l.asked_at, l.effective_at`

func looseningFields(l *access.Loosening) []any {
	return []any{&l.ID, &l.CompanyID, &l.Control, &l.Before, &l.After, &l.AskedBy.ID, &l.AskedBy.Name, at(&l.AskedAt), at(&l.EffectiveAt)}
}

func scanLoosening(r row) (l access.Loosening, err error) {
	err = r.Scan(looseningFields(&l)...)
	l.AskedBy.Kind, l.AskedBy.UserID = access.User, l.AskedBy.ID
	return l, err
}

// Loosenings returns what waits in a company, the next first.
func (db *DB) Loosenings(ctx context.Context, companyID string) ([]access.Loosening, error) {
	return list(ctx, db.read(), scanLoosening,
		`SELECT `+looseningColumns+` FROM loosenings l WHERE l.company_id = ? ORDER BY l.effective_at, l.id`, companyID)
}

// ChangeControls changes a company for a person: what loosens a control waits, all else
// takes effect at once. It returns what waits now because of it.
func (db *DB) ChangeControls(ctx context.Context, companyID string, by account.User,
	change func(*company.Company)) ([]access.Loosening, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (waiting []access.Loosening, err error) {
		c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
		if err != nil {
			return nil, err
		}
		wanted := c
		if err := company.Change(change)(&wanted); err != nil {
			return nil, err
		}
		next := wanted
		next.ID, next.CreatedAt = c.ID, c.CreatedAt
		now := db.now()
		for _, control := range access.ControlNames() {
			if !access.Loosens(control, c.Settings, wanted.Settings) {
				continue
			}
			l := access.Loosening{ID: resource.NewID(), CompanyID: companyID, Control: control, Before: c.Settings.Control(control),
				After: wanted.Settings.Control(control), AskedBy: access.Actor{Kind: access.User, ID: by.ID, UserID: by.ID, Name: by.Name},
				AskedAt: now, EffectiveAt: now.Add(access.LoosenAfter)}
			next.Settings.Keep(control, c.Settings)
			if l, err = db.ask(ctx, t, l); err != nil {
				return nil, err
			}
			waiting = append(waiting, l)
		}
		return waiting, db.saveCompany(ctx, t, c, next)
	})
}

// ask makes a loosening wait, in the place of an earlier one of the control. One that asks
// for the same waits on: it is returned.
func (db *DB) ask(ctx context.Context, t *tx, l access.Loosening) (access.Loosening, error) {
	for _, e := range listed(ctx, t, scanLoosening, `SELECT `+looseningColumns+` FROM loosenings l
		WHERE l.company_id = ? AND l.control = ?`, l.CompanyID, string(l.Control)) {
		if e.Before == l.Before && e.After == l.After {
			return e, nil
		}
	}
	db.dropLoosenings(ctx, t, l.CompanyID, l.Control)
	t.check(t.Insert(ctx, "loosenings", looseningColumns, looseningFields(&l)))
	return l, db.recordLoosening(ctx, t, activity.LooseningAsked, activity.OK, l)
}

// supersede cancels what waits for a control that changes otherwise, and, where the company is
// stopped again, what would end the stop.
func (db *DB) supersede(ctx context.Context, t *tx, before, after company.Company) {
	for _, control := range access.ControlNames() {
		stopped := control == access.StopControl && after.Settings.Stop.On() && after.Settings.Stop != before.Settings.Stop
		if before.Settings.Control(control) == after.Settings.Control(control) && !stopped {
			continue
		}
		db.dropLoosenings(ctx, t, before.ID, control)
	}
}

func (db *DB) dropLoosenings(ctx context.Context, t *tx, companyID string, control access.ControlName) {
	db.cancelLoosenings(ctx, t, `l.company_id = ? AND l.control = ?`, companyID, string(control))
}

// mayLoosen is whether the person who asked for a loosening may still change the company's controls.
const mayLoosen = `EXISTS (SELECT 1 FROM users u WHERE u.id = l.asked_by
	AND u.company_id = l.company_id AND NOT u.disabled AND u.rights & ? <> 0)`

// cancelLoosenings cancels and records what waits where a condition holds.
func (db *DB) cancelLoosenings(ctx context.Context, t *tx, where string, args ...any) {
	for _, l := range listed(ctx, t, scanLoosening, `DELETE FROM loosenings AS l WHERE `+where+` RETURNING `+
		`id, company_id, control, value_before, value_after, asked_by, asked_by_name, asked_at, effective_at`, args...) {
		t.check(db.recordLoosening(ctx, t, activity.LooseningCanceled, activity.OK, l))
	}
}

func (db *DB) recordLoosening(ctx context.Context, t *tx, action activity.Action, outcome activity.Outcome, l access.Loosening) error {
	t.changed(l.CompanyID, "loosening", l.ID)
	name := valueIn[string](ctx, t, `SELECT name FROM companies WHERE id = ?`, l.CompanyID)
	return db.record(ctx, t, l.CompanyID, activity.Event{Action: action, Outcome: outcome, Reference: l.ID,
		Target:  activity.Target{Kind: activity.Company, ID: l.CompanyID, Name: name},
		Changes: []activity.Change{{Field: string(l.Control), Before: l.Before, After: l.After}}})
}

// lockLoosening locks the company and finds what waits in it; fault.NotFound if
// it took effect or was canceled.
func (db *DB) lockLoosening(ctx context.Context, t *tx, companyID, id string) (c company.Company, l access.Loosening, err error) {
	c, err = findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
	t.check(err)
	l, err = findLoosening(ctx, t, companyID, id)
	return c, l, err
}

func findLoosening(ctx context.Context, c conn, companyID, id string) (access.Loosening, error) {
	return find(ctx, c, "change that waits", scanLoosening,
		`SELECT `+looseningColumns+` FROM loosenings l WHERE l.id = ? AND l.company_id = ?`, id, companyID)
}

// CancelLoosening cancels what waits; fault.NotFound if it does not wait.
func (db *DB) CancelLoosening(ctx context.Context, companyID, id string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, l, err := db.lockLoosening(ctx, t, companyID, id)
		if err == nil {
			db.dropLoosenings(ctx, t, companyID, l.Control)
		}
		return err
	})
}

// looseningMatter locks what waits, by its company, for the decision of a second
// administrator: an approval lets it take effect at once, a decline cancels it.
func (db *DB) looseningMatter(ctx context.Context, t *tx, companyID, id string) (m matter, err error) {
	c, l, err := db.lockLoosening(ctx, t, companyID, id)
	if err != nil {
		return m, err
	}
	m.Subject, err = db.looseningSubject(ctx, t, c, l)
	t.check(err)
	m.closed = l.MayTakeEffect(c.Settings)
	m.keep = func(ctx context.Context, t *tx, d decided) error {
		if d.Decision == signature.Decline {
			db.dropLoosenings(ctx, t, companyID, l.Control)
			return nil
		}
		return db.loosen(ctx, t, c, l, activity.LooseningConfirmed)
	}
	m.refuse = func(ctx context.Context, t *tx, _ signature.Decision) error {
		return db.recordLoosening(ctx, t, activity.LooseningConfirmed, activity.Refused, l)
	}
	return m, nil
}

// looseningSubject is what a second administrator decides. An administrator who asked and
// was deleted since counts as one of this moment.
func (db *DB) looseningSubject(ctx context.Context, t conn, c company.Company, l access.Loosening) (approval.Subject, error) {
	since, err := value[int64](ctx, t, `SELECT COALESCE(MAX(`+sinceColumn+`), ?) FROM users u WHERE u.company_id = ? AND u.id = ?`,
		millis(db.now()), l.CompanyID, l.AskedBy.ID)
	return approval.Loosening(l, c.Slug, instant(since)), err
}

// LooseningSubject finds what waits, and what a second administrator decides about it;
// fault.NotFound if it does not wait.
func (db *DB) LooseningSubject(ctx context.Context, companyID, id string) (l access.Loosening, of approval.Subject, err error) {
	c, err := findCompany(ctx, db.read(), `c.id = ?`, companyID)
	if err != nil {
		return l, of, err
	}
	l, err = findLoosening(ctx, db.read(), companyID, id)
	if err == nil {
		of, err = db.looseningSubject(ctx, db.read(), c, l)
	}
	return l, of, err
}

// loosen sets the control, and removes what waited.
func (db *DB) loosen(ctx context.Context, t *tx, c company.Company, l access.Loosening, action activity.Action) error {
	t.do(ctx, `DELETE FROM loosenings WHERE id = ?`, l.ID)
	next := c
	if err := next.Settings.SetControl(l.Control, l.After); err != nil {
		return fault.New(fault.Refused, "the change can no longer take effect").Because(err)
	}
	t.check(db.recordLoosening(ctx, t, action, activity.OK, l))
	return db.saveCompany(ctx, t, c, next)
}

const loosenBatch = 100

// ApplyLoosenings lets take effect what has waited long enough, but for what a
// stop keeps waiting. Call it every few seconds, on any number of replicas.
func (db *DB) ApplyLoosenings(ctx context.Context) error {
	due, err := list(ctx, db.read(), scanLoosening, `SELECT `+looseningColumns+` FROM loosenings l
		WHERE l.effective_at <= ? AND (l.control = 'stop' OR EXISTS (SELECT 1 FROM companies c WHERE c.id = l.company_id
			AND c.stopped_at = 0))
		ORDER BY l.effective_at, l.id LIMIT ?`, millis(db.now()), loosenBatch)
	for _, seen := range due {
		if err := db.applyLoosening(ctx, seen, db.now()); err != nil {
			return err
		}
	}
	return err
}

func (db *DB) applyLoosening(ctx context.Context, seen access.Loosening, now time.Time) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		c, l, err := db.lockLoosening(ctx, t, seen.CompanyID, seen.ID)
		if err != nil || l.EffectiveAt.After(now) || l.MayTakeEffect(c.Settings) != nil {
			return err
		}
		// An older program lets it wait when the person who asked loses the right.
		if !t.holds(ctx, `SELECT l.id FROM loosenings l WHERE l.id = ? AND l.company_id = ? AND `+mayLoosen, l.ID, l.CompanyID,
			int64(account.ManageCompany)) {
			db.dropLoosenings(ctx, t, l.CompanyID, l.Control)
			return nil
		}
		return db.loosen(ctx, t, c, l, activity.LooseningApplied)
	})
	return unlessGone(err) // another replica was faster, or it was canceled
}
