package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// EditAsset implements asset.Editor.
func (db *DB) EditAsset(ctx context.Context, companyID, id string, e asset.Edit) (asset.Asset, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (asset.Asset, error) {
		h, err := hold(ctx, t, id)
		if err == nil && (h.companyID != companyID || e.Policies != nil && (!h.status.Enrolled() || !slices.Contains(e.Policies, h.policyID))) {
			err = fault.New(fault.NotFound, "no such asset")
		}
		if err != nil {
			return asset.Asset{}, err
		}
		before, err := findAsset(ctx, t, companyID, id)
		if err != nil {
			return before, err
		}
		after := before
		if err := e.Apply(&after); err != nil {
			return before, err
		}
		return after, h.edit(ctx, t, before, after)
	})
}

// edit writes what people say of an asset, and records what changed.
func (h lockedAsset) edit(ctx context.Context, t *tx, before, after asset.Asset) error {
	changes := []activity.Change{}
	for _, d := range asset.Differences(before, after) {
		changes = append(changes, activity.Change{Field: d.Field, Before: d.Before, After: d.After})
	}
	if len(changes) == 0 {
		return nil
	}
	if before.Identification != after.Identification {
		h.identification, h.named = after.Identification, true
	}
	h.tags, h.custom = encodeSome(after.Tags), encodeSome(after.CustomData)
	t.changed(h.companyID, "asset", h.id)
	if err := h.save(ctx, t); err != nil {
		return err
	}
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: activity.AssetChanged,
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: after.Identification}, Changes: changes})
}
