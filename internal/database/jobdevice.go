package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
)

// TakeDevices implements job.Queue.
func (db *DB) TakeDevices(ctx context.Context, j job.Job, n int, next, now time.Time) ([]job.Taken, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) ([]job.Taken, error) {
		if t.count(ctx, `UPDATE jobs SET next_at = ? WHERE id = ? AND status = 'RUNNING' AND next_at = ?`, millis(next),
			j.ID, millis(j.NextAt)) == 0 {
			return nil, nil
		}
		taken := listed(ctx, t, into(func(d *job.Taken) []any { return []any{&d.N, &d.AssetID} }),
			`SELECT n, asset_id FROM job_devices WHERE job_id = ? AND state = 'WAITING' ORDER BY n LIMIT ?`, j.ID, n)
		if len(taken) == 0 {
			return nil, db.endJob(ctx, t, j)
		}
		for i := range taken {
			taken[i].JobID, taken[i].At = j.ID, now
			t.do(ctx, `UPDATE job_devices SET state = 'IN_PROGRESS', taken_at = ? WHERE job_id = ? AND n = ?`,
				millis(now), j.ID, taken[i].N)
		}
		t.changed(j.CompanyID, "job", j.ID)
		return taken, nil
	})
}

// endJob ends a job of which no device is under way.
func (db *DB) endJob(ctx context.Context, t *tx, j job.Job) error {
	if t.holds(ctx, `SELECT job_id FROM job_devices WHERE job_id = ? AND state = 'IN_PROGRESS' LIMIT 1`, j.ID) {
		return nil
	}
	_, err := db.moveJob(ctx, t, j, job.Done, "")
	return err
}

// changedByJob is that a job changed the asset of its device. A job does that once.
const changedByJob = `EXISTS (SELECT 1 FROM jobs j JOIN activity e ON e.company_id = j.company_id AND e.target_id = job_devices.asset_id
	AND e.at >= j.created_at AND e.request_id = 'job/' || j.id AND e.action = '` + string(activity.AssetChanged) +
	`' WHERE j.id = job_devices.job_id)`

// StillTaken implements job.Queue.
func (db *DB) StillTaken(ctx context.Context, d job.Taken) error {
	still, err := holds(ctx, db.read(),
		`SELECT job_id FROM job_devices WHERE job_id = ? AND n = ? AND state = 'IN_PROGRESS' AND taken_at = ?`, d.JobID, d.N, millis(d.At))
	if err == nil && !still {
		err = fault.New(fault.Unsupported, "the device was taken from the job too long ago")
	}
	return err
}

// SettleDevice implements job.Queue. What was given to another taker since is that one's, who
// may be refused what the first has done after that.
func (db *DB) SettleDevice(ctx context.Context, d job.Taken, status, outcome string) error {
	const settle = `UPDATE job_devices SET state = ?, outcome = ? WHERE job_id = ? AND n = ? AND state = 'IN_PROGRESS' AND taken_at = ?`
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if status == job.DeviceError {
			t.do(ctx, settle+` AND `+changedByJob, job.DeviceSuccess, "", d.JobID, d.N, millis(d.At))
		}
		return t.Exec(ctx, settle, status, outcome, d.JobID, d.N, millis(d.At))
	})
}

// leftAlone is that a device was taken before a time, or while the clock was ahead.
const leftAlone = `state = 'IN_PROGRESS' AND (taken_at < ? OR taken_at > ? AND ` + notBehind + `)`

// LookAfter implements job.Queue.
func (db *DB) LookAfter(ctx context.Context, before time.Time) error {
	now := db.now()
	args := []any{millis(before), latest(now), agedMost(now)}
	left, err := holds(ctx, db.read(), `SELECT job_id FROM job_devices WHERE `+leftAlone+` LIMIT 1`, args...)
	if err != nil || !left {
		return err
	}
	return db.exec(ctx, `UPDATE job_devices SET state = COALESCE((SELECT CASE m.state WHEN 'ERROR' THEN 'ERROR' ELSE 'SUCCESS' END
			FROM commands m
			WHERE m.idempotency_ref = 'job:' || job_devices.job_id || ':' || job_devices.asset_id AND m.idempotency_ref <> ''),
		CASE WHEN `+changedByJob+` THEN 'SUCCESS' ELSE 'WAITING' END) WHERE `+leftAlone, args...)
}

// hadItsTurn is the outcome of an asset of a job whose device is that of another, which was sent to.
const hadItsTurn = "not done: the device had its turn as the asset that was merged into this one"

// mergeJobs keeps open jobs from sending once more to the device of the other asset as that of the
// kept one, or of one that it is merged into later. Who took either asset before, and stood still
// since, asks again whether it is theirs.
func mergeJobs(ctx context.Context, t *tx, kept, other lockedAsset) {
	for _, j := range openJobs(ctx, t, kept.companyID) {
		t.raises(kept.companyID)
		if j.Sends() {
			t.check(mergeInJob(ctx, t, j, kept.id, other.id))
		}
	}
}

// hadTurn is that a device of a job was sent to, or may be; its parameter is the company. A process
// that stood still sends also after the device was given back, until another takes it.
func hadTurn(devices string) string {
	return `(` + devices + `.state <> 'WAITING' OR EXISTS (SELECT 1 FROM commands m
		WHERE m.company_id = ? AND m.idempotency_ref = 'job:' || ` + devices + `.job_id || ':' || ` +
		devices + `.asset_id AND m.idempotency_ref <> ''))`
}

func mergeInJob(ctx context.Context, t *tx, j job.Job, keptID, otherID string) error {
	turn, both, err := maybe(one(ctx, t, into(func(r *job.Result) []any { return []any{&r.N, &r.Status} }),
		`SELECT k.n, k.state FROM job_devices k JOIN job_devices o ON o.job_id = k.job_id
		WHERE k.job_id = ? AND k.asset_id = ? AND k.state IN ('WAITING', 'IN_PROGRESS')
		AND (o.asset_id = ? OR o.merged_into = ?) AND `+hadTurn("o")+` LIMIT 1`, j.ID, keptID, otherID, otherID, j.CompanyID))
	switch {
	case err != nil:
		return err
	case both && turn.Status == job.DeviceTaken:
		return fault.New(fault.Refused, "a job is sending to the asset that is kept: merge them when that has ended")
	case both:
		t.changed(j.CompanyID, "job", j.ID)
		t.do(ctx, `UPDATE job_devices SET state = ?, outcome = ? WHERE job_id = ? AND n = ?`, job.DeviceError, hadItsTurn,
			j.ID, turn.N)
	}
	return t.Exec(ctx, `UPDATE job_devices SET merged_into = CASE WHEN merged_into = ? THEN '' ELSE ? END
		WHERE job_id = ? AND (merged_into IN (?, ?) OR asset_id = ? AND merged_into = '') AND `+hadTurn("job_devices"),
		keptID, keptID, j.ID, keptID, otherID, otherID, j.CompanyID) // the device that the kept asset had is superseded
}
