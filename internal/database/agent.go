package database

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/fault"
)

// agentColumns also say what the device is to have: the policy that is assigned
// to its asset, at its present version.
const agentColumns = `agent_devices.id, agent_devices.company_id, agent_devices.asset_id, agent_devices.epoch, agent_devices.role, agent_devices.key_alg, agent_devices.key_spki, agent_devices.last_sequence, agent_devices.state, agent_devices.wiped, agent_devices.superseded,
	agent_devices.capabilities, agent_devices.push_token, agent_devices.open_deliveries, agent_devices.enrolled_at, agent_devices.seen_at,
	EXISTS (SELECT 1 FROM assets a WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND a.status = 'INACTIVE'), ` + agentPolicy

// agentPolicy reads the assigned policy for a row of agent_devices. A
// companion's asset has its policy from the platform: it is not the companion's.
const agentPolicy = `COALESCE((SELECT a.policy_id FROM assets a
		WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND agent_devices.role <> 'companion'), ''),
	COALESCE((SELECT p.version FROM assets a JOIN policies p ON p.id = a.policy_id
		WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND agent_devices.role <> 'companion'), 0)`

func scanAgent(r row) (d agentdevice.Device, err error) {
	var capabilities string
	var enrolled, seen int64
	if err := r.Scan(&d.ID, &d.CompanyID, &d.AssetID, &d.Epoch, &d.Role, &d.Key.Algorithm, &d.Key.SPKI, &d.LastSequence, &d.State,
		&d.Wiped, &d.Superseded, &capabilities, &d.PushToken, &d.Open, &enrolled, &seen, &d.Silent, &d.PolicyID, &d.PolicyVersion); err != nil {
		return d, err
	}
	d.EnrolledAt, d.SeenAt = instant(enrolled), instant(seen)
	return d, decode(capabilities, &d.Capabilities)
}

func findAgent(ctx context.Context, c conn, where string, args ...any) (agentdevice.Device, error) {
	d, err := one(ctx, c, scanAgent, `SELECT `+agentColumns+` FROM agent_devices WHERE `+where, args...)
	return found(d, err, "device")
}

// CreateAgentToken adds a token, and drops those that ended a day ago.
func (db *DB) CreateAgentToken(ctx context.Context, t agentdevice.Token) error {
	return db.write(ctx, func(ctx context.Context, tx *tx) error {
		if _, err := tx.exec(ctx, `DELETE FROM agent_tokens WHERE expires_at < ?`, millis(db.now().Add(-24*time.Hour))); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `INSERT INTO agent_tokens (hash, company_id, policy_id, expires_at, device_id, spent_at)
			VALUES (?, ?, ?, ?, '', 0)`, hex.EncodeToString(t.Hash[:]), t.CompanyID, t.PolicyID, millis(t.ExpiresAt))
		return err
	})
}

// spentToken is a token with who spent it, and when.
type spentToken struct {
	agentdevice.Token
	assetID string // of a companion's token
	epoch   int
	device  string
	spent   time.Time
}

// The two kinds of tokens: for devices of an AGENT policy, for companions.
const (
	managerToken   = `SELECT company_id, policy_id, '', 0, expires_at, device_id, spent_at FROM agent_tokens WHERE hash = ?`
	companionToken = `SELECT company_id, '', asset_id, epoch, expires_at, device_id, spent_at FROM companion_tokens WHERE hash = ?`
)

// RedeemAgentToken spends a token, once.
func (db *DB) RedeemAgentToken(ctx context.Context, hash [sha256.Size]byte, d agentdevice.Device, again time.Time) (agentdevice.Device, agentdevice.Token, bool, error) {
	var got agentdevice.Device
	var token spentToken
	var fresh bool
	err := db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		got, token, fresh, err = redeem(ctx, t, managerToken, hash, d, again)
		if err != nil || !fresh {
			return err
		}
		_, err = t.exec(ctx, `UPDATE agent_tokens SET device_id = ?, spent_at = ? WHERE hash = ?`, d.ID, millis(db.now()), hex.EncodeToString(hash[:]))
		return err
	})
	return got, token.Token, fresh, err
}

