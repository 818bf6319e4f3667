package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// ArchiveAssets implements asset.Archiver.
func (db *DB) ArchiveAssets(ctx context.Context, companyID string, ids []string, archive bool) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids))) // always in one order
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(holdCompany(ctx, t, companyID)) // an import holds assets in another order
		counts := counts{}
		for _, id := range ids {
			h, _, err := holdAsset(ctx, t, companyID, id)
			if err != nil {
				return err
			}
			h.count(counts, -1)
			if err := h.putAway(archive); err != nil {
				return err
			}
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

// putAway makes an asset archived, or what it was before.
func (h *lockedAsset) putAway(archive bool) error {
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
