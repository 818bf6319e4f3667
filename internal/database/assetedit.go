package database

import (
	"context"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// EditAsset implements asset.Editor.
func (db *DB) EditAsset(ctx context.Context, companyID, id string, e asset.Edit) (asset.Asset, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (asset.Asset, error) {
		h, before, err := holdAsset(ctx, t, companyID, id)
		if err == nil && !h.within(e.Policies) {
			err = fault.New(fault.NotFound, "no such asset")
		}
		if err != nil {
			return asset.Asset{}, err
		}
		after := before
		if err := e.Apply(&after); err != nil {
			return before, err
		}
		return after, h.edit(ctx, t, before, after)
	})
}

// holdAsset locks an asset of a company and reads it.
func holdAsset(ctx context.Context, t *tx, companyID, id string) (lockedAsset, asset.Asset, error) {
	h, err := hold(ctx, t, id)
	if err != nil {
		return h, asset.Asset{}, err
	}
	a, err := findAsset(ctx, t, companyID, id)
	return h, a, err
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
	h.say(before, after)
	t.changed(h.companyID, "asset", h.id)
	t.check(h.save(ctx, t))
	t.check(h.keepEdit(ctx, t, before, after))
	return h.record(ctx, t, activity.AssetChanged, changes...)
}

// say takes over what people say of the asset.
func (h *lockedAsset) say(before, after asset.Asset) {
	if before.Identification != after.Identification {
		h.identification, h.named = after.Identification, true
	}
	h.tags, h.custom = encodeSome(after.Tags), encodeSome(after.CustomData)
}
