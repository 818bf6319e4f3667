package database

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
)

// lockedAsset is the row of an asset that the transaction has locked: the columns that an observation of the
// device compares and changes. Times are in Unix milliseconds.
type lockedAsset struct {
	id, companyID                      string
	status                             asset.Status
	policyID, identification           string
	named                              bool // a person or an import gave the identification
	synced, enrolled, seen             int64
	serialKey, brandKey, stableID      string
	epoch                              int // of the enrollment
	management, ownership, mode        string
	device                             string // the device's name at its channel
	appliedPolicy                      string
	appliedVersion, apiLevel           int
	appliedPush                        int64
	lostMode, pushReachable            bool
	specifications, location, reported string // JSON
	tags, custom, terms, archived      string
	wasLost                            bool  // lostMode when the row was locked
	wasSeen                            int64 // seen when the row was locked
}

// savedColumns are the columns that save writes, in the order of fields.
const savedColumns = `status, policy_id, identification, synced_at, enrolled_at,
	serial_key, brand_key, stable_id, epoch, management, ownership, mode, device_name, applied_policy_id,
	applied_version, applied_push, api_level, lost_mode, push_reachable, specifications, location, status_report, named, tags, custom_data,
	archived_status`

func (h *lockedAsset) fields() []any {
	return []any{&h.status, &h.policyID, &h.identification, &h.synced, &h.enrolled,
		&h.serialKey, &h.brandKey, &h.stableID, &h.epoch, &h.management, &h.ownership, &h.mode, &h.device, &h.appliedPolicy,
		&h.appliedVersion, &h.appliedPush, &h.apiLevel, &h.lostMode, &h.pushReachable, &h.specifications, &h.location, &h.reported,
		&h.named, &h.tags, &h.custom,
		&h.archived}
}

// hold reads an asset's row and locks it until the transaction ends. It fails with fault.NotFound.
func hold(ctx context.Context, t *tx, id string) (lockedAsset, error) {
	return holdAs(ctx, t, id, t.lock())
}

// holdAs is hold with a lock of RowLocks.
func holdAs(ctx context.Context, t *tx, id, lock string) (lockedAsset, error) {
	h, err := find(ctx, t, "asset", into(func(h *lockedAsset) []any { return append(h.fields(), &h.id, &h.companyID, &h.terms, &h.seen) }),
		`SELECT `+savedColumns+`, id, company_id, search_terms, `+seenColumn+` FROM assets a WHERE id = ?`+lock, id)
	h.wasLost, h.wasSeen = h.lostMode, h.seen
	return h, err
}

// claim is what identifies the asset's device.
func (h lockedAsset) claim() asset.Claim {
	return asset.Claim{Status: cmp.Or(asset.Status(h.archived), h.status), Serial: h.serialKey}
}

// save writes the row with its search terms, and sends an event if lost mode began or ended.
func (h lockedAsset) save(ctx context.Context, t *tx) error {
	found, err := Searchable{Identification: h.identification, Specifications: h.specifications, Tags: h.tags, Custom: h.custom,
		Status: h.status, Management: asset.Management(h.management), Reported: h.reported}.Findable()
	t.check(err)
	changes := &termChanges{}
	changes.change(h.companyID, h.id, h.terms, found.Terms)
	values := append(h.fields(), found.Terms, found.patch, found.battery, found.compliant)
	update := `UPDATE assets SET (` + savedColumns + `, ` + keptColumns + `) = (` + marks(len(values)) + `) WHERE id = ?`
	seen, args := h.contact()
	if seen != "" && !t.db.engine.OneWriter() { // PostgreSQL: both in one round trip
		update = `WITH seen AS (` + seen + `) ` + update
	} else if seen != "" {
		t.do(ctx, seen, args...)
		args = nil
	}
	t.do(ctx, update, append(append(args, values...), h.id)...)
	if h.lostMode != h.wasLost {
		t.check(h.tellLost(ctx, t))
	}
	changes.save(ctx, t)
	return nil
}

// contact is the statement that saves seen, the time of the device's last contact, with its arguments; it is
// empty if seen has not changed. A later contact that TouchDevice saved since the row was locked stays.
func (h lockedAsset) contact() (string, []any) {
	if h.seen == h.wasSeen {
		return "", nil
	}
	return `UPDATE asset_contacts SET at = ? WHERE asset_id = ? AND company_id = ? AND (at = ? OR at < ?)`,
		[]any{h.seen, h.id, h.companyID, h.wasSeen, h.seen}
}

// tellLost sends the event that lost mode began or ended, with the request that sent the open command for it: the
// device may report the mode before it confirms the command.
func (h lockedAsset) tellLost(ctx context.Context, t *tx) error {
	changed := event.Event{CompanyID: h.companyID, Type: event.DeviceLostMode, AssetID: h.id, PolicyID: h.policyID, Status: event.Off}
	by := command.StopLostMode
	if h.lostMode {
		changed.Status, by = event.On, command.StartLostMode
	}
	open, err := openOf(ctx, t, h.id, "")
	t.check(err)
	for _, c := range open {
		if c.Type == by {
			changed.RequestID = c.RequestID
		}
	}
	return t.db.tell(ctx, t, changed)
}