// redeem makes the device of a token, or finds the one that the same key got
// for it since again.
func redeem(ctx context.Context, t *tx, kind string, hash [sha256.Size]byte, d agentdevice.Device, again time.Time) (agentdevice.Device, spentToken, bool, error) {
	token, err := one(ctx, t, func(r row) (s spentToken, err error) {
		var expires, spent int64
		err = r.Scan(&s.CompanyID, &s.PolicyID, &s.assetID, &s.epoch, &expires, &s.device, &spent)
		s.Hash, s.ExpiresAt, s.spent = hash, instant(expires), instant(spent)
		return s, err
	}, kind+t.lock(), hex.EncodeToString(hash[:]))
	refused := fault.New(fault.Refused, "the token is unknown, spent or expired")
	if token, err = found(token, err, "token"); fault.CodeOf(err) == fault.NotFound {
		return agentdevice.Device{}, token, false, refused
	}
	switch {
	case err != nil:
		return agentdevice.Device{}, token, false, err
	case token.device != "" && token.spent.After(again):
		got, err := findAgent(ctx, t, `agent_devices.id = ?`, token.device)
		if err == nil && got.Key != d.Key {
			err = refused
		}
		return got, token, false, err
	case token.device != "" || !t.db.now().Before(token.ExpiresAt):
		return agentdevice.Device{}, token, false, refused
	}
	got, err := insertAgent(ctx, t, d, token.CompanyID)
	return got, token, true, err
}

func insertAgent(ctx context.Context, t *tx, d agentdevice.Device, companyID string) (agentdevice.Device, error) {
	d.CompanyID = companyID
	_, err := t.exec(ctx, `INSERT INTO agent_devices (id, company_id, asset_id, epoch, role, key_alg, key_spki, last_sequence, state,
			wiped, capabilities, push_token, open_deliveries, erasing_at, enrolled_at, seen_at)
		VALUES (?, ?, '', 0, ?, ?, ?, 0, ?, FALSE, 'null', '', 0, 0, ?, ?)`, d.ID, companyID, string(d.Role), string(d.Key.Algorithm),
		d.Key.SPKI, string(d.State), millis(d.EnrolledAt), millis(d.SeenAt))
	return d, err
}

// BindAgent ties a device to its asset; the device that was that asset before
// is superseded.
func (db *DB) BindAgent(ctx context.Context, deviceID, assetID string, epoch int) error {
	var ended []string
	err := db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		if ended, err = supersede(ctx, t, assetID, deviceID); err != nil {
			return err
		}
		_, err = t.exec(ctx, `UPDATE agent_devices SET asset_id = ?, epoch = ? WHERE id = ?`, assetID, epoch, deviceID)
		return err
	})
	return db.hintEnded(err, ended...)
}

// hintEnded tells every replica that agents have ended, unless the change that
// ended them failed with err, which it returns.
func (db *DB) hintEnded(err error, ids ...string) error {
	if err == nil && len(ids) > 0 {
		db.Notify(agentdevice.EndTopic, ids...)
	}
	return err
}

// supersede ends the live agents of an asset, except one, and returns their ids.
// They are not released: a device whose asset somebody else has become must not
// lose its policy by that. One with an open wipe is told to erase itself at its
// next contact.
func supersede(ctx context.Context, t *tx, assetID, except string) ([]string, error) {
	live := `SELECT id FROM agent_devices WHERE asset_id = ? AND id <> ? AND state <> '` + string(agentdevice.Deleted) + `'`
	ids, err := list(ctx, t, scanValue[string], live+` ORDER BY id`+t.lock(), assetID, except)
	for _, id := range ids {
		if _, err := t.exec(ctx, `UPDATE agent_devices SET state = ?, superseded = TRUE, open_deliveries = 0, erasing_at = 0, push_token = '',
				wiped = EXISTS (`+openWipe+`) WHERE id = ?`, string(agentdevice.Deleted), id); err != nil {
			return nil, err
		}
		if _, err := t.exec(ctx, `DELETE FROM agent_deliveries WHERE device_id = ?`, id); err != nil {
			return nil, err
		}
	}
	return ids, err
}

