package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// requested is whether a device that asked with a row of agent_tokens may still enroll with it after its time.
const requested = `EXISTS (SELECT 1 FROM enrollment_requests r
	WHERE r.token_hash = agent_tokens.hash AND r.confirmed_at >= 0 AND r.expires_at > ?)`

// CreateAgentToken adds a token.
func (db *DB) CreateAgentToken(ctx context.Context, t agentdevice.Token) error {
	return db.write(ctx, func(ctx context.Context, tx *tx) error { return insertToken(ctx, tx, t) })
}

// DropAgentToken deletes a token that was not handed out.
func (db *DB) DropAgentToken(ctx context.Context, hash [sha256.Size]byte) error {
	return db.exec(ctx, `DELETE FROM agent_tokens WHERE hash = ?`, hex.EncodeToString(hash[:]))
}

// spentToken is a token with who spent it, and when.
type spentToken struct {
	agentdevice.Token
	assetID string // the asset that it is for; empty: any
	epoch   int
	device  string
	spent   time.Time
	ended   bool // its policy was deleted, or its code revoked, while it was made
}

// The two kinds of tokens: for devices of an AGENT policy, for companions.
const (
	managerToken = `SELECT company_id, policy_id, asset_id, epoch, expires_at, device_id, spent_at, code_id,
		EXISTS (SELECT 1 FROM policies p WHERE p.id = policy_id AND p.deleted)
		OR EXISTS (SELECT 1 FROM enrollment_codes c WHERE c.id = code_id AND c.revoked_at > 0) FROM agent_tokens WHERE hash = ?`
	companionToken = `SELECT company_id, '', asset_id, epoch, expires_at, device_id, spent_at, '', FALSE FROM companion_tokens WHERE hash = ?`
)

// EnrollAgent redeems a token: the device, its asset and the end of the device
// that was that asset before are one transaction. It fails with ErrWaiting for a
// device that asks to be enrolled again, until a person has decided.
func (db *DB) EnrollAgent(ctx context.Context, e agentdevice.Enrollment, o enrollment.Observation) (agentdevice.Device, error) {
	var got agentdevice.Device
	o = keepable(o)
	err := db.refusing(ctx, func(ctx context.Context, t *tx) (waits, err error) {
		got = agentdevice.Device{}
		// The company first, as confirmations and revocations have it: the token is locked after that.
		holdCompanyOfToken(ctx, t, e.Hash)
		if e.Lost {
			if asked, err := ask(ctx, t, e, o); err != nil || asked {
				return agentdevice.ErrWaiting, err
			}
		}
		made, token, fresh, err := redeem(ctx, t, managerToken, e.Hash, e.Device, e.Again)
		got = made
		if err == nil && fresh {
			err = asConfirmed(ctx, t, e, &token)
		}
		if err != nil || !fresh && got.AssetID != "" {
			return nil, err
		}
		o.CompanyID, o.Device, o.PolicyID = got.CompanyID, got.ID, token.PolicyID
		o.AssetID, o.AssetEpoch, o.Code = token.assetID, token.epoch, token.Code
		if e.Former != "" {
			id, epoch, err := formerAsset(ctx, t, got.CompanyID, e)
			t.check(err)
			if token.assetID == "" { // else a person has decided
				o.AssetID, o.AssetEpoch = id, epoch
			}
		}
		change, err := observe(ctx, t, o)
		if err == nil && !change.Applied {
			err = errors.New("the enrollment of an agent was not applied")
		}
		if err != nil {
			return nil, err
		}
		got.AssetID, got.Epoch = change.AssetID, change.Epoch
		t.changed(got.CompanyID, "asset", got.AssetID)
		if err = bind(ctx, t, got); err != nil || !fresh {
			return nil, err
		}
		hash := hex.EncodeToString(e.Hash[:])
		t.do(ctx, `DELETE FROM enrollment_requests WHERE token_hash = ? AND key_alg = ? AND key_spki = ?`, hash,
			string(e.Device.Key.Algorithm), e.Device.Key.SPKI)
		if change.CodeGoesOn {
			return nil, nil
		}
		return nil, t.Exec(ctx, `UPDATE agent_tokens SET device_id = ?, spent_at = ? WHERE hash = ?`, got.ID, millis(db.now()), hash)
	})
	return got, err
}

// holdCompanyOfToken is holdCompany and shareInventory for the one that a token belongs to, if there is such a token.
func holdCompanyOfToken(ctx context.Context, t *tx, hash [sha256.Size]byte) {
	id, there, err := maybe(value[string](ctx, t, `SELECT id FROM companies
		WHERE id = (SELECT company_id FROM agent_tokens WHERE hash = ?)`+t.hold(), hex.EncodeToString(hash[:])))
	t.check(err)
	if there {
		t.check(shareInventory(ctx, t, id))
	}
}

