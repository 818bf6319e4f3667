package database

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
)

// lockedAsset is an asset's row, locked, with what an observation compares and changes.
type lockedAsset struct {
	id, companyID                      string
	status                             asset.Status
	policyID, identification           string
	named                              bool
	synced, enrolled, seen             int64
	serialKey, brandKey, stableID      string
	epoch                              int
	management, ownership, mode        string
	device                             string
	appliedPolicy                      string
	appliedVersion, apiLevel           int
	appliedPush                        int64
	lostMode, pushReachable            bool
	specifications, location, reported string
	tags, custom, terms, archived      string
	wasLost                            bool  // when it was locked
	wasSeen                            int64 // when it was locked
}

// savedColumns are those that save writes, in the order of fields.
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

// hold locks an asset's row until the transaction ends.
func hold(ctx context.Context, t *tx, id string) (lockedAsset, error) {
	h, err := find(ctx, t, "asset", into(func(h *lockedAsset) []any { return append(h.fields(), &h.id, &h.companyID, &h.terms, &h.seen) }),
		`SELECT `+savedColumns+`, id, company_id, search_terms, `+seenColumn+` FROM assets a WHERE id = ?`+t.lock(), id)
	h.wasLost, h.wasSeen = h.lostMode, h.seen
	return h, err
}

// claim is what the asset says of which device it is.
func (h lockedAsset) claim() asset.Claim { return asset.Claim{Status: h.status, Serial: h.serialKey} }

// save writes the row back, and what a search finds it by.
func (h lockedAsset) save(ctx context.Context, t *tx) error {
	found, err := searchable{identification: h.identification, specifications: h.specifications, tags: h.tags, custom: h.custom,
		status: h.status, management: asset.Management(h.management), reported: h.reported}.findable()
	if err != nil {
		return err
	}
	changes := &termChanges{}
	changes.change(h.companyID, h.id, h.terms, found.terms)
	seen, args := h.contact()
	if seen != "" && !t.db.engine.OneWriter() { // one round trip
		seen = `WITH seen AS (` + seen + `) `
	} else if seen != "" {
		if err := t.Exec(ctx, seen, args...); err != nil {
			return err
		}
		seen, args = "", nil
	}
	if err := t.Exec(ctx, seen+`UPDATE assets SET (`+savedColumns+`, `+keptColumns+`) = (`+marks(26+4)+`)
		WHERE id = ?`, append(args, string(h.status), h.policyID, h.identification, h.synced, h.enrolled,
		h.serialKey, h.brandKey, h.stableID, h.epoch, h.management, h.ownership, h.mode, h.device, h.appliedPolicy,
		h.appliedVersion, h.appliedPush, h.apiLevel, h.lostMode, h.pushReachable, h.specifications, h.location, h.reported,
		h.named, h.tags, h.custom, h.archived, found.terms, found.patch, found.battery, found.compliant, h.id)...); err != nil {
		return err
	}
	if h.lostMode != h.wasLost {
		if err := h.tellLost(ctx, t); err != nil {
			return err
		}
	}
	return changes.save(ctx, t)
}

// contact is the statement that writes when the device was last heard of; empty if it need not
// be written. What was noted since the asset was locked, and is later, stays.
func (h lockedAsset) contact() (string, []any) {
	if h.seen == h.wasSeen {
		return "", nil
	}
	return `UPDATE asset_contacts SET at = ? WHERE asset_id = ? AND company_id = ? AND (at = ? OR at < ?)`,
		[]any{h.seen, h.id, h.companyID, h.wasSeen, h.seen}
}

// tellLost tells that lost mode began or ended. The device may report it before its command
// is known to have succeeded: the cause is the call that sent it all the same.
func (h lockedAsset) tellLost(ctx context.Context, t *tx) error {
	changed := event.Event{CompanyID: h.companyID, Type: event.DeviceLostMode, AssetID: h.id, PolicyID: h.policyID, Status: event.Off}
	by := command.StopLostMode
	if h.lostMode {
		changed.Status, by = event.On, command.StartLostMode
	}
	open, err := openOf(ctx, t, h.id, "")
	if err != nil {
		return err
	}
	for _, c := range open {
		if c.Type == by {
			changed.RequestID = c.RequestID
		}
	}
	return t.db.tell(ctx, t, changed)
}

// count adds the asset to its cells of the kept counts n times.
func (h lockedAsset) count(c counts, n int64) {
	c.add(h.companyID, h.status, h.policyID, n)
	if h.status.Enrolled() {
		c[kind{company: h.companyID, policy: h.policyID, month: patchMonth(h.specifications)}] += n
	}
}

// ending is how a device's management ended.
type ending struct {
	how    string // for the activity log
	erased bool   // the device erased itself, as it was told to
	// unknown: no channel leads to the device any more, and its commands stay open.
	unknown bool
}

