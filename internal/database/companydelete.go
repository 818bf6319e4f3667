package database

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

const (
	// deletedRows bounds the rows of a company that one transaction deletes, and deletedKeys
	// those that are found at once.
	deletedRows, deletedKeys = 200, 5000
	// deletionLease is how long a deletion is left to the command that began it.
	deletionLease = 5 * time.Minute
	// deletionReason is that of the stop during a deletion.
	deletionReason = "the company is being deleted"
)

// DeleteCompany deletes a company with everything that belongs to it. The company is stopped first. Once the export is
// durable its people, keys and codes end at once, and its rows go in small transactions. If
// that ends half-way, DeleteCompany and FinishDeletions go on with it.
func (db *DB) DeleteCompany(ctx context.Context, id string, exporter durable.RowExporter) error {
	before, err := db.stopToDelete(ctx, id)
	if err != nil {
		return err
	}
	if err = db.exportCompany(ctx, id, exporter); err == nil {
		err = db.beginDeletion(ctx, id)
	}
	if err != nil {
		if begun, found := holds(ctx, db.read(), `SELECT company_id FROM company_deletions WHERE company_id = ?`, id); found != nil ||
			begun {
			return err
		}
		if _, undone := db.UpdateCompany(ctx, id, func(c *company.Company) error { c.Settings.Stop = before; return nil }); undone != nil {
			return fault.New(fault.Unavailable, "%v; the company stays stopped: `muster company resume` ends that", err)
		}
		return err
	}
	return db.deleteCompanyRows(ctx, id)
}

// mayDelete refuses a company that is connected, or of which a device is managed.
func mayDelete(ctx context.Context, t *tx, c company.Company) error {
	if c.Connected() {
		return fault.New(fault.Refused, "the company is connected to %s: run `muster company disconnect --company %s --confirm %s` first",
			c.Enterprise, c.Slug, c.Slug)
	}
	managed := valueIn[int64](ctx, t,
		`SELECT COUNT(*) FROM assets WHERE company_id = ? AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`, c.ID)
	if managed > 0 {
		return fault.New(fault.Refused, "%d devices of the company are managed: wipe them or relinquish their ownership first", managed)
	}
	return nil
}

// stopToDelete stops all changes in a company that may be deleted. It returns the stop
// that there was, which may be that of a deletion that was broken off.
func (db *DB) stopToDelete(ctx context.Context, id string) (access.Stop, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (access.Stop, error) {
		c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), id)
		if err == nil {
			err = mayDelete(ctx, t, c)
		}
		if err != nil || c.Settings.Stop.All && c.Settings.Stop.Reason == deletionReason {
			return c.Settings.Stop, err
		}
		next := c
		next.Settings.Stop = access.Stop{At: db.now(), Reason: deletionReason, All: true}
		return c.Settings.Stop, db.saveCompany(ctx, t, c, next)
	})
}

// exportCompany shows every row of a company, as they are at one moment.
func (db *DB) exportCompany(ctx context.Context, id string, exporter durable.RowExporter) error {
	if err := exporter.Begin(); err != nil {
		return err
	}
	if err := db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		for _, of := range ofCompany {
			if err := keepRows(ctx, c, of.table, of.where, id, exporter.Keep); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return exporter.Commit()
}

// beginDeletion ends everything with which someone or something acts in the company. From
// here on the deletion goes on.
func (db *DB) beginDeletion(ctx context.Context, id string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		c, err := findCompany(ctx, t, `c.id = ?`+t.lock(), id)
		if err == nil {
			err = mayDelete(ctx, t, c)
		}
		if err != nil {
			return err
		}
		now := millis(db.now())
		t.do(ctx, `INSERT INTO company_deletions (company_id, begun_at) VALUES (?, ?)
			ON CONFLICT (company_id) DO UPDATE SET begun_at = excluded.begun_at`, id, now)
		for _, ends := range []string{
			`DELETE FROM sessions WHERE ` + ofUsers,
			`DELETE FROM signin_steps WHERE company_id = ?`,
			`UPDATE users SET disabled = TRUE WHERE company_id = ?`,
			`UPDATE identity_providers SET enabled = FALSE WHERE company_id = ?`,
			`UPDATE agent_tokens SET expires_at = 0 WHERE company_id = ?`,
			`UPDATE companion_tokens SET expires_at = 0 WHERE company_id = ?`,
			`DELETE FROM oauth_codes WHERE company_id = ?`,
			`UPDATE webhooks SET state = 'DISABLED', why = 'the company is being deleted' WHERE company_id = ?`,
		} {
			t.do(ctx, ends, id)
		}
		for _, table := range []string{"api_keys", "oauth_connections", "enrollment_codes"} {
			t.do(ctx, `UPDATE `+table+` SET revoked_at = ? WHERE company_id = ? AND revoked_at = 0`, now, id)
		}
		t.raises(id)
		t.changed(id, resource.CompanyKind, "")
		return nil
	})
}

// beingDeleted refuses changes of a company of which rows are gone already.
func beingDeleted(ctx context.Context, c conn, id string) error {
	gone, err := holds(ctx, c, `SELECT company_id FROM company_deletions WHERE company_id = ?`, id)
	if err == nil && gone {
		err = fault.New(fault.Refused, "the company is being deleted")
	}
	return err
}

// FinishDeletions goes on with the deletions that ended half-way. Run it every few
// minutes; several replicas may.
func (db *DB) FinishDeletions(ctx context.Context) error {
	ids, err := list(ctx, db.read(), scanValue[string],
		`SELECT d.company_id FROM company_deletions d WHERE d.begun_at < ? ORDER BY d.company_id`,
		millis(db.now().Add(-deletionLease)))
	for _, id := range ids {
		if err == nil {
			err = db.deleteCompanyRows(ctx, id)
		}
	}
	return err
}

// deleteCompanyRows deletes what belongs to a company, each table before those that it
// refers to, and last, in one transaction, the company with what was added since.
func (db *DB) deleteCompanyRows(ctx context.Context, id string) error {
	for _, of := range slices.Backward(ofCompany) {
		if of.last {
			continue
		}
		for more := true; more; {
			var err error
			if more, err = db.deletePart(ctx, of.table, strings.Split(of.key, ", "), of.where, id); err != nil {
				return err
			}
		}
	}
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := findCompany(ctx, t, `c.id = ?`+t.lock(), id); err != nil {
			return unlessGone(err) // another did it
		}
		for _, of := range slices.Backward(ofCompany) {
			t.do(ctx, `DELETE FROM `+of.table+` WHERE `+of.where, id)
		}
		return nil
	})
}

// unlessGone is nil for what is not there.
func unlessGone(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// deletePart deletes up to deletedKeys rows of a company from a table. They are found
// outside the transactions, in which nothing is looked for.
func (db *DB) deletePart(ctx context.Context, table string, key []string, where, id string) (more bool, err error) {
	keys, err := list(ctx, db.read(), func(r row) ([]any, error) { return scanAny(r, len(key)) },
		`SELECT `+strings.Join(key, ", ")+` FROM `+table+` WHERE `+where+` LIMIT ?`, id, deletedKeys)
	if err != nil {
		return false, err
	}
	one := `DELETE FROM ` + table + ` WHERE ` + strings.Join(key, " = ? AND ") + ` = ?`
	for part := range slices.Chunk(keys, deletedRows) {
		if err := db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
			for _, values := range part {
				t.do(ctx, one, values...)
			}
			return nil
		}); err != nil {
			return false, err
		}
	}
	return len(keys) == deletedKeys, nil
}
