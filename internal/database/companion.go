package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// CreateCompanionToken adds a token.
func (db *DB) CreateCompanionToken(ctx context.Context, k agentdevice.Token) error {
	return db.exec(ctx, `INSERT INTO companion_tokens (hash, company_id, asset_id, epoch, expires_at, device_id, spent_at)
		VALUES (?, ?, ?, ?, ?, '', 0)`, hex.EncodeToString(k.Hash[:]), k.CompanyID, k.AssetID, k.Epoch, millis(k.ExpiresAt))
}

// RedeemCompanionToken spends a companion's token, once, and ties the device to
// the asset that the token names, if that is still enrolled as it was then. An
// older companion of the asset has ended.
func (db *DB) RedeemCompanionToken(ctx context.Context, hash [sha256.Size]byte, d agentdevice.Device,
	again time.Time) (agentdevice.Device, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (agentdevice.Device, error) {
		got, token, fresh, err := redeem(ctx, t, companionToken, hash, d, again)
		if err != nil || !fresh {
			return got, err
		}
		h, err := hold(ctx, t, token.assetID)
		t.check(err)
		if !enrolledAs(h, token.CompanyID, token.epoch) {
			return got, fault.New(fault.Refused, "the device was enrolled again since the token was made")
		}
		got.AssetID, got.Epoch = token.assetID, token.epoch
		ended := listed(ctx, t, scanValue[string], `UPDATE agent_devices SET state = ?, push_token = '', orphaned = open_deliveries > 0
			WHERE asset_id = ? AND id <> ? AND state <> '`+string(agentdevice.Deleted)+`' RETURNING id`,
			string(agentdevice.Deleted), got.AssetID, got.ID)
		t.hint(agentdevice.EndTopic, ended...)
		t.do(ctx, `UPDATE agent_devices SET asset_id = ?, epoch = ? WHERE id = ?`, got.AssetID, got.Epoch, got.ID)
		t.do(ctx, `UPDATE assets SET push_reachable = FALSE WHERE id = ?`, got.AssetID)
		return got, t.Exec(ctx, `UPDATE companion_tokens SET device_id = ?, spent_at = ? WHERE hash = ?`, d.ID, millis(db.now()),
			hex.EncodeToString(hash[:]))
	})
}

// hintCompanions has the companions of a platform device hinted to: its
// enrollment is over and theirs with it, as their next check-in is told.
func (h lockedAsset) hintCompanions(ctx context.Context, t *tx) {
	if h.management == string(asset.Platform) {
		t.hint(agentdevice.EndTopic, listed(ctx, t, scanValue[string], `SELECT id FROM agent_devices
			WHERE asset_id = ? AND role = '`+string(protocol.Companion)+`' AND state <> '`+string(agentdevice.Deleted)+`'`, h.id)...)
	}
}

// enrolledAs reports whether the asset is still the platform device that it was.
func enrolledAs(h lockedAsset, companyID string, epoch int) bool {
	return h.companyID == companyID && h.epoch == epoch && h.status.Enrolled() && h.management == string(asset.Platform)
}

// SetPushToken keeps a companion's token and notes at its asset whether push
// reaches it, together.
func (db *DB) SetPushToken(ctx context.Context, d agentdevice.Device, token string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		// One that has ended since, for a newer companion, has no say any more.
		if t.count(ctx, `UPDATE agent_devices SET push_token = ? WHERE id = ? AND state <> '`+string(agentdevice.Deleted)+`'`,
			token, d.ID) == 0 || !d.IsCompanion() { // the wake-up of a manager is its registration
			return nil
		}
		return t.Exec(ctx, `UPDATE assets SET push_reachable = ? WHERE id = ? AND epoch = ? AND management = ?`,
			token != "", d.AssetID, d.Epoch, string(asset.Platform))
	})
}

// DropPushToken forgets a token that push no longer takes, unless another has
// come in its place.
func (db *DB) DropPushToken(ctx context.Context, d agentdevice.Device) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if t.count(ctx, `UPDATE agent_devices SET push_token = '' WHERE id = ? AND push_token = ?`, d.ID, d.PushToken) == 0 {
			return nil
		}
		return t.Exec(ctx, `UPDATE assets SET push_reachable = FALSE WHERE id = ? AND epoch = ?`, d.AssetID, d.Epoch)
	})
}

// ReleaseDelivery lets a held delivery be offered.
func (db *DB) ReleaseDelivery(ctx context.Context, commandID string) error {
	return db.exec(ctx, `UPDATE agent_deliveries SET held_until = 0 WHERE command_id = ?`, commandID)
}

// seenEvery is how exactly it is kept when an idle companion was heard of.
const seenEvery = time.Minute

// ReportCompanion applies a companion's word. What the platform reports stays
// beside it: a companion knows less of its device, and only adds to the report.
func (db *DB) ReportCompanion(ctx context.Context, d agentdevice.Device, r agentdevice.CompanionReport) (bool, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (current bool, err error) {
		h, err := hold(ctx, t, d.AssetID)
		t.check(err)
		seen, before := millis(r.SeenAt), h.reported
		h.disbelieve(believed(t, seen))
		idle := r.Status == nil && r.Location == nil && seen-h.seen < seenEvery.Milliseconds()
		if current = enrolledAs(h, d.CompanyID, d.Epoch); !current || idle {
			return current, nil
		}
		if r.Status != nil {
			reported, err := overlay(h.reported, r.Status)
			t.check(err)
			if len(reported) <= enrollment.MaxReport {
				h.reported = reported
			}
		}
		if r.Location != nil && h.mayLocate(ctx, t, d.ID) {
			var fix asset.Location
			t.check(json.Unmarshal(r.Location, &fix))
			t.check(h.locate(&fix))
			notePlace(ctx, t, h.id, fix)
		}
		h.seen = max(h.seen, seen)
		h.heardAgain(ctx, t, r.SeenAt)
		if err := h.save(ctx, t); err != nil || h.reported == before {
			return current, err
		}
		return current, h.noteInstalled(ctx, t)
	})
}

// heardAgain brings a device back that had fallen silent.
func (h *lockedAsset) heardAgain(ctx context.Context, t *tx, at time.Time) {
	if h.status != asset.Inactive {
		return
	}
	counts := counts{}
	h.count(counts, -1)
	h.status = h.settled(enrollment.Observation{ReportedAt: at})
	h.count(counts, 1)
	counts.save(ctx, t)
	t.changed(h.companyID, "asset", h.id)
}

// overlay puts the members of a report over those of another.
func overlay(below string, above json.RawMessage) (string, error) {
	members := map[string]json.RawMessage{}
	if err := decode(below, &members); err != nil {
		return "", err
	}
	over := map[string]json.RawMessage{}
	if err := json.Unmarshal(above, &over); err != nil {
		return "", err
	}
	maps.Copy(members, over)
	text, err := json.Marshal(members)
	return string(text), err
}
