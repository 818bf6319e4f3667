package database

import (
	"context"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// callMatter locks an authorization, by its company, for a decision. An approval that does not
// count any more is taken back first.
func (db *DB) callMatter(ctx context.Context, t *tx, d approval.Decision) (m matter, err error) {
	c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), d.CompanyID)
	t.check(err)
	a, err := findAuthorization(ctx, t, d.CompanyID, d.ID)
	if err != nil {
		return m, err
	}
	if a.At(db.now()) == approval.Approved {
		why, err := db.whyUnauthorized(ctx, t, a, d.Verifier.Stands)
		t.check(err)
		if why != nil {
			t.check(db.voidCall(ctx, t, a, why))
			a = a.Asked()
		}
	}
	seen, err := seenOf(ctx, t, c, a)
	t.check(err)
	if m.closed = a.MayBeDecided(db.now()); m.closed == nil {
		m.closed = a.Gone(seen)
	}
	m.Subject = a.Subject(seen)
	m.keep = func(ctx context.Context, t *tx, d decided) error { return db.decideCall(ctx, t, a, d) }
	m.refuse = func(ctx context.Context, t *tx, d signature.Decision) error {
		return db.recordAuthorization(ctx, t, which(d, activity.AuthorizationApproved, activity.AuthorizationDeclined), activity.Refused, a)
	}
	return m, nil
}

// decideCall approves or declines an authorization that is WAITING.
func (db *DB) decideCall(ctx context.Context, t *tx, a approval.Authorization, d decided) error {
	to, action := approval.Approved, activity.AuthorizationApproved
	var more []activity.Change
	if d.Decision == signature.Decline {
		to, action = approval.Declined, activity.AuthorizationDeclined
		if d.Reason != "" {
			more = append(more, activity.Change{Field: "reason", After: d.Reason})
		}
	}
	if t.count(ctx,
		`UPDATE authorizations SET state = ?, decided_at = ?, decided_by = ?, decided_by_name = ?, passkey_id = ?, signed_id = ?,
		decline_reason = ? WHERE id = ? AND state = 'WAITING'`, string(to), millis(d.at), d.by.UserID, d.by.Name, d.passkeyID,
		d.signedID, d.Reason, a.ID) != 1 {
		return fault.New(fault.Refused, "this was decided at this moment")
	}
	return db.recordAuthorization(ctx, t, action, activity.OK, a, more...)
}

// whyUnauthorized says why an authorization that was approved does not count now, as judge
// says, or why there is nothing to decide about the call; nil: it counts.
func (db *DB) whyUnauthorized(ctx context.Context, t conn, a approval.Authorization,
	judge func(approval.Standing) error) (why, err error) {
	c, err := findCompany(ctx, t, `c.id = ?`, a.CompanyID)
	if err != nil {
		return nil, err
	}
	seen, err := seenOf(ctx, t, c, a)
	if err != nil {
		return nil, err
	}
	if why = a.Gone(seen); why != nil {
		return why, nil
	}
	return db.whyVoid(ctx, t, a.Subject(seen), a.SignedID, judge)
}

// voidCall lets an authorization that was approved wait again, and records why.
func (db *DB) voidCall(ctx context.Context, t *tx, a approval.Authorization, why error) error {
	if t.count(ctx,
		`UPDATE authorizations SET state = 'WAITING', decided_at = 0, decided_by = '', decided_by_name = '', passkey_id = '',
		signed_id = '' WHERE id = ? AND state = 'APPROVED'`, a.ID) != 1 {
		return nil
	}
	t.check(mailAgain(ctx, t, a.CompanyID, a.ID))
	return db.recordAuthorization(ctx, t, activity.AuthorizationVoid, activity.Refused, a,
		activity.Change{Field: "outcome", After: fault.From(why).Detail})
}

// voidCalls is voidDecisions for authorizations.
func (db *DB) voidCalls(ctx context.Context, t *tx, companyID string) {
	for _, a := range listed(ctx, t, into(readAuthorizationFields), `SELECT `+readAuthorization+` FROM authorizations
		WHERE company_id = ? AND state = 'APPROVED' AND decided_at BETWEEN ? AND ? ORDER BY id`,
		append([]any{companyID}, holding(approval.UseWithin, db.now())...)...) {
		why, err := db.whyUnauthorized(ctx, t, a, approval.Standing.Entitled)
		t.check(err)
		if why != nil && !a.CallerEnded(db.now()) { // one whose caller has ended has expired, and does not wait again
			t.check(db.voidCall(ctx, t, a, why))
		}
	}
}

// seenOf reads what people see of an authorization: its device, and the policies of a move.
func seenOf(ctx context.Context, c conn, of company.Company, a approval.Authorization) (s approval.Seen, err error) {
	s = approval.Seen{Company: of.Slug, Irreversible: command.Type(a.Command).Row().Irreversible}
	if s.Device, err = orNone(findAsset(ctx, c, a.CompanyID, a.AssetID)); err != nil {
		return s, err
	}
	if a.Caller.UserID != "" {
		if s.CallerUser, err = orNone(find(ctx, c, "user", scanValue[string], `SELECT u.name FROM users u WHERE u.id = ?`,
			a.Caller.UserID)); err != nil {
			return s, err
		}
	}
	if !a.Moves() {
		return s, nil
	}
	if s.From, err = orNone(findPolicy(ctx, c, a.CompanyID, a.Move.From.ID)); err == nil {
		s.To, err = orNone(findPolicy(ctx, c, a.CompanyID, a.Move.To.ID))
	}
	if err != nil {
		return s, err
	}
	moving, err := listOnTheWay(ctx, c, a.AssetID, a.Move.To.ID)
	for _, m := range moving {
		p, err := orNone(findPolicy(ctx, c, a.CompanyID, m.ID))
		if err != nil {
			return s, err
		}
		s.OnTheWay = append(s.OnTheWay, p)
	}
	return s, err
}

// orNone is what was looked for, or nothing if it is not there.
func orNone[T any](found T, err error) (T, error) { return found, unlessGone(err) }

// PresentAuthorization returns an authorization as it now is: one whose approval does not
// count any more waits. It changes nothing.
func (db *DB) PresentAuthorization(ctx context.Context, a approval.Authorization, v approval.Verifier) (approval.Authorization, error) {
	if a.At(db.now()) != approval.Approved {
		return a, nil
	}
	why, err := orUnverified(db.whyUnauthorized(ctx, db.read(), a, v.Stands))
	if why != nil {
		a = a.Asked()
	}
	return a, err
}

// SeenAuthorization reads an authorization with what people see of it.
// fault.NotFound: there is no such authorization.
func (db *DB) SeenAuthorization(ctx context.Context, companyID, id string) (a approval.Authorization, s approval.Seen, err error) {
	err = db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		if a, err = findAuthorization(ctx, c, companyID, id); err != nil {
			return err
		}
		of, err := findCompany(ctx, c, `c.id = ?`, companyID)
		if err != nil {
			return err
		}
		s, err = seenOf(ctx, c, of, a)
		return err
	})
	return a, s, err
}
