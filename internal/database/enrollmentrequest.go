package database

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// inTouch is whether the live device of an asset was in touch since a time, or is to be
// erased or released: who takes its place then replaces a managed device.
const inTouch = `EXISTS (SELECT 1 FROM agent_devices d WHERE d.asset_id = r.asset_id AND d.state <> 'DELETED' AND d.role <> 'companion'
	AND (d.seen_at > ? OR d.state <> 'ACTIVE'))`

// EnrollmentRequests returns the requests of a company that wait for a person, oldest
// first; of one asset, unless assetID is empty.
func (db *DB) EnrollmentRequests(ctx context.Context, companyID, assetID string) ([]agentdevice.Request, error) {
	now := db.now()
	return list(ctx, db.read(), into(func(r *agentdevice.Request) []any {
		return []any{&r.ID, &r.AssetID, &r.SerialNumber, &r.Model, &r.OSVersion, at(&r.AskedAt), at(&r.ExpiresAt), &r.InTouch}
	}), `SELECT r.id, r.asset_id, r.serial_number, r.model, r.os_version, r.asked_at, r.expires_at, `+inTouch+` FROM enrollment_requests r
		WHERE r.company_id = ? AND (r.asset_id = ? OR ? = '') AND r.confirmed_at = 0 AND r.expires_at > ? ORDER BY r.asked_at, r.id LIMIT ?`,
		millis(now.Add(-agentdevice.InTouch)), companyID, assetID, assetID, millis(now), agentdevice.MaxRequestsPerCompany)
}

// boundToken fails with fault.Refused if the token of an enrollment belongs to a device with
// another key, which has asked to be enrolled again. asks: this one has, and waits.
func boundToken(ctx context.Context, t *tx, e agentdevice.Enrollment) (asks bool, err error) {
	type holder struct {
		alg, spki string
		confirmed int64
	}
	by, there, err := maybe(one(ctx, t, into(func(h *holder) []any { return []any{&h.alg, &h.spki, &h.confirmed} }),
		`SELECT key_alg, key_spki, confirmed_at FROM enrollment_requests WHERE token_hash = ?`, hex.EncodeToString(e.Hash[:])))
	if err != nil || !there {
		return false, err
	}
	if by.spki != e.Device.Key.SPKI || by.alg != string(e.Device.Key.Algorithm) {
		return false, fault.New(fault.Refused, "the token belongs to another device, which asked to be enrolled again")
	}
	return by.confirmed == 0, nil
}

// ask records that a device which lost its key or identity asks to be enrolled again, if
// it claims the serial number of an asset that an agent manages now, and the token is for
// any device. Any other device enrolls as usual: no device leaves its asset.
func ask(ctx context.Context, t *tx, e agentdevice.Enrollment, o enrollment.Observation) (asked bool, err error) {
	hash := hex.EncodeToString(e.Hash[:])
	// The company first, as the confirmation has it: the token is locked after that.
	companyID, there, err := maybe(value[string](ctx, t, `SELECT company_id FROM agent_tokens WHERE hash = ?`, hash))
	if err != nil || !there {
		return false, err
	}
	if err := holdCompany(ctx, t, companyID); err != nil {
		return false, err
	}
	free, err := holds(ctx, t, `SELECT hash FROM agent_tokens WHERE hash = ? AND device_id = '' AND asset_id = '' AND expires_at > ?`+
		t.lock(), hash, millis(t.db.now()))
	if err != nil || !free {
		return false, err
	}
	if asks, err := boundToken(ctx, t, e); err != nil || asks {
		return asks, err
	}
	o.CompanyID = companyID
	h, err := claimed(ctx, t, o)
	if err != nil || h.id == "" {
		return false, err
	}
	return true, insertRequest(ctx, t, h, hash, e, o)
}

// claimed is the asset that an agent manages now and whose serial number a device
// claims, locked; of several the oldest. No id: none.
func claimed(ctx context.Context, t *tx, o enrollment.Observation) (lockedAsset, error) {
	ids, err := bySerial(ctx, t, o)
	for _, id := range ids {
		h, err := hold(ctx, t, id)
		brand := h.brandKey == "" || h.brandKey == asset.IdentityKey(o.Brand)
		if err != nil || brand && h.status.Enrolled() && h.management == string(asset.Agent) {
			return h, err
		}
	}
	return lockedAsset{}, err
}