// openWipe selects the wipe that a row of agent_devices has not carried out.
const openWipe = `SELECT 1 FROM agent_deliveries v WHERE v.device_id = agent_devices.id AND v.type = 'WIPE_COMPANY_DATA'`

// AgentDevice finds a device, also one that ended.
func (db *DB) AgentDevice(ctx context.Context, id string) (agentdevice.Device, error) {
	return findAgent(ctx, db.read(), `agent_devices.id = ?`, id)
}

// AgentOfToken finds the device that a token enrolled, once it has its asset.
func (db *DB) AgentOfToken(ctx context.Context, hash [sha256.Size]byte) (agentdevice.Device, error) {
	return findAgent(ctx, db.read(), `agent_devices.id = (SELECT device_id FROM agent_tokens WHERE hash = ?) AND agent_devices.asset_id <> ''`,
		hex.EncodeToString(hash[:]))
}

// AgentOf finds the live device of an asset's enrolment.
func (db *DB) AgentOf(ctx context.Context, assetID string, epoch int) (agentdevice.Device, error) {
	return findAgent(ctx, db.read(), `agent_devices.asset_id = ? AND agent_devices.epoch = ? AND agent_devices.state <> '`+string(agentdevice.Deleted)+`'`, assetID, epoch)
}

// Contact takes a request's sequence number, if the device is live, has that
// key, and the number is higher than all before. It may be lost with the
// machine's power: the agent's own counter only grows, and the request's time is
// checked.
func (db *DB) Contact(ctx context.Context, id string, key agentproto.PublicKey, sequence int64) (agentdevice.Device, bool, error) {
	var d agentdevice.Device
	err := db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		d, err = one(ctx, c, scanAgent, `UPDATE agent_devices SET last_sequence = ?, seen_at = ?
			WHERE agent_devices.id = ? AND agent_devices.last_sequence < ? AND agent_devices.key_spki = ? AND agent_devices.key_alg = ? AND agent_devices.state <> '`+string(agentdevice.Deleted)+`'
			RETURNING `+agentColumns, sequence, millis(db.now()), id, sequence, key.SPKI, string(key.Algorithm))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return agentdevice.Device{}, false, nil
	}
	return d, err == nil, err
}

// UpdateAgent changes what a device says of itself.
func (db *DB) UpdateAgent(ctx context.Context, deviceID string, change agentdevice.Change) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if change.Capabilities != nil {
			if _, err := t.exec(ctx, `UPDATE agent_devices SET capabilities = ? WHERE id = ?`, encode(change.Capabilities), deviceID); err != nil {
				return err
			}
		}
		if change.Key == nil {
			return nil
		}
		_, err := t.exec(ctx, `UPDATE agent_devices SET key_alg = ?, key_spki = ? WHERE id = ?`,
			string(change.Key.Algorithm), change.Key.SPKI, deviceID)
		return err
	})
}

// EndAgent ends a device. Its row stays, to answer its key with a tombstone.
func (db *DB) EndAgent(ctx context.Context, deviceID string, wiped bool) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `DELETE FROM agent_deliveries WHERE device_id = ?`, deviceID); err != nil {
			return err
		}
		_, err := t.exec(ctx, `UPDATE agent_devices SET state = ?, wiped = ?, open_deliveries = 0, erasing_at = 0, push_token = ''
			WHERE id = ?`, string(agentdevice.Deleted), wiped, deviceID)
		return err
	})
	return db.hintEnded(err, deviceID)
}

// Erased returns devices that set out to erase themselves before a time and
// have been silent since that time.
func (db *DB) Erased(ctx context.Context, before time.Time, limit int) ([]agentdevice.Device, error) {
	return list(ctx, db.read(), scanAgent, `SELECT `+agentColumns+` FROM agent_devices
		WHERE agent_devices.erasing_at <> 0 AND agent_devices.erasing_at < ? AND agent_devices.seen_at < ? ORDER BY agent_devices.erasing_at LIMIT ?`, millis(before), millis(before), limit)
}