// formerAsset is the asset of the device whose key also signed an enrollment,
// unless that device is to be wiped: a new key must not lead out of that.
func formerAsset(ctx context.Context, t *tx, companyID string, e agentdevice.Enrollment) (id string, epoch int, err error) {
	former, err := findAgent(ctx, t, `agent_devices.id = ?`+t.lock(), e.Former)
	switch {
	case err != nil:
		return "", 0, err
	case former.CompanyID != companyID || former.Key != e.FormerKey || former.IsCompanion() || former.AssetID == "":
		return "", 0, fault.New(fault.Refused, "the former key is not that of a device of this company")
	case former.Wiped || former.Superseded || former.State == agentdevice.WipePending:
		return "", 0, fault.New(fault.Refused, "the device with the former key is no longer its asset, or is to be erased")
	}
	return former.AssetID, former.Epoch, nil
}

// bind ties a device to its asset; the device that was that asset before is
// superseded. The caller holds the asset's row.
func bind(ctx context.Context, t *tx, d agentdevice.Device) error {
	supersede(ctx, t, d.AssetID, d.ID)
	return t.Exec(ctx, `UPDATE agent_devices SET asset_id = ?, epoch = ? WHERE id = ?`, d.AssetID, d.Epoch, d.ID)
}

// redeem makes the device of a token, or finds the one that the same key got
// for it since again.
func redeem(ctx context.Context, t *tx, kind string, hash [sha256.Size]byte, d agentdevice.Device,
	again time.Time) (agentdevice.Device, spentToken, bool, error) {
	token, known, err := maybe(one(ctx, t, into(func(s *spentToken) []any {
		return []any{&s.CompanyID, &s.PolicyID, &s.assetID, &s.epoch, at(&s.ExpiresAt), &s.device, at(&s.spent), &s.Code, &s.ended}
	}), kind+t.lock(), digest(hash[:])))
	refused := fault.New(fault.Refused, "the token is unknown, spent or expired")
	switch {
	case err == nil && !known:
		return agentdevice.Device{}, token, false, refused
	case err != nil:
		return agentdevice.Device{}, token, false, err
	}
	if used, there, err := usedBy(ctx, t, token.Code, d.Key, again); err != nil || there {
		return used, token, false, err
	}
	switch {
	case token.device != "" && token.spent.After(again):
		got, err := findAgent(ctx, t, `agent_devices.id = ?`, token.device)
		if err == nil && got.Key != d.Key {
			err = refused
		}
		return got, token, false, err
	case token.device != "" || token.ended:
		return agentdevice.Device{}, token, false, refused
	case !t.db.now().Before(token.ExpiresAt):
		_, asked, err := requestOf(ctx, t, hash, d.Key)
		if err == nil && (!asked || token.ExpiresAt.IsZero()) {
			err = refused
		}
		if err != nil {
			return agentdevice.Device{}, token, false, err
		}
	}
	got, err := insertAgent(ctx, t, d, token.CompanyID)
	return got, token, true, err
}

// usedBy finds the device that a key enrolled with a code since a time.
func usedBy(ctx context.Context, t *tx, code string, key protocol.PublicKey, since time.Time) (agentdevice.Device, bool, error) {
	if code == "" {
		return agentdevice.Device{}, false, nil
	}
	id, there, err := maybe(value[string](ctx, t, `SELECT u.device FROM enrollment_uses u JOIN agent_devices d ON d.id = u.device
		WHERE u.code_id = ? AND u.at > ? AND d.key_alg = ? AND d.key_spki = ? LIMIT 1`, code, millis(since),
		string(key.Algorithm), key.SPKI))
	if err != nil || !there {
		return agentdevice.Device{}, false, err
	}
	got, err := findAgent(ctx, t, `agent_devices.id = ?`, id)
	return got, true, err
}

func insertAgent(ctx context.Context, t *tx, d agentdevice.Device, companyID string) (agentdevice.Device, error) {
	d.CompanyID = companyID
	err := t.Exec(ctx,
		`INSERT INTO agent_devices (id, company_id, asset_id, epoch, role, key_alg, key_spki, command_alg, last_sequence, state,
			wiped, capabilities, push_token, open_deliveries, erasing_at, enrolled_at, seen_at, daily_since)
		VALUES (?, ?, '', 0, ?, ?, ?, ?, 0, ?, FALSE, 'null', '', 0, 0, ?, ?, ?)`, d.ID, companyID, string(d.Role), string(d.Key.Algorithm),
		d.Key.SPKI, string(d.CommandAlgorithm), string(d.State), millis(d.EnrolledAt), millis(d.SeenAt), millis(d.EnrolledAt))
	return d, err
}

// supersede ends the live agents of an asset, except one. They are not released:
// a device must not lose its policy because another has become its asset. One
// with an open wipe is told to erase itself at its next contact.
func supersede(ctx context.Context, t *tx, assetID, except string) {
	live := `SELECT id FROM agent_devices WHERE asset_id = ? AND id <> ? AND state <> '` + string(agentdevice.Deleted) + `'`
	for _, id := range listed(ctx, t, scanValue[string], live+` ORDER BY id`+t.lock(), assetID, except) {
		t.check(endAgent(ctx, t, id))
		t.do(ctx, `UPDATE agent_devices SET superseded = TRUE WHERE id = ?`, id)
	}
}

