package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
)

// dueRows bounds what one transaction tells of.
const dueRows = 200

// TellDue tells what becomes true by time alone: proposals that expired, also with their
// maker, and keys that expire soon. Several replicas may.
func (db *DB) TellDue(ctx context.Context) error {
	for _, round := range []func(context.Context, *tx) (int, error){db.tellExpired, func(ctx context.Context, t *tx) (int, error) {
		return db.tellExpiring(ctx, t, "")
	}} {
		for n := dueRows; n == dueRows; {
			var err error
			if n, err = written(ctx, db, round); err != nil {
				return err
			}
		}
	}
	return nil
}

func (db *DB) tellExpired(ctx context.Context, t *tx) (int, error) {
	type expired struct {
		companyID, policyID string
		id                  string
		owner               access.Actor
	}
	now := millis(db.now())
	all := listed(ctx, t, into(func(e *expired) []any {
		return []any{&e.id, &e.companyID, &e.policyID, &e.owner.Kind, &e.owner.ID, &e.owner.UserID}
	}),
		`UPDATE proposals SET expiry_told = ? WHERE id IN (SELECT v.id FROM proposals v WHERE v.status = 'PENDING' AND v.expiry_told = 0
			AND NOT (`+appliable+`) ORDER BY v.expires_at LIMIT ?`+t.skipLocked()+`)
			RETURNING id, company_id, policy_id, owner_kind, owner_id, owner_user_id`, now, now, now, dueRows)
	for _, e := range all {
		t.check(db.tell(ctx, t, event.Event{CompanyID: e.companyID, Type: event.ProposalEnded, PolicyID: e.policyID, ProposalID: e.id,
			Status: string(proposal.Expired), Owner: event.OwnerOf(e.owner.Kind, e.owner.ID, e.owner.UserID)}))
	}
	return len(all), nil
}

// tellExpiring tells of keys that expire soon; with an id, of that one alone. It is the
// service's own act, also when a call creates such a key.
func (db *DB) tellExpiring(ctx context.Context, t *tx, id string) (int, error) {
	now := db.now()
	ctx = access.WithOrigin(ctx, access.Origin{})
	companies := listed(ctx, t, scanValue[string], `UPDATE api_keys SET expiry_told = ? WHERE id IN (SELECT id FROM api_keys
			WHERE expiry_told = 0 AND revoked_at = 0 AND expires_at > 0 AND expires_at <= ? AND expires_at > ? AND (? = '' OR id = ?)
			ORDER BY expires_at LIMIT ?`+t.skipLocked()+`) RETURNING company_id`,
		millis(now), millis(now.Add(event.ExpiresSoon)), millis(now), id, id, dueRows)
	for _, company := range companies {
		t.check(db.tell(ctx, t, event.Event{CompanyID: company, Type: event.KeyExpiring}))
	}
	return len(companies), nil
}

// tellAgain has what a company was told to expire while the clock was ahead told again when it does.
func (db *DB) tellAgain(ctx context.Context, companyID string) error {
	now := db.now()
	if err := db.execRelaxed(ctx, `UPDATE proposals SET expiry_told = 0
			WHERE company_id = ? AND status = 'PENDING' AND expires_at > ? AND expiry_told > ? AND `+notBehind,
		companyID, millis(now), latest(now), agedMost(now)); err != nil {
		return err
	}
	return db.execRelaxed(ctx, `UPDATE api_keys SET expiry_told = 0 WHERE company_id = ? AND expiry_told > ? AND `+notBehind,
		companyID, latest(now), agedMost(now))
}

// TellOutage implements event.OutageStore: it tells every connected company.
func (db *DB) TellOutage(ctx context.Context, of event.PlatformService, since, latest time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		last, other := holdOutages(ctx, t, of)
		begun, gap := millis(since), event.OutageGap.Milliseconds()
		if begun <= last.told+gap { // another replica's failures may be later
			return t.Exec(ctx, `UPDATE platform_outages SET told = ? WHERE one = ? AND told < ?`, millis(latest), int(of), millis(latest))
		}
		t.do(ctx, `UPDATE platform_outages SET since = ?, told = ? WHERE one = ?`, begun, millis(latest), int(of))
		if begun <= other.told+gap && begun < other.since+event.OutageAfter.Milliseconds() {
			return nil // it was told with the other service's
		}
		for _, company := range listed(ctx, t, scanValue[string], `SELECT id FROM companies WHERE enterprise <> '' ORDER BY id`) {
			t.check(db.tell(ctx, t, event.Event{CompanyID: company, Type: event.PlatformFailing}))
		}
		return nil
	})
}

// outage is the last outage of a service that was noted: when it began, and its last failure, in milliseconds; 0: there was none.
type outage struct {
	of          event.PlatformService
	since, told int64
}

// holdOutages locks the outages of both services, and returns those of one and of the other. A replica of an earlier version
// has the first row for both services: the second begins as a copy of it.
func holdOutages(ctx context.Context, t *tx, of event.PlatformService) (last, other outage) {
	t.do(ctx, `INSERT INTO platform_outages (one, since, told) VALUES (1, 0, 0) ON CONFLICT (one) DO NOTHING`)
	t.do(ctx, `INSERT INTO platform_outages (one, since, told) SELECT 2, since, told FROM platform_outages WHERE one = 1
		ON CONFLICT (one) DO NOTHING`)
	for _, o := range listed(ctx, t, into(func(o *outage) []any { return []any{&o.of, &o.since, &o.told} }),
		`SELECT one, since, told FROM platform_outages WHERE one IN (1, 2) ORDER BY one`+t.lock()) {
		if o.of == of {
			last = o
		} else {
			other = o
		}
	}
	return last, other
}
