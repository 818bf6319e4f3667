package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
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

// declined is the confirmed_at of a request that a person has declined.
const declined = -1

// keyRequest is what a key asked with a token.
type keyRequest struct {
	assetID   string
	epoch     int
	confirmed int64
}

func requestOf(ctx context.Context, t *tx, hash [sha256.Size]byte, key protocol.PublicKey) (keyRequest, bool, error) {
	return maybe(one(ctx, t, into(func(r *keyRequest) []any { return []any{&r.assetID, &r.epoch, &r.confirmed} }),
		`SELECT asset_id, epoch, confirmed_at FROM enrollment_requests
			WHERE token_hash = ? AND key_alg = ? AND key_spki = ? AND expires_at > ?`,
		hex.EncodeToString(hash[:]), string(key.Algorithm), key.SPKI, millis(t.db.now())))
}

// boundToken finds what the key of an enrollment asked with its token. It fails with
// fault.Refused if a person has declined that, or if the token is for one device and another
// key has asked with it.
func boundToken(ctx context.Context, t *tx, e agentdevice.Enrollment) (r keyRequest, asked bool, err error) {
	r, asked, err = requestOf(ctx, t, e.Hash, e.Device.Key)
	if err == nil && r.confirmed == declined {
		err = fault.New(fault.Refused, "a person has declined that the device is enrolled again")
	}
	if err != nil || asked {
		return r, asked, err
	}
	hash := hex.EncodeToString(e.Hash[:])
	if t.holds(ctx, `SELECT id FROM enrollment_requests WHERE token_hash = ? LIMIT 1`, hash) && !forSeveral(ctx, t, hash) {
		err = fault.New(fault.Refused, "the token belongs to another device, which asked to be enrolled again")
	}
	return r, false, err
}

// forSeveral reports whether a token is that of a code for several devices. A request binds
// only its key then, and the token stays as it is for the other devices.
func forSeveral(ctx context.Context, t *tx, hash string) bool {
	return t.holds(ctx, `SELECT k.hash FROM agent_tokens k JOIN enrollment_codes c ON c.id = k.code_id AND c.company_id = k.company_id
		WHERE k.hash = ? AND c.max_devices <> 1`, hash)
}

// asConfirmed makes a token that was redeemed one for the asset that a person has confirmed for
// the key. It fails with ErrWaiting if no person has decided: a device does not get around
// that by enrolling as one that lost nothing.
func asConfirmed(ctx context.Context, t *tx, e agentdevice.Enrollment, token *spentToken) error {
	r, asked, err := boundToken(ctx, t, e)
	switch {
	case err != nil || !asked:
		return err
	case r.confirmed == 0:
		return agentdevice.ErrWaiting
	case token.assetID != "":
		return nil
	}
	token.assetID, token.epoch = r.assetID, r.epoch
	// The asset keeps its policy, as with a token for one device.
	id, there, err := maybe(value[string](ctx, t, `SELECT p.id FROM assets a
		JOIN policies p ON p.id = a.policy_id AND p.company_id = a.company_id
		WHERE a.id = ? AND a.company_id = ? AND p.type = 'AGENT' AND NOT p.deleted`, r.assetID, token.CompanyID))
	if there {
		token.PolicyID = id
	}
	return err
}

