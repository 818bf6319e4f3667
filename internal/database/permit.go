package database

import (
	"context"
	"errors"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database/engine"
)

// An access.Permit names the version of the company's controls under which a request was admitted. Every transaction of
// db.write and db.statement checks before its commit that the version is the same, and that the caller's key, token or
// session has not run out; else it writes nothing and fails with access.ErrMoved. The stores need no code for that. Not
// checked are relaxed writes (budgets, last-seen times, leases), and those under access.Settling.

// permitted runs a write. If the permit has moved, but the caller may do exactly what they
// could before, it runs once more; else the error is access.ErrMoved.
func (db *DB) permitted(ctx context.Context, attempt func() error) error {
	err := attempt()
	permit := access.PermitOf(ctx)
	if permit == nil || !errors.Is(err, access.ErrMoved) {
		return err
	}
	if err := permit.Renew(ctx); err != nil {
		return err
	}
	if err = attempt(); errors.Is(err, access.ErrMoved) {
		permit.Refuse()
	}
	return err
}

// PermitStands returns access.ErrMoved if the context's permit is no longer valid. It reads.
func (db *DB) PermitStands(ctx context.Context) error {
	permit := access.PermitOf(ctx)
	if permit == nil {
		return nil
	}
	return db.permitted(ctx, func() error { return db.compare(ctx, db.read(), permit) })
}

// compare returns access.ErrMoved if a permit is no longer valid.
func (db *DB) compare(ctx context.Context, c conn, permit *access.Permit) error {
	caller := permit.Caller()
	if caller.Ended(db.now()) {
		return access.ErrMoved
	}
	known := engine.Memory(ctx)
	now, read := known[caller.CompanyID]
	if !read {
		var err error
		if now, err = value[int64](ctx, c, `SELECT `+controlVersion("?"), caller.CompanyID); err != nil {
			return err
		}
		known[caller.CompanyID] = now
	}
	if now != permit.Caller().Version { // it is read again: an earlier write of the request may have raised it
		return access.ErrMoved
	}
	return nil
}

// controlVersion is the version of a company's controls, as a part of a query whose one
// parameter, or column, is the company. That of a company that was deleted is -1, so that
// no permit from before is valid again.
func controlVersion(company string) string {
	return `COALESCE((SELECT COALESCE(v.version, 0) FROM companies vc LEFT JOIN control_versions v ON v.company_id = vc.id WHERE vc.id = ` +
		company + `), -1)`
}

// raises notes that the transaction may change what one of the company's callers may do.
func (t *tx) raises(companyID string) {
	if !slices.Contains(t.raised, companyID) {
		t.raised = append(t.raised, companyID)
	}
}

// conclude is the last step of a transaction, after everything that may have waited for
// others: it raises the versions of controls, and refuses what the permit does not allow
// any more. It returns the version to which it raised that of the permit's company: if that is not the next one, the
// controls have changed since the caller was let in.
func (db *DB) conclude(ctx context.Context, t *tx) (version int64, err error) {
	permit := access.PermitOf(ctx)
	if permit != nil && permit.Caller().Ended(db.now()) {
		return 0, access.ErrMoved
	}
	compared := permit == nil || t.compared
	slices.Sort(t.raised)
	for _, companyID := range t.raised {
		now, err := value[int64](ctx, t, `INSERT INTO control_versions AS v (company_id, version) VALUES (?, 1)
			ON CONFLICT (company_id) DO UPDATE SET version = v.version + 1 RETURNING version`, companyID)
		if err != nil {
			return 0, err
		}
		engine.Memory(ctx)[companyID] = now
		if permit != nil && companyID == permit.Caller().CompanyID {
			if now != permit.Caller().Version+1 {
				return 0, access.ErrMoved
			}
			version, compared = now, true
		}
	}
	if compared {
		return version, nil
	}
	return 0, db.compare(ctx, t, permit)
}
