package database

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
)

// isManagedByPlatform is the condition of an asset whose device the platform manages.
const isManagedByPlatform = `management = 'PLATFORM' AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`

// BeginDisconnection stores that a company's enterprise is to be given up; fault.Refused
// if it is another one now or, unless it is lost, while it manages devices. Beginning
// again changes nothing.
func (db *DB) BeginDisconnection(ctx context.Context, companyID, enterprise string, lost bool, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		owner, err := findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
		if err == nil && owner.Enterprise != enterprise {
			err = fault.New(fault.Refused, "the company is no longer connected to %s", enterprise)
		}
		if err != nil {
			return err
		}
		managed := valueIn[int64](ctx, t, `SELECT COUNT(*) FROM assets WHERE company_id = ? AND `+isManagedByPlatform, companyID)
		if managed > 0 && !lost {
			return fault.New(fault.Refused, "the platform manages %d devices of the company: wipe them or relinquish their ownership first",
				managed)
		}
		return t.Exec(ctx,
			`INSERT INTO disconnections (enterprise, company_id, begun_at, ended_at) VALUES (?, ?, ?, 0) ON CONFLICT (enterprise) DO NOTHING`,
			enterprise, companyID, millis(at))
	})
}

// CancelDisconnection takes back what BeginDisconnection stored.
func (db *DB) CancelDisconnection(ctx context.Context, enterprise string) error {
	return db.exec(ctx, `DELETE FROM disconnections WHERE enterprise = ? AND ended_at = 0`, enterprise)
}

// disconnectBatch is how many devices end in one transaction.
const disconnectBatch = 200

// FinishDisconnection ends the devices of an enterprise that is being given up, makes
// their open commands UNCONFIRMED, and takes the enterprise from the company: in one
// transaction with the last devices, so that none joins in between. It may be called again
// after it was interrupted.
func (db *DB) FinishDisconnection(ctx context.Context, companyID, enterprise string, at time.Time) error {
	for {
		ended, err := written(ctx, db, func(ctx context.Context, t *tx) (int, error) {
			ended, err := endManaged(ctx, t, companyID, enterprise, at)
			if err == nil && ended < disconnectBatch {
				err = db.leave(ctx, t, companyID, enterprise, at)
			}
			return ended, err
		})
		if err != nil || ended < disconnectBatch {
			return err
		}
	}
}

// endManaged ends up to disconnectBatch devices that the platform managed.
func endManaged(ctx context.Context, t *tx, companyID, enterprise string, at time.Time) (int, error) {
	t.check(disconnecting(ctx, t, companyID, enterprise))
	ids := listed(ctx, t, scanValue[string], `SELECT id FROM assets WHERE company_id = ? AND `+isManagedByPlatform+
		` ORDER BY id LIMIT ?`+t.lock(), companyID, disconnectBatch)
	for _, id := range ids {
		h, err := hold(ctx, t, id)
		t.check(err)
		t.check(h.end(ctx, t, at, ending{how: "the company was disconnected from the platform", unknown: true}))
	}
	if len(ids) > 0 {
		t.changed(companyID, "asset", "")
	}
	return len(ids), nil
}

// disconnecting locks the company, keeps imports out, and fails with fault.Refused unless the company's
// enterprise is being given up.
func disconnecting(ctx context.Context, t *tx, companyID, enterprise string) error {
	t.check(shareInventory(ctx, t, companyID))
	owner, err := findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
	t.check(err)
	if !t.holds(ctx, `SELECT enterprise FROM disconnections WHERE enterprise = ? AND company_id = ? AND ended_at = 0`,
		enterprise, companyID) || owner.Enterprise != enterprise {
		return fault.New(fault.Refused, "%s is not being given up", enterprise)
	}
	return nil
}

// leave takes the enterprise, which is being given up, from the company, which is locked.
// Its policies are pushed again to the next one, whose numbers of versions are others. Its codes are revoked, and the platform
// is not asked to delete their tokens: it refuses calls for an enterprise that was given up.
func (db *DB) leave(ctx context.Context, t *tx, companyID, enterprise string, at time.Time) error {
	const platformPolicies = `(SELECT id FROM policies WHERE company_id = ? AND type = 'PLATFORM')`
	t.do(ctx, `UPDATE companies SET enterprise = '' WHERE id = ?`, companyID)
	t.do(ctx, `DELETE FROM lost_enterprises WHERE company_id = ?`, companyID)
	t.do(ctx, `DELETE FROM policy_pushes WHERE policy_id IN `+platformPolicies, companyID)
	t.do(ctx, `DELETE FROM push_retries WHERE policy_id IN `+platformPolicies, companyID)
	t.do(ctx, `UPDATE policies SET push_version = 0, push_tried_at = 0, push_error = '', pushed_at = 0
		WHERE company_id = ? AND type = 'PLATFORM'`, companyID)
	t.do(ctx, `UPDATE enrollment_codes SET drop_at = 0,
			revoked_at = CASE WHEN expires_at > ? AND (max_devices = 0 OR devices < max_devices) AND revoked_at = 0
				THEN ? ELSE revoked_at END
		WHERE company_id = ? AND management = 'PLATFORM'`, millis(at), millis(at), companyID)
	t.changed(companyID, "code", "")
	t.do(ctx, `UPDATE disconnections SET ended_at = ? WHERE enterprise = ?`, millis(at), enterprise)
	owner, err := findCompany(ctx, t, `c.id = ?`, companyID)
	t.check(err)
	return db.recordOf(ctx, t, owner, activity.CompanyDisconnected, activity.Change{Field: "enterprise", Before: enterprise})
}

