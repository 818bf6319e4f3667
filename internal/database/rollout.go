package database

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/rollout"
)

const releaseColumns = `r.version, r.package, r.code, r.sha256, r.size, r.signer, r.added_at`

func releaseFields(r *rollout.Release) []any {
	return []any{&r.Version, &r.Package, &r.Code, &r.SHA256, &r.Size, &r.Signer, at(&r.AddedAt)}
}

const rolloutColumns = `o.version, o.state, o.reason, o.goal, o.ring, o.upto, o.began_at, o.ring_at, o.resumed_at, o.watched_from, o.watched_at`

func rolloutFields(r *rollout.Rollout) []any {
	return []any{&r.Version, &r.State, &r.Reason, &r.Goal, &r.Ring, &r.Upto, at(&r.BeganAt), at(&r.RingAt), at(&r.ResumedAt),
		at(&r.WatchedFrom), at(&r.WatchedAt)}
}

// Releases returns all releases, the newest first.
func (db *DB) Releases(ctx context.Context) ([]rollout.Release, error) {
	return releases(ctx, db.read())
}

func releases(ctx context.Context, c conn) ([]rollout.Release, error) {
	return list(ctx, c, into(releaseFields), `SELECT `+releaseColumns+` FROM agent_releases r ORDER BY r.added_at DESC, r.package`)
}

// AddRelease implements rollout.Store.
func (db *DB) AddRelease(ctx context.Context, r rollout.Release, content []byte) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		all, err := releases(ctx, t)
		t.check(err)
		known, err := admits(all, r)
		if err != nil || known {
			return err
		}
		r.AddedAt = db.now()
		t.check(t.Insert(ctx, "agent_releases", releaseColumns, releaseFields(&r)))
		for n := 0; n*rollout.PartSize < len(content); n++ {
			part := content[n*rollout.PartSize : min((n+1)*rollout.PartSize, len(content))]
			t.do(ctx, `INSERT INTO agent_release_parts (sha256, number, data) VALUES (?, ?, ?)`, r.SHA256, int64(n),
				base64.StdEncoding.EncodeToString(part))
		}
		return forgetReleases(ctx, t, r, len(all)+1-rollout.MaxReleases)
	})
}

// admits reports whether a release is known already, or says why it cannot be added.
func admits(all []rollout.Release, r rollout.Release) (known bool, err error) {
	for _, other := range all {
		same := other.Package == r.Package
		switch {
		case other.SHA256 == r.SHA256 && other.Version == r.Version && same:
			return true, nil
		case other.Version == r.Version && same:
			return false, fault.New(fault.Refused, "version %s for %s exists with other bytes: build a higher version",
				r.Version, r.Package)
		case other.Version == r.Version && other.Code != r.Code:
			return false, fault.New(fault.Refused, "version %s has the code %d for %s: its other files must have it, too", r.Version,
				other.Code, other.Package)
		case other.Version != r.Version && other.Code == r.Code:
			return false, fault.New(fault.Refused, "version %s has the code %d already", other.Version, r.Code)
		case same && other.Code > r.Code:
			return false, fault.New(fault.Refused, "version %s for %s is higher: devices install higher versions only",
				other.Version, r.Package)
		case same && other.Signer != r.Signer:
			return false, fault.New(fault.Refused, "version %s for %s has another signer: devices would refuse this file",
				other.Version, r.Package)
		}
	}
	return false, nil
}

