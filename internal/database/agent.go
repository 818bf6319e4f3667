package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
)

// agentOwnColumns are those of the row of a device.
const agentOwnColumns = `agent_devices.id, agent_devices.company_id, agent_devices.asset_id, agent_devices.epoch, agent_devices.role, agent_devices.key_alg, agent_devices.key_spki, agent_devices.command_alg, agent_devices.last_sequence, agent_devices.state, agent_devices.wiped, agent_devices.superseded,
	agent_devices.capabilities, agent_devices.agent_version, agent_devices.agent_package, agent_devices.agent_code,
		agent_devices.push_token, agent_devices.open_deliveries, agent_devices.enrolled_at, agent_devices.seen_at`

// agentColumns also say what the device is to have: the policy that is assigned
// to its asset, at its present version.
const agentColumns = agentOwnColumns + `,
	EXISTS (SELECT 1 FROM assets a WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND a.status = 'INACTIVE'), ` +
	agentPolicy + `, ` + agentHasIt

// agentPolicy reads the assigned policy for a row of agent_devices. A
// companion's asset has its policy from the platform: it is not the companion's.
const agentPolicy = `COALESCE((SELECT a.policy_id FROM assets a
		WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND agent_devices.role <> 'companion'), ''),
	COALESCE((SELECT p.version FROM assets a JOIN policies p ON p.id = a.policy_id
		WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND agent_devices.role <> 'companion'), 0)`

// agentHasIt reads for a row of agent_devices whether the device has reported the policy that is
// assigned, at its present version, while an open command moves it there, back as a rule, or
// it is not known whether one moved it elsewhere.
const agentHasIt = `EXISTS (SELECT 1 FROM assets a JOIN commands m ON m.asset_id = a.id AND m.epoch = a.epoch
		AND (m.policy_id = a.policy_id OR m.state = 'UNCONFIRMED')
	JOIN policies p ON p.id = a.policy_id AND p.version = a.applied_version
	WHERE a.id = agent_devices.asset_id AND a.epoch = agent_devices.epoch AND agent_devices.role <> 'companion'
	AND a.applied_policy_id = a.policy_id AND m.state IN ('PREPARED', 'SENT', 'UNCONFIRMED') AND m.type = 'CHANGE_POLICY')`

func agentFields(d *agentdevice.Device) []any {
	return []any{&d.ID, &d.CompanyID, &d.AssetID, &d.Epoch, &d.Role, &d.Key.Algorithm, &d.Key.SPKI, &d.CommandAlgorithm,
		&d.LastSequence, &d.State,
		&d.Wiped, &d.Superseded, encoded{&d.Capabilities}, &d.Build.Version, &d.Build.Package, &d.Build.Code, &d.PushToken, &d.Open,
		at(&d.EnrolledAt), at(&d.SeenAt), &d.Silent, &d.PolicyID, &d.PolicyVersion, &d.HasIt}
}

func findAgent(ctx context.Context, c conn, where string, args ...any) (agentdevice.Device, error) {
	return find(ctx, c, "device", into(agentFields), `SELECT `+agentColumns+` FROM agent_devices WHERE `+where, args...)
}

// AgentDevice finds a device, also one that ended.
func (db *DB) AgentDevice(ctx context.Context, id string) (agentdevice.Device, error) {
	return findAgent(ctx, db.read(), `agent_devices.id = ?`, id)
}

// AgentOfToken finds the device that a token enrolled, once it has its asset.
func (db *DB) AgentOfToken(ctx context.Context, hash [sha256.Size]byte) (agentdevice.Device, error) {
	return findAgent(ctx, db.read(),
		`agent_devices.id = (SELECT device_id FROM agent_tokens WHERE hash = ?) AND agent_devices.asset_id <> ''`,
		hex.EncodeToString(hash[:]))
}

// AgentOf finds the live device of an asset's enrollment.
func (db *DB) AgentOf(ctx context.Context, assetID string, epoch int) (agentdevice.Device, error) {
	if d, ok := access.Take(ctx, func(d agentdevice.Device) bool { return d.AssetID == assetID && d.Epoch == epoch }); ok {
		return d, nil
	}
	return findAgent(ctx, db.read(), `agent_devices.asset_id = ? AND agent_devices.epoch = ? AND agent_devices.state <> '`+
		string(agentdevice.Deleted)+`'`, assetID, epoch)
}

// Contact takes a request's sequence number, if the device is live, has that
// key, and the number is higher than all before. It may be lost with the
// machine's power: the agent's own counter only grows, and the request's time is
// checked.
func (db *DB) Contact(ctx context.Context, id string, key protocol.PublicKey, sequence int64) (agentdevice.Device, bool, error) {
	var d agentdevice.Device
	err := db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		d, err = one(ctx, c, into(agentFields), contactStatement, db.contactArgs(id, key, sequence)...)
		return err
	})
	return maybe(d, err)
}

// contactStatement takes a sequence number and returns the device as it then is. A time since which it was in touch every day
// that is after its last contact was noted while the clock was ahead.
const contactStatement = `UPDATE agent_devices SET last_sequence = ?, seen_at = ?,
		daily_since = CASE WHEN seen_at < ? THEN ? WHEN daily_since > seen_at THEN seen_at ELSE daily_since END
	WHERE agent_devices.id = ? AND agent_devices.last_sequence < ? AND agent_devices.key_spki = ? AND agent_devices.key_alg = ?
		AND agent_devices.state <> '` + string(agentdevice.Deleted) + `'
	RETURNING ` + agentColumns

func (db *DB) contactArgs(id string, key protocol.PublicKey, sequence int64) []any {
	now, last := any(millis(db.now())), any(sequence)
	return append(make([]any, 0, 16), last, now, millis(db.now().Add(-24*time.Hour)), now, id, last, key.SPKI, string(key.Algorithm))
}

// UpdateAgent changes what a device says of itself. It fails with fault.Refused
// if the device's key is another than the one that is to be replaced.
func (db *DB) UpdateAgent(ctx context.Context, deviceID string, change agentdevice.Change) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if change.Capabilities != nil {
			t.do(ctx, `UPDATE agent_devices SET capabilities = ? WHERE id = ?`, encode(change.Capabilities),
				deviceID)
		}
		if b := change.Build; b != nil {
			t.do(ctx, `UPDATE agent_devices SET agent_version = ?, agent_package = ?, agent_code = ? WHERE id = ?`,
				b.Version, b.Package, b.Code, deviceID)
		}
		if change.Key == nil {
			return nil
		}
		if t.count(ctx, `UPDATE agent_devices SET key_alg = ?, key_spki = ? WHERE id = ? AND key_spki = ? AND key_alg = ?`,
			string(change.Key.Algorithm), change.Key.SPKI, deviceID, change.Was.SPKI, string(change.Was.Algorithm)) == 0 {
			return fault.New(fault.Refused, "the device has another key by now")
		}
		return nil
	})
}

// Erased returns devices that set out to erase themselves before a time and
// have been silent since that time.
func (db *DB) Erased(ctx context.Context, before time.Time, limit int) ([]agentdevice.Device, error) {
	return list(ctx, db.read(), into(agentFields), `SELECT `+agentColumns+` FROM agent_devices
		WHERE agent_devices.erasing_at <> 0 AND agent_devices.erasing_at < ? AND agent_devices.seen_at < ? ORDER BY agent_devices.erasing_at LIMIT ?`, millis(before), millis(before), limit)
}
