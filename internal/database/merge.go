package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// mergedOutcome is the outcome of the commands of an asset whose device became another's.
const mergedOutcome = "the asset was merged into another before the device confirmed the command"

// SameSerial returns the ids of other assets of the company that claim the
// serial number of an asset, at most five.
func (db *DB) SameSerial(ctx context.Context, companyID, id string) ([]string, error) {
	return list(ctx, db.read(), scanValue[string],
		`SELECT o.id FROM assets a JOIN assets o ON o.company_id = a.company_id AND o.serial_key = a.serial_key
		WHERE a.company_id = ? AND a.id = ? AND a.serial_key <> '' AND o.id <> a.id AND (o.brand_key = a.brand_key OR o.brand_key = ''
			OR a.brand_key = '')
		ORDER BY o.created_at, o.id LIMIT 5`, companyID, id)
}

// MergeAssets makes the device of one asset that of another, which is kept: it
// begins a new enrollment of the kept one. The device that this was before is
// superseded, the other asset is left without a device and without its serial
// number, and the open commands of both have failed. An open job that sent to the device as the
// other asset does not as the kept one. by is nil for the operator.
func (db *DB) MergeAssets(ctx context.Context, companyID, keptID, otherID string, by *access.Replacement) error {
	return db.replacing(ctx, companyID, func(ctx context.Context, t *tx) (refused, err error) {
		kept, other, err := holdBoth(ctx, t, companyID, keptID, otherID)
		if err != nil {
			return nil, err
		}
		if refused, err := db.letLeave(ctx, t, kept, by, activity.AssetMerged); refused != nil || err != nil {
			return refused, err
		}
		mergeJobs(ctx, t, kept, other)
		t.changed(companyID, "asset", keptID)
		t.changed(companyID, "asset", otherID)
		return nil, merge(ctx, t, kept, other)
	})
}

// holdBoth locks two assets that can be merged.
func holdBoth(ctx context.Context, t *tx, companyID, keptID, otherID string) (kept, other lockedAsset, err error) {
	rows := map[string]lockedAsset{}
	for _, id := range []string{min(keptID, otherID), max(keptID, otherID)} { // always in one order
		h, err := hold(ctx, t, id)
		t.check(err)
		rows[id] = h
	}
	kept, other = rows[keptID], rows[otherID]
	if kept.companyID != companyID || other.companyID != companyID {
		return kept, other, fault.New(fault.NotFound, "no such asset")
	}
	ending := t.holds(ctx, `SELECT id FROM commands WHERE `+isOpen+` AND asset_id = ? AND type IN `+endings+` LIMIT 1`, otherID)
	switch {
	case keptID == otherID:
		err = fault.New(fault.Refused, "an asset cannot be merged with itself")
	case !other.status.Enrolled():
		err = fault.New(fault.Refused, "the asset that is to be merged has no device: name the one with the device second")
	case !kept.claim().MayBe(other.claim()):
		err = fault.New(fault.Refused, "the assets have different serial numbers, or none: two assets are merged if one was never "+
			"enrolled, or if both have the same serial number")
	case ending:
		err = fault.New(fault.Refused, "the device that is to be merged is being wiped or released: wait until that has ended")
	}
	return kept, other, err
}

func merge(ctx context.Context, t *tx, kept, other lockedAsset) error {
	counts := counts{}
	kept.count(counts, -1)
	other.count(counts, -1)
	before := kept
	failBeforeEnrollment(ctx, t, kept)
	for _, c := range lockOpen(ctx, t, other.id) {
		_, err := t.db.advanceWithin(ctx, t, c.ID,
			command.Transition{From: []command.State{c.State}, To: command.Failed, Outcome: mergedOutcome})
		t.check(err)
	}
	supersede(ctx, t, kept.id, "")
	kept.become(other)
	left := other
	left.status, left.policyID, left.device = asset.Deleted, "", ""
	left.epoch++                                              // no token and no request for the device that it was
	left.serialKey, left.brandKey, left.stableID = "", "", "" // it is no longer found by them
	facts, err := decodeMap(left.specifications)
	t.check(err)
	delete(facts, "serialNumber")
	left.specifications = encodeSome(facts)
	left.location = ""
	kept.count(counts, 1)
	left.count(counts, 1)
	t.check(other.recordEnded(ctx, t, "merged: its device became that of the asset "+kept.id))
	for _, h := range []lockedAsset{left, kept} {
		t.check(h.save(ctx, t))
	}
	moveDevice(ctx, t, other, kept)
	counts.save(ctx, t)
	return kept.record(ctx, t, activity.AssetMerged, activity.Differences(activity.Change{Field: "mergedAsset", After: other.id},
		activity.Change{Field: "device", Before: before.device, After: kept.device},
		activity.Change{Field: "management", Before: before.management, After: kept.management})...)
}

