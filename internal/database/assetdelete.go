package database

import (
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/slice"
)

// ofAsset are the tables with what is known of assets, and the condition on their rows. They
// are exported in this order, rows by their key, and deleted in the other, each before what it
// refers to.
var ofAsset = []struct{ table, where, key string }{ //nolint:gochecknoglobals // a table that is never written to
	{"assets", `id IN (?)`, "id"},
	{"asset_contacts", `asset_id IN (?)`, "asset_id"},
	{"asset_places", `asset_id IN (?)`, "reported_at"},
	{"asset_apps", `asset_id IN (?)`, "asset_id"},
	{"installed_apps", `asset_id IN (?)`, "package"},
	{"asset_edits", `asset_id IN (?)`, "asset_id"},
	{"commands", `asset_id IN (?)`, "id"},
	{"device_logs", `asset_id IN (?)`, "command_id"},
	{"command_polls", `command_id IN (SELECT c.id FROM commands c WHERE c.asset_id IN (?))`, "command_id"},
	{"command_cancels", `command_id IN (SELECT c.id FROM commands c WHERE c.asset_id IN (?))`, "command_id"},
}

// DeleteAssets implements asset.Deleter.
func (db *DB) DeleteAssets(ctx context.Context, companyID string, ids []string, exporter durable.RowExporter) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids))) // always in one order
	var deleted bool                                        // what is left is to commit
	err := db.write(longFor(ctx, ids), func(ctx context.Context, t *tx) error {
		deleted = false
		if err := holdInventory(ctx, t, companyID); err != nil { // an import locks assets in another order
			return err
		}
		all := make([]lockedAsset, len(ids))
		for i, id := range ids {
			h, _, err := holdAsset(ctx, t, companyID, id, nil)
			if err == nil {
				err = deletable(h.identification, h.status == archived)
			}
			if err != nil {
				return err
			}
			all[i] = h
		}
		if err := exportAssets(ctx, t, ids, exporter); err != nil {
			return err
		}
		deleteAll(ctx, t, companyID, all)
		deleted = t.failed == nil
		return nil
	})
	if deleted {
		err = db.doubted(err)
	}
	return err
}

// deletable says why an asset cannot be deleted: only an archived one can.
func deletable(identification string, archived bool) error {
	if archived {
		return nil
	}
	return fault.New(fault.Unsupported, "%s is not archived: archive it first", identification)
}

// ExportAsset implements asset.Deleter.
func (db *DB) ExportAsset(ctx context.Context, companyID, id string, exporter durable.RowExporter) error {
	return db.engine.Snapshot(ctx, func(ctx context.Context, c conn) error {
		a, err := findAsset(ctx, c, companyID, id)
		if err == nil {
			err = deletable(a.Identification, a.Archived)
		}
		if err != nil {
			return err
		}
		return exportAssets(ctx, c, []string{id}, exporter)
	})
}

// exportAssets keeps every row of some assets.
func exportAssets(ctx context.Context, c conn, ids []string, exporter durable.RowExporter) error {
	if err := exporter.Begin(); err != nil {
		return err
	}
	for _, id := range ids {
		for _, of := range ofAsset {
			if err := keepRows(ctx, c, of.table, of.where+` ORDER BY `+of.key, id, exporter.Keep); err != nil {
				return err
			}
		}
	}
	return exporter.Commit()
}

// keepRows keeps rows of a table by their columns.
func keepRows(ctx context.Context, c conn, table, where, id string, keep func(table string, row map[string]any) error) error {
	return engine.Each(ctx, c, func(r row) (map[string]any, error) {
		columns, err := r.(interface{ Columns() ([]string, error) }).Columns()
		if err != nil {
			return nil, err
		}
		values, err := scanAny(r, len(columns))
		named := map[string]any{}
		for i, column := range columns {
			named[column] = values[i]
		}
		return named, err
	}, func(row map[string]any) error { return keep(table, row) }, `SELECT * FROM `+table+` WHERE `+where, id)
}

// scanAny scans a row of n columns of any type.
func scanAny(r row, n int) ([]any, error) {
	values, pointers := make([]any, n), make([]any, n)
	for i := range values {
		pointers[i] = &values[i]
	}
	return values, r.Scan(pointers...)
}