// forgetReleases makes room for a release: it removes as many as are too many, the oldest first,
// of other versions that no rollout needs.
func forgetReleases(ctx context.Context, t *tx, added rollout.Release, surplus int) error {
	if surplus <= 0 {
		return nil
	}
	needless := listed(ctx, t, into(releaseFields), `SELECT `+releaseColumns+` FROM agent_releases r
		WHERE NOT EXISTS (SELECT 1 FROM agent_rollouts o WHERE o.version = r.version AND o.state <> '`+string(rollout.Ended)+`')
		AND r.version <> ? ORDER BY r.added_at, r.package LIMIT ?`, added.Version, surplus)
	if len(needless) < surplus {
		return fault.New(fault.Refused, "version %s cannot be added: rollouts need all %d files that are kept; bring a version to 100 "+
			"percent of the devices, which ends the rollouts of lower ones, or run `muster agent pause` and then `muster agent rollout` "+
			"for the version to keep, which ends all others", added.Version, rollout.MaxReleases)
	}
	for _, r := range needless {
		t.do(ctx, `DELETE FROM agent_release_parts WHERE sha256 = ?`, r.SHA256)
		t.do(ctx, `DELETE FROM agent_releases WHERE sha256 = ?`, r.SHA256)
		for _, table := range []string{"agent_rollouts", "agent_updates"} {
			t.do(ctx, `DELETE FROM `+table+
				` WHERE version = ? AND NOT EXISTS (SELECT 1 FROM agent_releases r WHERE r.version = ?)`,
				r.Version, r.Version)
		}
	}
	return nil
}

// Rollouts returns all rollouts, the newest first.
func (db *DB) Rollouts(ctx context.Context) ([]rollout.Rollout, error) {
	return list(ctx, db.read(), into(rolloutFields), `SELECT `+rolloutColumns+` FROM agent_rollouts o ORDER BY o.began_at DESC, o.version`)
}

// BeginRollout implements rollout.Store.
func (db *DB) BeginRollout(ctx context.Context, version string, goal int) (rollout.Rollout, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (r rollout.Rollout, err error) {
		if !t.holds(ctx, `SELECT version FROM agent_releases WHERE version = ? LIMIT 1`, version) {
			return r, fault.New(fault.NotFound, "there is no release %q: `muster agent list` shows those there are, `muster agent release "+
				"FILE` adds one", version)
		}
		now := db.now()
		r = rollout.Rollout{Version: version, Upto: -1, BeganAt: now}
		for _, other := range listed(ctx, t, into(rolloutFields),
			`SELECT `+rolloutColumns+` FROM agent_rollouts o ORDER BY o.version`+t.lock()) {
			switch {
			case other.Version == version:
				r = other
			case other.State != rollout.Done:
				t.do(ctx, `UPDATE agent_rollouts SET state = ? WHERE version = ?`, string(rollout.Ended), other.Version)
			}
		}
		if goal == 0 {
			goal = cmp.Or(r.Goal, 100)
		}
		if goal < r.Ring {
			return r, fault.New(fault.Refused, "the rollout of %s is at %d percent: name as many or more, or pause it", version, r.Ring)
		}
		if r.State == rollout.Paused || r.State == rollout.Ended {
			r.ResumedAt = now
		}
		if r.State != rollout.Done || goal > r.Goal {
			r.State = rollout.Running
		}
		r.Reason, r.Goal, r.WatchedFrom, r.WatchedAt = "", goal, now, now
		t.check(db.recordRollout(ctx, t, "", fmt.Sprintf("%s to %d percent", version, goal)))
		return r, t.Exec(ctx,
			`INSERT INTO agent_rollouts (version, state, reason, goal, ring, upto, began_at, ring_at, resumed_at, watched_from, watched_at)
			VALUES (`+marks(11)+
				`) ON CONFLICT (version) DO UPDATE SET state = excluded.state, reason = excluded.reason, goal = excluded.goal,
			resumed_at = excluded.resumed_at, watched_from = excluded.watched_from, watched_at = excluded.watched_at`, r.Version,
			string(r.State), r.Reason, int64(r.Goal), int64(r.Ring), r.Upto, millis(r.BeganAt), millis(r.RingAt), millis(r.ResumedAt),
			millis(r.WatchedFrom), millis(r.WatchedAt))
	})
}

// PauseRollouts implements rollout.Store.
func (db *DB) PauseRollouts(ctx context.Context) (int, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (int, error) { return db.pauseRollouts(ctx, t, rollout.ByOperator) })
}

