package database

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Observe applies one observation in one transaction. A zero ObservedAt means now. These rules hold, each of which was
// once a bug:
//
//   - A message of the platform is applied once, by its id.
//   - An observation that is older than the newest one of its device is dropped, also after the device has ended. An
//     observation of only a location is applied at any age since the enrollment, and does not count as the newest:
//     reports that are older than it are still applied. Reports of an agent arrive in their order, by their sequence
//     numbers: one that seems older was received after the clock was set back, or by another replica.
//   - A device that ended comes back only by a new enrollment, or by a
//     comparison with the platform while its asset has no other device.
//   - An unknown device joins with any observation but that it is gone: the message about its enrollment may be lost.
//   - A new enrollment is a new epoch. Open commands of the epoch before fail.
func (db *DB) Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error) {
	if o.ObservedAt.IsZero() {
		o.ObservedAt = db.now()
	}
	o = keepable(o)
	change, err := written(ctx, db, func(ctx context.Context, t *tx) (enrollment.Change, error) {
		change, err := observe(ctx, t, o)
		if change.Applied {
			t.changed(o.CompanyID, "asset", change.AssetID)
		}
		return change, err
	})
	if err != nil {
		return enrollment.Change{}, db.doubted(err)
	}
	return change, nil
}

// keepable returns the observation with texts that both engines can store; see storable.
func keepable(o enrollment.Observation) enrollment.Observation {
	for _, text := range []*string{&o.Device, &o.StableID, &o.SerialNumber, &o.Brand, &o.Model} {
		*text = storable(*text)
	}
	o.StatusReport = json.RawMessage(storable(string(o.StatusReport)))
	return o
}

// observe is Observe within a transaction. A zero Change means that the observation was dropped.
func observe(ctx context.Context, t *tx, o enrollment.Observation) (enrollment.Change, error) {
	dropped := enrollment.Change{}
	if !remember(ctx, t, o.CompanyID, o.MessageID) {
		return dropped, nil
	}
	at := millis(o.ObservedAt)
	known, exists, err := lockName(ctx, t, o.CompanyID, o.Device, believed(t, at))
	if err == nil && (!exists || known.ended && o.Enrolling && !o.Gone && at >= known.observed) {
		// Only one device of a company joins at a time: otherwise a device that is announced twice at the same moment
		// would become two assets. After the wait the device may be known, so it is looked up again.
		t.check(shareInventory(ctx, t, o.CompanyID)) // an import may make the asset that the device is
		if err = holdCompany(ctx, t, o.CompanyID); err == nil {
			known, exists, err = lockName(ctx, t, o.CompanyID, o.Device, believed(t, at))
		}
	}
	switch {
	case err != nil:
		return dropped, err
	case exists && at < known.observed && (known.ended || o.Management != asset.Agent && !placeOnly(o)):
		return dropped, nil
	case exists && known.ended && (!o.Enrolling || o.Gone):
		return dropped, nil
	case !exists && o.Gone:
		return dropped, bury(ctx, t, o.CompanyID, o.Device, "", o.ObservedAt)
	case !exists || known.ended:
		if !mayJoin(ctx, t, o, known) {
			return dropped, nil
		}
		return join(ctx, t, o)
	}
	h, err := hold(ctx, t, known.assetID)
	t.check(err)
	if o.Gone {
		return enrollment.Change{Applied: true, AssetID: h.id, Epoch: h.epoch, Ended: true},
			h.end(ctx, t, o.ObservedAt, ending{how: "the " + strings.ToLower(h.management) + " no longer manages the device"})
	}
	if !placeOnly(o) {
		t.check(setName(ctx, t, o.CompanyID, o.Device, h.id, max(at, known.observed)))
	} else if millis(o.Location.ReportedAt) < h.enrolled && at < h.enrolled { // the device's own clock may be behind
		return dropped, nil
	}
	if o.Enrolling && millis(o.EnrolledAt) > h.enrolled {
		return h.apply(ctx, t, o, joinedByName)
	}
	t.check(mayMove(ctx, t, h, o))
	if h.movedSince(ctx, t, o) {
		o.PolicyID = ""
	}
	return h.apply(ctx, t, o, "")
}

// moveSettles is how much newer than a CHANGE_POLICY command a report may be and still name the policy before it: the platform
// gets the call only after the command is recorded, and its clock may differ from this service's.
const moveSettles = time.Minute

// movedSince reports whether a report of the platform names another policy than the device's, and may be older than the
// command that moved the device to its policy. Such a report must not change the policy back here.
func (h lockedAsset) movedSince(ctx context.Context, t *tx, o enrollment.Observation) bool {
	return o.Management == asset.Platform && o.PolicyID != "" && o.PolicyID != h.policyID && t.holds(ctx,
		`SELECT id FROM commands WHERE asset_id = ? AND epoch = ? AND created_at > ? AND type = 'CHANGE_POLICY' AND policy_id = ?
		AND state IN ('SENT', 'SUCCESS') LIMIT 1`, h.id, h.epoch, millis(o.ObservedAt.Add(-moveSettles)), h.policyID)
}

