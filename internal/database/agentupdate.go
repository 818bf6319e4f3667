package database

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/rollout"
)

// offered is what a device is to install, with what is known of it there.
type offered struct {
	rollout.Offer
	enrolled, dailySince time.Time
}

// offer is the newest version whose rollout has come to a device, unless the device's
// company holds it back or the device went back from it.
func offer(ctx context.Context, c conn, deviceID string) (offered, bool, error) {
	return maybe(one(ctx, c, into(func(o *offered) []any {
		return append(releaseFields(&o.Release), &o.Outcome, at(&o.enrolled), at(&o.dailySince))
	}), `SELECT `+releaseColumns+`, COALESCE(u.state, ''), d.enrolled_at, d.daily_since
		FROM agent_devices d JOIN agent_releases r ON r.package = d.agent_package AND r.code > d.agent_code
		JOIN agent_rollouts o ON o.version = r.version AND o.state IN ('RUNNING', 'DONE') AND o.upto >= ?
		LEFT JOIN agent_updates u ON u.device_id = d.id AND u.version = r.version
		WHERE d.id = ? AND d.state = '`+string(agentdevice.Active)+`' AND d.role = 'manager' AND NOT `+heldBack+`
		AND COALESCE(u.state, '') <> '`+string(rollout.WentBack)+`'
		ORDER BY r.code DESC LIMIT 1`, rollout.Place(deviceID), deviceID))
}

// OfferUpdate implements rollout.Offers.
func (db *DB) OfferUpdate(ctx context.Context, deviceID, ready string) (rollout.Offer, bool, error) {
	o, there, err := offer(ctx, db.read(), deviceID)
	if err != nil || !there || ready != o.SHA256 && o.Outcome != "" {
		return o.Offer, there, err
	}
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		if o, there, err = offer(ctx, t, deviceID); err != nil || !there {
			return err
		}
		now, state, began := db.now(), rollout.Offered, time.Time{}
		if ready == o.SHA256 {
			state, began = rollout.Began, now
		}
		return t.Exec(ctx, `INSERT INTO agent_updates (device_id, version, sha256, state, detail, daily, offered_at, began_at, ended_at)
			VALUES (?, ?, ?, ?, '', ?, ?, ?, 0) ON CONFLICT (device_id, version) DO UPDATE SET
			state = excluded.state, daily = excluded.daily, began_at = excluded.began_at, ended_at = 0, detail = ''
			WHERE excluded.began_at > 0 AND agent_updates.state <> 'BEGAN'`,
			deviceID, o.Version, o.SHA256, string(state), rollout.Daily(o.dailySince, o.enrolled, now), millis(now), millis(began))
	})
	return o.Offer, there, err
}

// UpdateTold implements rollout.Offers. What was installed stays so.
func (db *DB) UpdateTold(ctx context.Context, deviceID string, w rollout.Word) error {
	return db.exec(ctx, `UPDATE agent_updates SET state = ?, detail = ?, ended_at = ?
		WHERE device_id = ? AND sha256 = ? AND state NOT IN ('INSTALLED', 'WENT_BACK') AND (state <> ? OR detail <> ?)`,
		string(w.Outcome), w.Detail, millis(db.now()), deviceID, w.SHA256, string(w.Outcome), w.Detail)
}

// wasOffered: the file, as r, was offered to a device.
const wasOffered = `EXISTS (SELECT 1 FROM agent_updates u WHERE u.device_id = ? AND u.version = r.version AND u.sha256 = r.sha256)`

// ReleaseSize implements rollout.Offers.
func (db *DB) ReleaseSize(ctx context.Context, deviceID, sha256 string) (int64, error) {
	return find(ctx, db.read(), "file", scanValue[int64], `SELECT r.size FROM agent_releases r WHERE r.sha256 = ? AND `+wasOffered, sha256,
		deviceID)
}

// ReleasePart implements rollout.Offers.
func (db *DB) ReleasePart(ctx context.Context, deviceID, sha256 string, number int64) ([]byte, error) {
	text, err := find(ctx, db.read(), "file", scanValue[string],
		`SELECT p.data FROM agent_release_parts p JOIN agent_releases r ON r.sha256 = p.sha256
		WHERE p.sha256 = ? AND p.number = ? AND `+wasOffered, sha256, number, deviceID)
	if err != nil {
		return nil, err
	}
	part, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fault.New(fault.Internal, "the part %d of a release is damaged", number).Because(err)
	}
	return part, nil
}

// SetAgentPause holds back a company's devices from updates, or no longer.
func (db *DB) SetAgentPause(ctx context.Context, companyID string, on bool) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		change, was := `DELETE FROM agent_pauses WHERE company_id = ?`, []any{companyID}
		if on {
			change, was = `INSERT INTO agent_pauses (company_id, at) VALUES (?, ?) ON CONFLICT (company_id) DO NOTHING`,
				[]any{companyID, millis(db.now())}
		}
		if t.count(ctx, change, was...) == 0 {
			return nil
		}
		return db.recordOf(ctx, t, company.Company{ID: companyID}, activity.CompanyChanged,
			activity.Change{Field: "agentUpdates", Before: pausedText(!on), After: pausedText(on)})
	})
}

func pausedText(paused bool) string {
	if paused {
		return "paused"
	}
	return "on"
}

// AgentPause returns since when a company's devices are held back; zero: they are not.
func (db *DB) AgentPause(ctx context.Context, companyID string) (time.Time, error) {
	ms, _, err := maybe(value[int64](ctx, db.read(), `SELECT at FROM agent_pauses WHERE company_id = ?`, companyID))
	return instant(ms), err
}

// AgentVersions counts a company's live devices by the version of their agent.
func (db *DB) AgentVersions(ctx context.Context, companyID string) ([]rollout.Count, error) {
	return list(ctx, db.read(), into(func(c *rollout.Count) []any { return []any{&c.Version, &c.Devices} }),
		`SELECT d.agent_version, COUNT(*) FROM agent_devices d WHERE d.company_id = ? AND d.state <> '`+string(agentdevice.Deleted)+`'
		GROUP BY d.agent_version ORDER BY d.agent_version DESC LIMIT 50`, companyID)
}

// UpdateTroubles returns a company's devices on which a version failed that does not run there.
func (db *DB) UpdateTroubles(ctx context.Context, companyID string, limit int) ([]rollout.Trouble, error) {
	return list(ctx, db.read(), into(func(t *rollout.Trouble) []any {
		return []any{&t.AssetID, &t.Name, &t.Version, &t.Outcome, &t.Detail}
	}),
		`SELECT d.asset_id, a.identification, u.version, u.state, u.detail FROM agent_devices d JOIN agent_updates u ON u.device_id = d.id
		JOIN assets a ON a.id = d.asset_id
		JOIN agent_releases r ON r.version = u.version AND r.package = d.agent_package AND r.code > d.agent_code
		WHERE d.company_id = ? AND d.state = '`+string(agentdevice.Active)+`' AND u.state IN ('FAILED', 'WENT_BACK')
		ORDER BY u.ended_at DESC, d.id LIMIT ?`, companyID, limit)
}