// count adds n to the numbers of assets that the database keeps for the asset's status, policy and patch month.
func (h lockedAsset) count(c counts, n int64) {
	c.add(h.companyID, h.status, h.policyID, n)
	if h.status.Enrolled() {
		c[kind{company: h.companyID, policy: h.policyID, month: patchMonth(h.specifications)}] += n
	}
}

// AssignPolicy gives an asset another policy. It does nothing if the asset was enrolled again since epoch,
// or is not enrolled. An INACTIVE device stays INACTIVE; another is SYNCHRONIZING until it has applied
// the policy.
func (db *DB) AssignPolicy(ctx context.Context, assetID string, epoch int, policyID string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		h, err := hold(ctx, t, assetID)
		if err != nil || h.epoch != epoch || !h.status.Enrolled() || h.policyID == policyID {
			return err
		}
		t.changed(h.companyID, "asset", assetID)
		counts := counts{}
		h.count(counts, -1)
		h.policyID = policyID
		if h.status != asset.Inactive {
			h.status = h.settled(enrollment.Observation{})
		}
		h.count(counts, 1)
		t.check(h.save(ctx, t))
		counts.save(ctx, t)
		return nil
	})
}

// DeviceNames returns the names of a company's enrolled devices that the platform manages, each with the time of
// its enrollment.
func (db *DB) DeviceNames(ctx context.Context, companyID string) (map[string]time.Time, error) {
	devices, err := mapped[string, int64](ctx, db.read(),
		`SELECT device_name, enrolled_at FROM assets
		WHERE company_id = ? AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND management = ?`, companyID, string(asset.Platform))
	names := make(map[string]time.Time, len(devices))
	for name, enrolled := range devices {
		names[name] = instant(enrolled)
	}
	return names, err
}

// MarkInactive makes up to limit devices INACTIVE that were neither synchronized nor seen since silentSince.
// It returns how many. A contact that was noted while the clock was ahead counts as one of now, once a device was in touch within
// the hour: without one, it may be this clock that is behind.
func (db *DB) MarkInactive(ctx context.Context, companyID string, silentSince time.Time, limit int) (int, error) {
	now := db.now()
	const live = ` company_id = ? AND status IN ('ACTIVE', 'SYNCHRONIZING') AND at `
	if err := db.exec(ctx, `UPDATE asset_contacts SET at = ? WHERE`+live+`> ?
			AND EXISTS (SELECT 1 FROM asset_contacts WHERE`+live+`BETWEEN ? AND ?)`, millis(now), companyID, latest(now),
		companyID, millis(now.Add(-time.Hour)), latest(now)); err != nil {
		return 0, err
	}
	return written(ctx, db, func(ctx context.Context, t *tx) (marked int, err error) {
		for _, status := range []asset.Status{asset.Active, asset.Synchronizing} {
			marked += markInactive(ctx, t, companyID, status, silentSince, latest(now), limit-marked)
		}
		if marked > 0 {
			t.changed(companyID, "asset", "")
		}
		return marked, nil
	})
}

func markInactive(ctx context.Context, t *tx, companyID string, status asset.Status, silentSince time.Time, believed int64,
	limit int) int {
	found := listed(ctx, t, into(func(s *silentAsset) []any { return []any{&s.id, &s.policyID} }),
		`UPDATE assets SET status = 'INACTIVE' WHERE id IN (
			SELECT a.id FROM asset_contacts s JOIN assets a ON a.id = s.asset_id
			WHERE s.company_id = ? AND s.status = ? AND s.at < ? AND (a.synced_at < ? OR a.synced_at > ?)
			ORDER BY s.at, s.asset_id LIMIT ?`+t.skipLocked()+`)
		RETURNING id, policy_id`, companyID, string(status), millis(silentSince), millis(silentSince), believed, limit)
	counts := counts{}
	for _, s := range found {
		counts.add(companyID, status, s.policyID, -1)
		counts.add(companyID, asset.Inactive, s.policyID, 1)
	}
	t.db.tellSilent(ctx, t, companyID, found)
	counts.save(ctx, t)
	return len(found)
}

// SetPushReachable saves whether push messages reach a device, unless the asset was enrolled again since epoch.
func (db *DB) SetPushReachable(ctx context.Context, assetID string, epoch int, reachable bool) error {
	return db.exec(ctx, `UPDATE assets SET push_reachable = ? WHERE id = ? AND epoch = ? AND push_reachable <> ?`,
		reachable, assetID, epoch, reachable)
}

// TouchDevice notes the time of a contact with a device. The times are saved together, at most ten seconds later.
func (db *DB) TouchDevice(assetID string, at time.Time) { db.deviceUse.Note(assetID, millis(at)) }