// mayMove fails with fault.Refused if the observation moves an agent to a policy that was deleted after the move was
// decided. It locks the policy, so that it cannot be deleted before the asset uses it.
func mayMove(ctx context.Context, t *tx, h lockedAsset, o enrollment.Observation) error {
	if o.Management != asset.Agent || o.PolicyID == "" || o.PolicyID == h.policyID {
		return nil
	}
	if !t.holds(ctx, `SELECT id FROM policies WHERE id = ? AND company_id = ? AND NOT deleted`+t.lock(), o.PolicyID, h.companyID) {
		return fault.New(fault.Refused, "the policy was deleted")
	}
	return nil
}

// remember stores the id of a message, and reports whether it was new. An empty id is always new.
func remember(ctx context.Context, t *tx, companyID, id string) bool {
	return id == "" || t.count(ctx, `INSERT INTO messages (company_id, id, seen_at) VALUES (?, ?, ?)
		ON CONFLICT (company_id, id) DO NOTHING`, companyID, id, millis(t.db.now())) == 1
}

// apply updates the asset's rows from the observation. If by is not empty, it says how the device was identified, and a new
// enrollment begins.
func (h lockedAsset) apply(ctx context.Context, t *tx, o enrollment.Observation, by joinedBy) (enrollment.Change, error) {
	o = h.translate(ctx, t, o)
	again, earlier := by != "", h
	if o.Location != nil && o.Management == asset.Agent && !h.mayLocate(ctx, t, o.Device) {
		o.Location = nil
	}
	if !o.ReportedAt.IsZero() {
		h.disbelieve(believed(t, millis(o.ReportedAt)))
	}
	if !again && h.outdatedLostMode(ctx, t, o) {
		o.LostMode = nil
	}
	codeGoesOn := false
	counts := counts{}
	if h.status != "" { // it is in the inventory
		h.count(counts, -1)
	}
	if again {
		failBeforeEnrollment(ctx, t, h)
		h.enroll(o)
		if o.Code != "" {
			goesOn, err := h.use(ctx, t, o.Code, o.Device)
			t.check(err)
			codeGoesOn = goesOn
		}
	}
	fresh, previous := again || millis(o.ReportedAt) > h.synced, h.reported
	h.learn(o)
	t.check(h.learnFacts(o))
	if h.reported != previous {
		h.reported = withSince(previous, h.reported)
	}
	if fresh || h.status != asset.Inactive {
		h.status = h.settled(o)
	}
	h.count(counts, 1)
	t.check(h.save(ctx, t))
	if again {
		t.check(h.recordEnrolled(ctx, t, earlier, by))
		earlier.hintCompanions(ctx, t)
	}
	if again && o.Apps == nil {
		t.check(forgetApps(ctx, t, h.id)) // those of the enrollment before
	}
	t.check(noteApps(ctx, t, h.id, o.Apps, h.synced))
	if h.reported != earlier.reported || again {
		t.check(h.noteInstalled(ctx, t))
	}
	if o.Location != nil {
		notePlace(ctx, t, h.id, *o.Location)
	}
	counts.save(ctx, t)
	return enrollment.Change{Applied: true, AssetID: h.id, Epoch: h.epoch, CodeGoesOn: codeGoesOn, PolicyID: h.appliedPolicy}, nil
}

// join enrolls a device whose name is not that of a managed device. The device gets the asset that it had before, an asset
// that was imported for it, or a new one. The caller holds the company's lock.
func join(ctx context.Context, t *tx, o enrollment.Observation) (enrollment.Change, error) {
	h, by, err := identify(ctx, t, o)
	t.check(err)
	newest := int64(0)
	if h.id != "" {
		newest = valueIn[int64](ctx, t, `SELECT CAST(COALESCE(MAX(observed_at), 0) AS BIGINT) FROM device_names
			WHERE asset_id = ? AND observed_at <= ?`, h.id, believed(t, millis(o.ObservedAt)))
	} else {
		h.companyID, h.id = o.CompanyID, createAsset(ctx, t, o)
	}
	switch {
	case newest > millis(o.ObservedAt) && o.Management == asset.Agent:
		// An agent enrolls at this moment, so nothing newer can exist: the clock of another replica is ahead.
		o.ObservedAt = instant(newest)
	case newest > millis(o.ObservedAt):
		return enrollment.Change{}, nil
	}
	t.check(rename(ctx, t, o, h.id))
	return h.apply(ctx, t, o, by)
}

// createAsset adds the rows of an asset for a new device, and returns its id. apply fills them.
func createAsset(ctx context.Context, t *tx, o enrollment.Observation) string {
	id := resource.NewID()
	t.do(ctx, `INSERT INTO assets (id, company_id, status, identification, created_at) VALUES (?, ?, ?, '', ?)`,
		id, o.CompanyID, string(asset.Synchronizing), millis(t.db.now()))
	t.do(ctx, `INSERT INTO asset_contacts (asset_id, company_id, status, policy_id, at) VALUES (?, ?, ?, '', 0)`,
		id, o.CompanyID, string(asset.Synchronizing))
	return id
}

// rename makes o.Device the only name of the asset that has not ended.
func rename(ctx context.Context, t *tx, o enrollment.Observation, assetID string) error {
	for _, previous := range o.Previous {
		if previous != o.Device {
			t.check(bury(ctx, t, o.CompanyID, previous, assetID, o.ObservedAt))
		}
	}
	t.do(ctx, `UPDATE device_names SET ended = TRUE, observed_at = ? WHERE asset_id = ? AND NOT ended`,
		millis(o.ObservedAt), assetID)
	return setName(ctx, t, o.CompanyID, o.Device, assetID, millis(o.ObservedAt))
}