// end is the end of a device's management: the asset is DELETED, belongs to no
// policy, and its device's name is buried; its open commands are final.
func (h lockedAsset) end(ctx context.Context, t *tx, at time.Time, e ending) error {
	open, err := openOf(ctx, t, h.id, t.lock())
	if err != nil {
		return err
	}
	if err := h.recordEnded(h.caused(ctx, open, e), t, e.how); err != nil {
		return err
	}
	settle := endCommands
	if e.unknown {
		settle = leaveOpen
	}
	if err := settle(ctx, t, h, e, at); err != nil { // told while the asset has its policy
		return err
	}
	counts := counts{}
	h.count(counts, -1)
	name := h.device
	h.status, h.policyID, h.device = asset.Deleted, "", ""
	h.count(counts, 1)
	if err := h.save(ctx, t); err != nil {
		return err
	}
	if err := bury(ctx, t, h.companyID, name, h.id, at); err != nil {
		return err
	}
	if err := h.hintCompanions(ctx, t); err != nil {
		return err
	}
	if err := forgetApps(ctx, t, h.id); err != nil {
		return err
	}
	if err := t.Exec(ctx, `DELETE FROM installed_apps WHERE asset_id = ?`, h.id); err != nil {
		return err
	}
	return counts.save(ctx, t)
}

// show changes an asset as the success of one of its commands does, in one
// transaction with the command. The device's own report says so again.
func show(ctx context.Context, t *tx, c command.Command) error {
	// What the command brought about is told with the call that asked for it.
	ctx = access.WithActor(ctx, access.OriginOf(ctx).Actor, c.RequestID)
	h, err := hold(ctx, t, c.AssetID)
	if err != nil || h.epoch != c.Epoch || h.status == asset.Deleted {
		return err
	}
	switch c.Type {
	case command.StartLostMode, command.StopLostMode:
		h.lostMode = c.Type == command.StartLostMode
		return h.save(ctx, t)
	case command.WipeCompanyData, command.RelinquishOwnership:
		at := c.FeedbackAt
		if at.IsZero() {
			at = t.db.now()
		}
		wiped := c.Type == command.WipeCompanyData
		how := "released by its command"
		if wiped {
			how = "erased by its command"
		}
		return h.end(ctx, t, at, ending{how: how, erased: wiped})
	default:
		return nil
	}
}

// caused returns a context of the call that asked for the end, if it is an open command's.
func (h lockedAsset) caused(ctx context.Context, open []command.Command, e ending) context.Context {
	for _, c := range open {
		if state, _ := c.Type.EndOfManagement(asset.Management(h.management), e.erased); state == command.Succeeded && !e.unknown {
			return access.WithActor(ctx, access.OriginOf(ctx).Actor, c.RequestID)
		}
	}
	return ctx
}

// endCommands makes an asset's open commands final as its device ends.
func endCommands(ctx context.Context, t *tx, h lockedAsset, e ending, at time.Time) error {
	open, err := openOf(ctx, t, h.id, t.lock())
	if err != nil {
		return err
	}
	for _, c := range open {
		state, outcome := c.Type.EndOfManagement(asset.Management(h.management), e.erased)
		step := command.Transition{From: []command.State{c.State}, To: state, Outcome: outcome}
		if state == command.Succeeded {
			step.Feedback = at
		}
		if _, err := t.db.advanceWithin(ctx, t, c.ID, step); err != nil {
			return err
		}
	}
	return nil
}

// enrolledAgain is the outcome of commands to an enrollment that is over.
const enrolledAgain = "the device was enrolled again before it confirmed the command"

// failBeforeEnrollment ends an asset's open commands because a new enrollment began. An
// agent's wipe says that nothing was erased.
func failBeforeEnrollment(ctx context.Context, t *tx, h lockedAsset) error {
	wipe := enrolledAgain
	if h.management == string(asset.Agent) {
		wipe = command.ReleasedWithoutErasing
	}
	failed, err := list(ctx, t, into(commandFields), `UPDATE commands SET state = 'ERROR',
			outcome = CASE WHEN type = 'WIPE_COMPANY_DATA' THEN CAST(? AS TEXT) ELSE CAST(? AS TEXT) END
		WHERE `+isOpen+` AND asset_id = ? RETURNING `+commandColumns, wipe, enrolledAgain, h.id)
	if err != nil {
		return err
	}
	t.wroteEvent = t.wroteEvent || len(failed) > 0
	for _, c := range failed {
		if err := t.db.recordStep(ctx, t, c); err != nil {
			return err
		}
		insert := t.db.tellCommand(c.ID, command.Failed)
		if err := t.Exec(ctx, insert.text, insert.args...); err != nil {
			return err
		}
	}
	return nil
}

// MarkDeleted ends a device's management, unless the asset was enrolled again
// since epoch or is not enrolled.
func (db *DB) MarkDeleted(ctx context.Context, assetID string, epoch int, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		h, err := hold(ctx, t, assetID)
		if err != nil || h.epoch != epoch || !h.status.Enrolled() {
			return err
		}
		t.changed(h.companyID, "asset", assetID)
		return h.end(ctx, t, at, ending{how: "the channel no longer has the device"})
	})
}