// ask records that a device which lost its key or identity asks to be enrolled again, if
// it claims the serial number of an asset that an agent manages now, and the token is for
// any device. Any other device enrolls as usual: no device leaves its asset. The token's company
// is locked.
func ask(ctx context.Context, t *tx, e agentdevice.Enrollment, o enrollment.Observation) (asked bool, err error) {
	hash := hex.EncodeToString(e.Hash[:])
	type unspent struct {
		companyID, code string
		expires         int64
	}
	token, free, err := maybe(one(ctx, t, into(func(u *unspent) []any { return []any{&u.companyID, &u.code, &u.expires} }),
		`SELECT company_id, code_id, expires_at FROM agent_tokens
			WHERE hash = ? AND device_id = '' AND asset_id = '' AND expires_at > 0`+t.lock(), hash))
	if err != nil || !free {
		return false, err
	}
	// A device that has enrolled with the code repeats its request, because the answer was lost.
	if _, enrolled, err := usedBy(ctx, t, token.code, e.Device.Key, e.Again); err != nil || enrolled {
		return false, err
	}
	if r, before, err := boundToken(ctx, t, e); err != nil || before {
		return before && r.confirmed == 0, err
	}
	if token.expires <= millis(t.db.now()) {
		return false, nil
	}
	o.CompanyID = token.companyID
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

// insertRequest keeps a request, and a token for one device for as long. The company is locked.
func insertRequest(ctx context.Context, t *tx, h lockedAsset, hash string, e agentdevice.Enrollment, o enrollment.Observation) error {
	now := t.db.now()
	type waiting struct{ all, here int }
	n, err := one(ctx, t, into(func(w *waiting) []any { return []any{&w.all, &w.here} }),
		`SELECT COUNT(*), COALESCE(SUM(CASE WHEN asset_id = ? THEN 1 ELSE 0 END), 0) FROM enrollment_requests
			WHERE company_id = ? AND confirmed_at = 0 AND expires_at > ?`, h.id, h.companyID, millis(now))
	t.check(err)
	if n.all >= agentdevice.MaxRequestsPerCompany || n.here >= agentdevice.MaxRequestsPerAsset {
		return fault.Limited(time.Minute, "too many devices ask to be enrolled again")
	}
	expires := now.Add(agentdevice.RequestLifetime)
	t.do(ctx,
		`INSERT INTO enrollment_requests (id, token_hash, company_id, asset_id, epoch, key_alg, key_spki, serial_number, model, os_version, asked_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, resource.NewID(), hash, h.companyID, h.id, h.epoch,
		string(e.Device.Key.Algorithm), e.Device.Key.SPKI,
		o.SerialNumber, storable(o.Specifications["manufacturer"]+" "+o.Model), storable(o.Specifications["osVersion"]), millis(now),
		millis(expires))
	if !forSeveral(ctx, t, hash) {
		t.do(ctx, `UPDATE agent_tokens SET expires_at = ? WHERE hash = ?`, millis(expires), hash)
	}
	t.changed(h.companyID, "asset", h.id)
	return h.recordRequest(ctx, t, activity.EnrollmentAsked)
}

func (h lockedAsset) recordRequest(ctx context.Context, t *tx, action activity.Action, changes ...activity.Change) error {
	t.changed(h.companyID, attentionHint, "")
	return h.record(ctx, t, action, activity.Differences(changes...)...)
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
		t.check(err)
		t.changed(companyID, "asset", h.id)
		return work(ctx, t, r, h)
	})
}

// ConfirmRequest makes the token of a request one for its asset, for this key or, if it is
// for one device, at all. The device redeems it when it asks again.
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
		t.do(ctx, `UPDATE enrollment_requests SET confirmed_at = ?, expires_at = ? WHERE id = ? AND company_id = ?`, millis(now),
			expires, id, companyID)
		if !bindToken(ctx, t, r.hash, h, expires) {
			return nil, fault.New(fault.Refused, "the code with which the device asked was revoked or is used up: decline the request")
		}
		return nil, h.recordRequest(ctx, t, activity.EnrollmentConfirmed, activity.Change{Field: "device", Before: h.device})
	})
}

// bindToken makes a token for one device one for an asset. It reports whether the device that
// asked can redeem the token.
func bindToken(ctx context.Context, t *tx, hash string, h lockedAsset, expires int64) bool {
	if forSeveral(ctx, t, hash) {
		return t.holds(ctx, `SELECT hash FROM agent_tokens WHERE hash = ? AND device_id = ''`+t.lock(), hash)
	}
	// The asset keeps its policy. One that has none by now gets that of the code.
	return t.count(ctx, `UPDATE agent_tokens SET asset_id = ?, epoch = ?, expires_at = ?,
		policy_id = COALESCE((SELECT p.id FROM policies p
			WHERE p.id = ? AND p.company_id = ? AND p.type = 'AGENT' AND NOT p.deleted), policy_id)
		WHERE hash = ?`, h.id, h.epoch, expires, h.policyID, h.companyID, hash) > 0
}

// DeclineRequest ends a request, with its token if that is for one device. Otherwise the
// request stays for its time, so that its key does not ask again.
func (db *DB) DeclineRequest(ctx context.Context, companyID, id string) error {
	return db.decideRequest(ctx, companyID, id, func(ctx context.Context, t *tx, r openRequest, h lockedAsset) (refused, err error) {
		if forSeveral(ctx, t, r.hash) {
			t.do(ctx, `UPDATE enrollment_requests SET confirmed_at = ? WHERE id = ? AND company_id = ?`, declined, id, companyID)
		} else {
			t.do(ctx, `DELETE FROM enrollment_requests WHERE id = ? AND company_id = ?`, id, companyID)
			t.do(ctx, `UPDATE enrollment_codes SET revoked_at = ? WHERE company_id = ? AND revoked_at = 0
				AND id = (SELECT code_id FROM agent_tokens WHERE hash = ? AND code_id <> '')`, millis(t.db.now()), companyID, r.hash)
			t.changed(companyID, "code", "")
			t.do(ctx, `DELETE FROM agent_tokens WHERE hash = ?`, r.hash)
		}
		return nil, h.recordRequest(ctx, t, activity.EnrollmentDeclined)
	})
}