// insertRequest keeps a request, and its token for as long. The company is locked.
func insertRequest(ctx context.Context, t *tx, h lockedAsset, hash string, e agentdevice.Enrollment, o enrollment.Observation) error {
	now := t.db.now()
	type waiting struct{ all, here int }
	n, err := one(ctx, t, into(func(w *waiting) []any { return []any{&w.all, &w.here} }),
		`SELECT COUNT(*), COALESCE(SUM(CASE WHEN asset_id = ? THEN 1 ELSE 0 END), 0) FROM enrollment_requests
			WHERE company_id = ? AND confirmed_at = 0 AND expires_at > ?`, h.id, h.companyID, millis(now))
	if err == nil && (n.all >= agentdevice.MaxRequestsPerCompany || n.here >= agentdevice.MaxRequestsPerAsset) {
		err = fault.Limited(time.Minute, "too many devices ask to be enrolled again")
	}
	if err != nil {
		return err
	}
	expires := now.Add(agentdevice.RequestLifetime)
	if err := t.Exec(ctx,
		`INSERT INTO enrollment_requests (id, token_hash, company_id, asset_id, epoch, key_alg, key_spki, serial_number, model, os_version, asked_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, resource.NewID(), hash, h.companyID, h.id, h.epoch,
		string(e.Device.Key.Algorithm), e.Device.Key.SPKI,
		o.SerialNumber, storable(o.Specifications["manufacturer"]+" "+o.Model), storable(o.Specifications["osVersion"]), millis(now),
		millis(expires)); err != nil {
		return err
	}
	if err := t.Exec(ctx, `UPDATE agent_tokens SET expires_at = ? WHERE hash = ?`, millis(expires), hash); err != nil {
		return err
	}
	t.changed(h.companyID, "asset", h.id)
	return h.recordRequest(ctx, t, activity.EnrollmentAsked)
}

func (h lockedAsset) recordRequest(ctx context.Context, t *tx, action activity.Action, changes ...activity.Change) error {
	t.changed(h.companyID, attentionHint, "")
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: action,
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification}, Changes: activity.Differences(changes...)})
}

// openRequest is a request that a person decides about.
type openRequest struct {
	hash    string
	assetID string
	epoch   int
	live    bool // see inTouch
}

// decideRequest runs work on a request that waits, under the lock of the company, with
// the asset locked.
func (db *DB) decideRequest(ctx context.Context, companyID, id string, work func(ctx context.Context, t *tx, r openRequest,
	h lockedAsset) (refused, err error)) error {
	return db.replacing(ctx, companyID, func(ctx context.Context, t *tx) (refused, err error) {
		now := db.now()
		r, there, err := maybe(one(ctx, t, into(func(r *openRequest) []any { return []any{&r.hash, &r.assetID, &r.epoch, &r.live} }),
			`SELECT r.token_hash, r.asset_id, r.epoch, `+inTouch+` FROM enrollment_requests r
				WHERE r.id = ? AND r.company_id = ? AND r.confirmed_at = 0 AND r.expires_at > ?`,
			millis(now.Add(-agentdevice.InTouch)), id, companyID, millis(now)))
		if err == nil && !there {
			err = fault.New(fault.NotFound, "no such request waits: it has expired, or was decided")
		}
		if err != nil {
			return nil, err
		}
		h, err := hold(ctx, t, r.assetID)
		if err != nil {
			return nil, err
		}
		t.changed(companyID, "asset", h.id)
		return work(ctx, t, r, h)
	})
}

// ConfirmRequest makes the token of a request one for its asset, which the device
// redeems when it asks again.
func (db *DB) ConfirmRequest(ctx context.Context, companyID, id string, by access.Replacement) error {
	return db.decideRequest(ctx, companyID, id, func(ctx context.Context, t *tx, r openRequest, h lockedAsset) (refused, err error) {
		if h.epoch != r.epoch || !mayContinue(h, enrollment.Observation{Management: asset.Agent}) {
			return nil, fault.New(fault.Refused, "the asset was enrolled again since the device asked: decline the request")
		}
		if r.live {
			if refused, err := db.letLeave(ctx, t, h, &by, activity.EnrollmentConfirmed); refused != nil || err != nil {
				return refused, err
			}
		}
		now := db.now()
		expires := millis(now.Add(agentdevice.RequestLifetime))
		if err := t.Exec(ctx, `UPDATE enrollment_requests SET confirmed_at = ?, expires_at = ? WHERE id = ?`, millis(now),
			expires, id); err != nil {
			return nil, err
		}
		// The asset keeps its policy. One that has none by now gets that of the code.
		n, err := t.ExecCount(ctx, `UPDATE agent_tokens SET asset_id = ?, epoch = ?, expires_at = ?,
			policy_id = COALESCE((SELECT p.id FROM policies p WHERE p.id = ? AND p.type = 'AGENT' AND NOT p.deleted), policy_id) WHERE hash = ?`,
			h.id, h.epoch, expires, h.policyID, r.hash)
		if err == nil && n == 0 {
			err = fault.New(fault.Refused, "the code with which the device asked was revoked: decline the request")
		}
		if err != nil {
			return nil, err
		}
		return nil, h.recordRequest(ctx, t, activity.EnrollmentConfirmed, activity.Change{Field: "device", Before: h.device})
	})
}

// DeclineRequest ends a request with its token.
func (db *DB) DeclineRequest(ctx context.Context, companyID, id string) error {
	return db.decideRequest(ctx, companyID, id, func(ctx context.Context, t *tx, r openRequest, h lockedAsset) (refused, err error) {
		for _, table := range []string{`enrollment_requests WHERE token_hash`, `agent_tokens WHERE hash`} {
			if err := t.Exec(ctx, `DELETE FROM `+table+` = ?`, r.hash); err != nil {
				return nil, err
			}
		}
		return nil, h.recordRequest(ctx, t, activity.EnrollmentDeclined)
	})
}