// AssignPolicy notes that a device is to have another policy, unless the asset
// was enrolled again since epoch or is not enrolled. A silent device stays
// INACTIVE; one that speaks is SYNCHRONIZING until it has applied the policy.
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
		if err := h.save(ctx, t); err != nil {
			return err
		}
		return counts.save(ctx, t)
	})
}

// DeviceNames returns the names of the company's managed devices of one
// management, each with the time of its enrollment.
func (db *DB) DeviceNames(ctx context.Context, companyID string, m asset.Management) (map[string]time.Time, error) {
	type device struct {
		name string
		at   int64
	}
	devices, err := list(ctx, db.read(), into(func(d *device) []any { return []any{&d.name, &d.at} }),
		`SELECT device_name, enrolled_at FROM assets
		WHERE company_id = ? AND status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND management = ?`, companyID, string(m))
	names := make(map[string]time.Time, len(devices))
	for _, d := range devices {
		names[d.name] = instant(d.at)
	}
	return names, err
}

// MarkInactive turns up to limit devices that were neither synchronized nor
// seen since a time to INACTIVE, and says how many. What was noted of a device while the clock
// was ahead counts as of now.
func (db *DB) MarkInactive(ctx context.Context, companyID string, silentSince time.Time, limit int) (int, error) {
	now, marked := db.now(), 0
	if err := db.exec(ctx, `UPDATE asset_contacts SET at = ?
		WHERE company_id = ? AND status IN ('ACTIVE', 'SYNCHRONIZING') AND at > ?`, millis(now), companyID, latest(now)); err != nil {
		return 0, err
	}
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		marked = 0
		for _, status := range []asset.Status{asset.Active, asset.Synchronizing} {
			n, err := markInactive(ctx, t, companyID, status, silentSince, latest(now), limit-marked)
			if err != nil {
				return err
			}
			marked += n
		}
		if marked > 0 {
			t.changed(companyID, "asset", "")
		}
		return nil
	})
	return marked, err
}

func markInactive(ctx context.Context, t *tx, companyID string, status asset.Status, silentSince time.Time, believed int64,
	limit int) (int, error) {
	found, err := list(ctx, t, into(func(s *silentAsset) []any { return []any{&s.id, &s.policyID} }),
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
	if err != nil {
		return 0, err
	}
	return len(found), errors.Join(t.db.tellSilent(ctx, t, companyID, found), counts.save(ctx, t))
}

// SetPushReachable notes whether a device can be woken by push.
func (db *DB) SetPushReachable(ctx context.Context, assetID string, epoch int, reachable bool) error {
	return db.exec(ctx, `UPDATE assets SET push_reachable = ? WHERE id = ? AND epoch = ? AND push_reachable <> ?`,
		reachable, assetID, epoch, reachable)
}

// TouchDevice notes that a device was heard of. The note is written with
// others, at most ten seconds later.
func (db *DB) TouchDevice(assetID string, at time.Time) { db.deviceUse.Note(assetID, millis(at)) }

// bury marks a device's name as ended.
func bury(ctx context.Context, t *tx, companyID, name, assetID string, at time.Time) error {
	return t.Exec(ctx, `INSERT INTO device_names (company_id, name, asset_id, observed_at, ended) VALUES (?, ?, ?, ?, TRUE)
		ON CONFLICT (company_id, name) DO UPDATE SET ended = TRUE, asset_id = excluded.asset_id,
			observed_at = CASE WHEN device_names.observed_at > excluded.observed_at
				THEN device_names.observed_at ELSE excluded.observed_at END`,
		companyID, name, assetID, millis(at))
}

// nameRow is what is known of a device's name.
type nameRow struct {
	assetID  string
	observed int64
	ended    bool
}

// lockName returns what is known of a device's name and locks it. A time after latest is
// taken as none.
func lockName(ctx context.Context, t *tx, companyID, name string, latest int64) (nameRow, bool, error) {
	return maybe(one(ctx, t, into(func(n *nameRow) []any { return []any{&n.assetID, &n.observed, &n.ended} }),
		`SELECT asset_id, CASE WHEN observed_at <= ? THEN observed_at ELSE 0 END, ended FROM device_names
		WHERE company_id = ? AND name = ?`+t.lock(), latest, companyID, name))
}

// setName makes name the asset's live name.
func setName(ctx context.Context, t *tx, companyID, name, assetID string, observed int64) error {
	return t.Exec(ctx, `INSERT INTO device_names (company_id, name, asset_id, observed_at, ended) VALUES (?, ?, ?, ?, FALSE)
		ON CONFLICT (company_id, name) DO UPDATE SET asset_id = excluded.asset_id, observed_at = excluded.observed_at, ended = FALSE`,
		companyID, name, assetID, observed)
}