// keepJobResults keeps with their jobs what failed of the commands of a company's assets.
const keepJobResults = `UPDATE job_devices SET state = m.state, outcome = m.outcome
	FROM commands m JOIN jobs j ON j.company_id = m.company_id AND j.id = substr(m.idempotency_ref, 5, 26)
	WHERE m.company_id = ? AND m.asset_id IN (?) AND m.idempotency_ref LIKE 'job:%' AND m.state <> 'SUCCESS'
	AND job_devices.job_id = j.id AND job_devices.asset_id = substr(m.idempotency_ref, 32)`

// deleteAll deletes locked assets with all that is known of them. The rows of agent_devices and
// device_names stay without an asset: by them, a device that comes back is told that it was ended,
// and its messages are known to be late. What counts in a limit stays, too.
func deleteAll(ctx context.Context, t *tx, companyID string, all []lockedAsset) {
	counts := counts{}
	var terms termChanges
	for some := range slices.Chunk(all, deletedAssets) {
		ids := slice.Map(some, func(h lockedAsset) string { return h.id })
		if len(ids) > 1 {
			ids = filled(ids, deletedAssets) // two texts to prepare
		}
		deleteSome(ctx, t, companyID, anys(ids))
	}
	for _, h := range all {
		h.count(counts, -1)
		terms.change(companyID, h.id, h.terms, "")
		t.changed(companyID, "asset", h.id)
		t.check(h.record(ctx, t, activity.AssetDeleted))
	}
	terms.save(ctx, t)
	counts.save(ctx, t)
}

// deletedAssets is how many assets one statement deletes.
const deletedAssets = 100

// deleteSome is deleteAll for the rows of assets that refer to them, and their own.
func deleteSome(ctx context.Context, t *tx, companyID string, ids []any) {
	do := func(statement string, args ...any) {
		t.do(ctx, strings.Replace(statement, `(?)`, `(`+marks(len(ids))+`)`, 1), append(args, ids...)...)
	}
	do(`UPDATE device_names SET asset_id = '', ended = TRUE WHERE asset_id IN (?)`)
	do(`DELETE FROM agent_deliveries WHERE device_id IN (SELECT d.id FROM agent_devices d WHERE d.asset_id IN (?))`)
	do(`UPDATE agent_devices SET asset_id = '', push_token = '' WHERE asset_id IN (?)`)
	do(`DELETE FROM companion_tokens WHERE asset_id IN (?)`)
	do(`DELETE FROM agent_tokens WHERE asset_id <> '' AND asset_id IN (?)`)
	do(keepJobResults, companyID)
	do(`DELETE FROM enrollment_requests WHERE company_id = ? AND asset_id IN (?)`, companyID)
	for _, of := range slices.Backward(ofAsset) {
		do(`DELETE FROM ` + of.table + ` WHERE ` + of.where)
	}
}

// longFor lets work on several assets take minutes. For one of them a person waits at a page.
func longFor(ctx context.Context, ids []string) context.Context {
	if len(ids) > 1 {
		return engine.Long(ctx)
	}
	return ctx
}

// ArchiveAssets implements asset.Editor.
func (db *DB) ArchiveAssets(ctx context.Context, companyID string, ids []string, archive bool) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids))) // always in one order
	return db.write(longFor(ctx, ids), func(ctx context.Context, t *tx) error {
		t.check(holdInventory(ctx, t, companyID)) // an import locks assets in another order
		counts := counts{}
		for _, id := range ids {
			h, _, err := holdAsset(ctx, t, companyID, id, nil)
			t.check(err)
			h.count(counts, -1)
			t.check(h.setArchived(archive))
			h.count(counts, 1)
			t.check(h.save(ctx, t))
			t.changed(companyID, "asset", id)
			action := activity.AssetRestored
			if archive {
				action = activity.AssetArchived
			}
			t.check(h.record(ctx, t, action))
		}
		counts.save(ctx, t)
		return nil
	})
}

// setArchived makes an asset archived, or what it was before.
func (h *lockedAsset) setArchived(archive bool) error {
	switch {
	case archive && h.status == archived:
		return fault.New(fault.Unsupported, "%s is archived already", h.identification)
	case archive && h.status.Enrolled():
		return fault.New(fault.Unsupported, "%s is managed: only assets that were never enrolled, or whose management has ended, "+
			"are archived", h.identification)
	case archive:
		h.status, h.archived = archived, string(h.status)
	case h.status != archived:
		return fault.New(fault.Unsupported, "%s is not archived", h.identification)
	default:
		h.status, h.archived = asset.Status(h.archived), ""
	}
	return nil
}