// become takes over the device of another asset. What people said of the asset stays, and
// what it was when it was locked: save compares with that, and tells who listens.
func (h *lockedAsset) become(o lockedAsset) {
	was := *h
	*h = o
	h.id, h.epoch, h.tags, h.custom, h.terms = was.id, was.epoch+1, was.tags, was.custom, was.terms
	h.wasLost, h.wasSeen = was.wasLost, was.wasSeen
	if h.named = was.named; h.named {
		h.identification = was.identification
	}
}

// moveDevice ties what belongs to a device to its new asset.
func moveDevice(ctx context.Context, t *tx, from, to lockedAsset) {
	now := millis(t.db.now())
	t.do(ctx, `UPDATE device_names SET ended = TRUE, observed_at = CASE WHEN observed_at > ? THEN observed_at ELSE ? END
		WHERE asset_id = ? AND NOT ended`, now, now, to.id)
	t.do(ctx, `UPDATE device_names SET asset_id = ? WHERE asset_id = ?`, to.id, from.id)
	t.do(ctx, `DELETE FROM agent_deliveries WHERE device_id IN (SELECT id FROM agent_devices WHERE asset_id = ?)`, from.id)
	t.do(ctx, `UPDATE agent_devices SET asset_id = ?, epoch = ?, open_deliveries = 0, erasing_at = 0
		WHERE asset_id = ? AND epoch = ? AND state <> '`+string(agentdevice.Deleted)+`'`, to.id, to.epoch, from.id, from.epoch)
	t.do(ctx, `DELETE FROM asset_edits WHERE asset_id IN (?, ?)`, to.id, from.id)
	t.do(ctx, `DELETE FROM asset_apps WHERE asset_id = ?`, to.id)
	t.do(ctx, `UPDATE asset_apps SET asset_id = ? WHERE asset_id = ?`, to.id, from.id)
	t.do(ctx, `DELETE FROM installed_apps WHERE asset_id = ?`, to.id)
	t.do(ctx, `UPDATE installed_apps SET asset_id = ? WHERE asset_id = ?`, to.id, from.id)
	t.do(ctx, `DELETE FROM asset_places WHERE asset_id = ? AND reported_at IN (SELECT p.reported_at FROM asset_places p
		WHERE p.asset_id = ?)`, from.id, to.id) // the places of the asset before stay
	t.do(ctx, `UPDATE asset_places SET asset_id = ? WHERE asset_id = ?`, to.id, from.id)
	t.do(ctx, `UPDATE device_logs SET asset_id = ? WHERE asset_id = ?`, to.id, from.id)
}

// replacing runs work that may let a managed device leave its asset, under the lock of
// the company: the limit and all destructive commands wait for each other. An import is kept out. What
// work refused is returned once its entry in the activity log is kept.
func (db *DB) replacing(ctx context.Context, companyID string, work func(ctx context.Context, t *tx) (refused, err error)) error {
	return db.refusing(ctx, func(ctx context.Context, t *tx) (refused, err error) {
		t.check(shareInventory(ctx, t, companyID))
		t.check(holdCompany(ctx, t, companyID))
		return work(ctx, t)
	})
}

// letLeave lets the device of an asset that is locked with its company leave it, if it is
// managed: it counts as one that gets a destructive command. by is nil for the operator,
// who is not counted. A refusal by the limit is recorded as one of the action.
func (db *DB) letLeave(ctx context.Context, t *tx, h lockedAsset, by *access.Replacement, action activity.Action) (refused, err error) {
	if by == nil || !h.status.Enrolled() {
		return nil, nil
	}
	if err := by.Refusal(); err != nil {
		return nil, err
	}
	device := command.Command{CompanyID: h.companyID, AssetID: h.id, Epoch: h.epoch, Actor: access.Actor{Kind: access.User, ID: by.UserID}}
	s, _, now, err := db.companyState(ctx, t, device, t.hold())
	if err != nil {
		return nil, err
	}
	if !s.Allows() {
		return s.Refusal(), db.recordLimited(ctx, t, h.companyID, s.Limit, activity.Event{Action: action,
			Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification}})
	}
	for _, note := range noteUse(device, now) {
		t.do(ctx, note.text, note.args...)
	}
	return nil, nil
}