// pauseRollouts pauses all that offer their version, for a reason, and returns how many.
func (db *DB) pauseRollouts(ctx context.Context, t *tx, reason string) (int, error) {
	n := t.count(ctx, `UPDATE agent_rollouts SET state = ?, reason = ? WHERE state IN ('RUNNING', 'DONE')`, string(rollout.Paused), reason)
	if n == 0 {
		return 0, nil
	}
	return int(n), db.recordRollout(ctx, t, "", "")
}

// recordRollout records in the log of each company with agents that a rollout began, that one was paused, or, both empty, that
// all were.
func (db *DB) recordRollout(ctx context.Context, t *tx, paused, begun string) error {
	companies, err := listCompanies(ctx, t)
	t.check(err)
	for _, c := range companies {
		if t.holds(ctx, `SELECT id FROM agent_devices WHERE company_id = ? AND state = '`+string(agentdevice.Active)+
			`' AND role = 'manager' LIMIT 1`, c.ID) {
			t.check(db.recordOf(ctx, t, c, activity.CompanyChanged, activity.Change{Field: "agentRollout", Before: paused, After: begun}))
		}
	}
	return nil
}

// MoveRollout implements rollout.Store.
func (db *DB) MoveRollout(ctx context.Context, was, is rollout.Rollout) (bool, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
		n := t.count(ctx,
			`UPDATE agent_rollouts SET state = ?, reason = ?, ring = ?, upto = ?, ring_at = ?, watched_from = ?, watched_at = ?
			WHERE version = ? AND state = ? AND goal = ? AND ring = ? AND watched_at = ? AND resumed_at = ?`,
			string(is.State), is.Reason, int64(is.Ring), is.Upto, millis(is.RingAt), millis(is.WatchedFrom), millis(is.WatchedAt),
			was.Version, string(was.State), int64(was.Goal), int64(was.Ring), millis(was.WatchedAt), millis(was.ResumedAt))
		if n == 0 || is.State == was.State || is.State != rollout.Paused {
			return n == 1, nil
		}
		return true, db.recordRollout(ctx, t, is.Version, "")
	})
}

// memberPage is how many devices one statement reads.
const memberPage = 1000

// heldBack: the company of a device, as d, has its updates paused or is stopped.
const heldBack = `(EXISTS (SELECT 1 FROM agent_pauses h WHERE h.company_id = d.company_id)
	OR EXISTS (SELECT 1 FROM companies c WHERE c.id = d.company_id AND c.stopped_at > 0))`

// Members implements rollout.Store. The device's order is that of its id.
func (db *DB) Members(ctx context.Context, version string, show func(rollout.Member)) error {
	for after := ""; ; {
		page, err := list(ctx, db.read(), into(func(m *rollout.Member) []any {
			return []any{&m.DeviceID, &m.CompanyID, &m.CompanySlug, &m.AssetID, &m.Package, &m.Code, at(&m.SeenAt), &m.Held,
				&m.Outcome, &m.Detail,
				&m.Daily, at(&m.BeganAt), at(&m.EndedAt)}
		}),
			`SELECT d.id, d.company_id, COALESCE((SELECT c.slug FROM companies c WHERE c.id = d.company_id), ''), d.asset_id, d.agent_package, d.agent_code,
				d.seen_at, `+heldBack+
				`, COALESCE(u.state, ''), COALESCE(u.detail, ''), COALESCE(u.daily, FALSE), COALESCE(u.began_at, 0), COALESCE(u.ended_at, 0)
			FROM agent_devices d LEFT JOIN agent_updates u ON u.device_id = d.id AND u.version = ?
			WHERE d.id > ? AND d.state = '`+string(agentdevice.Active)+`' AND d.role = 'manager' AND d.agent_package <> ''
			AND (u.began_at > 0 OR d.agent_package IN (SELECT r.package FROM agent_releases r WHERE r.version = ?))
			ORDER BY d.id LIMIT ?`, version, after, version, memberPage)
		if err != nil {
			return err
		}
		for _, m := range page {
			show(m)
			after = m.DeviceID
		}
		if len(page) < memberPage {
			return nil
		}
	}
}