// openWipe selects the wipe that a row of agent_devices has not carried out.
const openWipe = `SELECT 1 FROM agent_deliveries v WHERE v.device_id = agent_devices.id AND v.type = 'WIPE_COMPANY_DATA'`

// openRelease is openWipe for the command that releases a device.
const openRelease = `SELECT 1 FROM agent_deliveries v WHERE v.device_id = agent_devices.id AND v.type = 'RELINQUISH_OWNERSHIP'`

// EndAgent ends a device and, unless it is a companion, the management of its
// asset, in one transaction. Its row stays, to answer its key with a tombstone.
// A device with an open wipe is told to erase itself from then on, however it
// ended; it cannot unenroll.
func (db *DB) EndAgent(ctx context.Context, d agentdevice.Device, e agentdevice.Ending) (bool, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
		h, err := holdAgentsAsset(ctx, t, d)
		if err != nil || !mayEnd(ctx, t, d, e) {
			return false, err
		}
		t.changed(d.CompanyID, "asset", d.AssetID)
		if h.id != "" && h.epoch == d.Epoch && h.status.Enrolled() {
			t.check(h.end(ctx, t, e.At, ending{how: string(e.How), erased: e.How == agentdevice.Erased}))
		}
		return true, endAgent(ctx, t, d.ID)
	})
}

// holdAgentsAsset locks the asset that ends with a device; none for a companion.
func holdAgentsAsset(ctx context.Context, t *tx, d agentdevice.Device) (lockedAsset, error) {
	if d.AssetID == "" || d.IsCompanion() {
		return lockedAsset{}, nil
	}
	return hold(ctx, t, d.AssetID)
}

// mayEnd locks a device and reports whether it may end so, as it is now.
func mayEnd(ctx context.Context, t *tx, d agentdevice.Device, e agentdevice.Ending) bool {
	silence, args := ``, []any{d.ID, d.AssetID, d.Epoch}
	if e.How == agentdevice.Erased {
		silence = ` AND erasing_at <> 0 AND erasing_at < ? AND seen_at < ?`
		args = append(args, millis(e.SilentSince), millis(e.SilentSince))
	}
	live := t.holds(ctx, `SELECT id FROM agent_devices WHERE id = ? AND asset_id = ? AND epoch = ? AND state <> '`+
		string(agentdevice.Deleted)+`'`+silence+t.lock(), args...)
	if !live || e.How != agentdevice.Unenrolled {
		return live
	}
	// A statement of its own: the one before may have waited while a wipe was kept.
	return !t.holds(ctx, `SELECT id FROM agent_devices WHERE id = ? AND EXISTS (`+openWipe+`)`, d.ID)
}

// holds reports whether a query for one text finds any.
func holds(ctx context.Context, c conn, query string, args ...any) (bool, error) {
	_, there, err := maybe(value[string](ctx, c, query, args...))
	return there, err
}

// endAgent ends a device's row with its deliveries.
func endAgent(ctx context.Context, t *tx, id string) error {
	t.hint(agentdevice.EndTopic, id)
	t.do(ctx, `UPDATE agent_devices SET state = ?, wiped = EXISTS (`+openWipe+
		`), open_deliveries = 0, erasing_at = 0, push_token = ''
		WHERE id = ?`, string(agentdevice.Deleted), id)
	return t.Exec(ctx, `DELETE FROM agent_deliveries WHERE device_id = ?`, id)
}

// EndOrphans ends the commands that were kept for up to limit devices at the
// moment at which they ended: they will not be fetched.
func (db *DB) EndOrphans(ctx context.Context, limit int) error {
	ids, err := list(ctx, db.read(), scanValue[string],
		`SELECT id FROM agent_devices WHERE orphaned AND id > '' ORDER BY id LIMIT ?`, limit)
	for _, id := range ids {
		err = errors.Join(err, db.write(ctx, func(ctx context.Context, t *tx) error { return endOrphans(ctx, t, id) }))
	}
	return err
}

func endOrphans(ctx context.Context, t *tx, deviceID string) error {
	t.do(ctx, `UPDATE agent_devices SET open_deliveries = 0, orphaned = FALSE WHERE id = ? AND orphaned`, deviceID)
	for _, v := range listed(ctx, t, into(deliveryFields), `DELETE FROM agent_deliveries WHERE device_id = ? RETURNING `+deliveryColumns,
		deviceID) {
		state, outcome := command.Type(v.Type).EndOfManagement(asset.Agent, false)
		_, err := t.db.advanceWithin(ctx, t, v.CommandID,
			command.Transition{From: []command.State{command.Prepared, command.Sent, command.Unconfirmed}, To: state, Outcome: outcome})
		if err != nil && !errors.Is(err, engine.ErrNoRow) {
			return err
		}
	}
	return nil
}