// FormerEnterprise reports whether an enterprise was, or is being, given up here.
func (db *DB) FormerEnterprise(ctx context.Context, enterprise string) (bool, error) {
	return holds(ctx, db.read(), `SELECT enterprise FROM disconnections WHERE enterprise = ?`, enterprise)
}

// WasDisconnected implements proposal.ReconcilerStore.
func (db *DB) WasDisconnected(ctx context.Context, companyID string) (bool, error) {
	return holds(ctx, db.read(), `SELECT enterprise FROM disconnections WHERE company_id = ? LIMIT 1`, companyID)
}

// EnterpriseTroubles returns what is wrong with companies' enterprises, by company.
func (db *DB) EnterpriseTroubles(ctx context.Context) (map[string]company.Trouble, error) {
	return db.enterpriseTroubles(ctx, "")
}

// EnterpriseTrouble returns what is wrong with a company's enterprise.
func (db *DB) EnterpriseTrouble(ctx context.Context, companyID string) (company.Trouble, error) {
	troubles, err := db.enterpriseTroubles(ctx, ` AND c.id = ?`, companyID)
	return troubles[companyID], err
}

func (db *DB) enterpriseTroubles(ctx context.Context, and string, args ...any) (map[string]company.Trouble, error) {
	type row struct {
		companyID string
		company.Trouble
	}
	rows, err := list(ctx, db.read(), into(func(r *row) []any { return []any{&r.companyID, at(&r.LostSince), at(&r.Disconnecting)} }),
		`SELECT c.id, COALESCE(l.since, 0), COALESCE(d.begun_at, 0)
		FROM (SELECT company_id FROM lost_enterprises UNION SELECT company_id FROM disconnections WHERE ended_at = 0) AS troubled
		JOIN companies c ON c.id = troubled.company_id
		LEFT JOIN lost_enterprises l ON l.company_id = c.id AND l.enterprise = c.enterprise
		LEFT JOIN disconnections d ON d.company_id = c.id AND d.enterprise = c.enterprise AND d.ended_at = 0
		WHERE (l.since IS NOT NULL OR d.begun_at IS NOT NULL)`+and, args...)
	troubles := map[string]company.Trouble{}
	for _, r := range rows {
		troubles[r.companyID] = r.Trouble
	}
	return troubles, err
}

// SetEnterpriseLost notes that the platform does not have a company's enterprise, or
// has it again.
func (db *DB) SetEnterpriseLost(ctx context.Context, companyID, enterprise string, lost bool, at time.Time) error {
	if !lost {
		return db.exec(ctx, `DELETE FROM lost_enterprises WHERE company_id = ?`, companyID)
	}
	return db.exec(ctx, `INSERT INTO lost_enterprises AS l (company_id, enterprise, since) VALUES (?, ?, ?)
		ON CONFLICT (company_id) DO UPDATE SET enterprise = excluded.enterprise, since = excluded.since WHERE l.enterprise <> excluded.enterprise`,
		companyID, enterprise, millis(at))
}

const (
	// foreignKept is how long it is remembered that notifications of an enterprise came.
	foreignKept = 24 * time.Hour
	// maxForeign bounds the enterprises that are remembered.
	maxForeign = 100
)

// NoteForeign notes that a notification came of an enterprise that no company has.
func (db *DB) NoteForeign(ctx context.Context, enterprise string, at time.Time) error {
	if len(enterprise) > maxEnterprise {
		return nil
	}
	noting := db.execRelaxed(ctx, `INSERT INTO foreign_enterprises (enterprise, first_at, last_at) VALUES (?, ?, ?)
		ON CONFLICT (enterprise) DO UPDATE SET last_at = excluded.last_at`, storable(enterprise), millis(at), millis(at))
	forgetting := db.execRelaxed(ctx, `DELETE FROM foreign_enterprises WHERE last_at < ? OR enterprise NOT IN
		(SELECT enterprise FROM foreign_enterprises ORDER BY last_at DESC, enterprise LIMIT ?)`, millis(at.Add(-foreignKept)), maxForeign)
	return errors.Join(noting, forgetting)
}

// maxEnterprise bounds an enterprise's name, in bytes.
const maxEnterprise = 200

// ForeignEnterprises returns the enterprises of other installations whose notifications
// came here within a day, the last first.
func (db *DB) ForeignEnterprises(ctx context.Context, now time.Time) ([]company.Foreign, error) {
	return list(ctx, db.read(), into(func(f *company.Foreign) []any { return []any{&f.Enterprise, at(&f.First), at(&f.Last)} }),
		`SELECT enterprise, first_at, last_at FROM foreign_enterprises f WHERE last_at >= ?
			AND NOT EXISTS (SELECT 1 FROM companies c WHERE c.enterprise = f.enterprise) ORDER BY last_at DESC, enterprise`,
		millis(now.Add(-foreignKept)))
}
