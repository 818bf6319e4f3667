package database

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// EditAsset implements asset.Editor.
func (db *DB) EditAsset(ctx context.Context, companyID, id string, e asset.Edit) (asset.Asset, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (asset.Asset, error) {
		h, before, err := holdAsset(ctx, t, companyID, id, e.Policies)
		if err != nil {
			return asset.Asset{}, err
		}
		after := before
		if err := e.Apply(&after); err != nil {
			return before, err
		}
		return after, h.edit(ctx, t, before, after, true)
	})
}

// holdAsset locks an asset of a company and reads it. It fails with fault.NotFound, also if a caller
// who is limited to policies may not see the asset; nil: no limit.
func holdAsset(ctx context.Context, t *tx, companyID, id string, policies []string) (lockedAsset, asset.Asset, error) {
	h, err := hold(ctx, t, id)
	t.check(err)
	a, err := findAsset(ctx, t, companyID, id)
	if err == nil && !h.within(policies) {
		err = fault.New(fault.NotFound, "no such asset")
	}
	return h, a, err
}

// edit writes what people say of an asset, and records what changed. named says whether a
// changed identification is one that a person gave; else the device's reports go on changing it.
func (h lockedAsset) edit(ctx context.Context, t *tx, before, after asset.Asset, named bool) error {
	changes := []activity.Change{}
	for _, d := range asset.Differences(before, after) {
		changes = append(changes, activity.Change{Field: d.Field, Before: d.Before, After: d.After})
	}
	if len(changes) == 0 {
		return nil
	}
	was := labelsOf(before)
	was.Unnamed = !h.named
	h.say(before, after)
	if before.Identification != after.Identification {
		h.named = named
	}
	t.changed(h.companyID, "asset", h.id)
	t.check(h.save(ctx, t))
	t.check(h.keepEdit(ctx, t, was, labelsOf(after)))
	return h.record(ctx, t, activity.AssetChanged, changes...)
}

// say takes over what people say of the asset.
func (h *lockedAsset) say(before, after asset.Asset) {
	if before.Identification != after.Identification {
		h.identification, h.named = after.Identification, true
	}
	h.tags, h.custom = encodeSome(after.Tags), encodeSome(after.CustomData)
}

// editLife is how long an edit is kept: a job may undo many after one another.
const editLife = 24 * time.Hour

// labels is what people say of an asset.
type labels struct {
	Identification string            `json:"identification"`
	Tags           []string          `json:"tags"`
	CustomData     map[string]string `json:"customData"`
	Unnamed        bool              `json:"unnamed,omitempty"` // the identification is what the device reported
}

func labelsOf(a asset.Asset) *labels {
	return &labels{Identification: a.Identification, Tags: a.Tags, CustomData: a.CustomData}
}

func (s labels) of(a asset.Asset) asset.Asset {
	a.Identification, a.Tags, a.CustomData = s.Identification, s.Tags, s.CustomData
	return a
}

// keepEdit keeps an edit of a person, in the place of the asset's last.
func (h lockedAsset) keepEdit(ctx context.Context, t *tx, before, after *labels) error {
	o := access.OriginOf(ctx)
	if o.Actor.Kind != access.User && o.Actor.Kind != access.System || o.RequestID == "" {
		return t.Exec(ctx, `DELETE FROM asset_edits WHERE asset_id = ?`, h.id) // it is the last edit no more
	}
	return t.Exec(ctx, `INSERT INTO asset_edits (asset_id, company_id, ref, at, before, after) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (asset_id) DO UPDATE SET ref = excluded.ref, at = excluded.at, before = excluded.before, after = excluded.after`,
		h.id, h.companyID, o.RequestID, millis(t.db.now()), encode(before), encode(after))
}

// LastEdit implements asset.Undoer.
func (db *DB) LastEdit(ctx context.Context, companyID, id string) (ref string, at time.Time, err error) {
	_, _, err = maybe(one(ctx, db.read(), func(r row) (none struct{}, err error) { return none, r.Scan(&ref, (*moment)(&at)) },
		`SELECT ref, at FROM asset_edits WHERE asset_id = ? AND company_id = ?`, id, companyID))
	return ref, at, err
}

// EditedBy implements asset.Undoer.
func (db *DB) EditedBy(ctx context.Context, companyID, ref string) ([]string, error) {
	return list(ctx, db.read(), scanValue[string], `SELECT asset_id FROM asset_edits WHERE ref = ? AND company_id = ? ORDER BY asset_id`,
		ref, companyID)
}

// UndoEdit implements asset.Undoer.
func (db *DB) UndoEdit(ctx context.Context, companyID, id, ref string, within time.Duration, policies []string) (asset.Asset, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (asset.Asset, error) {
		h, now, err := holdAsset(ctx, t, companyID, id, policies)
		if err != nil {
			return asset.Asset{}, err
		}
		var before, after labels
		type edit struct{ at time.Time }
		_, there, err := maybe(one(ctx, t, into(func(e *edit) []any { return []any{(*moment)(&e.at), encoded{&before}, encoded{&after}} }),
			`SELECT at, before, after FROM asset_edits WHERE asset_id = ? AND company_id = ? AND ref = ? AND at > ?`, id, companyID, ref,
			millis(db.now().Add(-within))))
		switch {
		case err != nil:
			return now, err
		case h.status == archived:
			return now, fault.New(fault.Unsupported, "the asset is archived: restore it first")
		case !there:
			return now, fault.New(fault.Unsupported, "there is nothing to undo: the asset was changed since, or too much time has passed")
		case len(asset.Differences(after.of(now), now)) > 0:
			return now, fault.New(fault.Unsupported, "the asset was changed since")
		}
		undone := before.of(now)
		t.check(h.edit(ctx, t, now, undone, !before.Unnamed))
		return undone, t.Exec(ctx, `DELETE FROM asset_edits WHERE asset_id = ? AND company_id = ?`, id, companyID)
	})
}

// within reports whether a caller who is limited to policies may see the asset; nil: no
// limit.
func (h lockedAsset) within(policies []string) bool {
	return policies == nil || h.status.Enrolled() && slices.Contains(policies, h.policyID)
}
