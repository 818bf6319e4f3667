package database

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
)

const jobColumns = `id, company_id, command, arguments, filter, maker_kind, maker_id, maker_name, reason, ticket, status, why, rate, total,
	created_at, starts_at, next_at, ended_at`

func jobFields(j *job.Job) []any {
	return []any{&j.ID, &j.CompanyID, &j.Command, asText(&j.Arguments), &j.Filter, &j.Maker.Kind, &j.Maker.ID, &j.Maker.Name,
		&j.Note.Reason, &j.Note.Ticket,
		&j.Status, &j.Why, &j.Rate, &j.Total, at(&j.CreatedAt), at(&j.StartsAt), at(&j.NextAt), at(&j.EndedAt)}
}

// jobRows is how many devices of a job one statement inserts.
const jobRows = 500

// CreateJob implements job.Store.
func (db *DB) CreateJob(ctx context.Context, j job.Job, assets []string) (job.Job, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (job.Job, error) {
		t.check(holdCompany(ctx, t, j.CompanyID))
		if known, there, err := maybe(one(ctx, t, into(jobFields), `SELECT `+jobColumns+` FROM jobs WHERE id = ? AND company_id = ?`, j.ID,
			j.CompanyID)); err != nil || there {
			return known, err
		}
		open := valueIn[int](ctx, t, `SELECT COUNT(*) FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED')`, j.CompanyID)
		if open >= job.MaxOpen {
			return j, fault.New(fault.Refused, "the company has %d jobs that have not ended: wait for one, or cancel it", open)
		}
		if j.Maker.Kind == access.User {
			theirs := valueIn[int](ctx, t, `SELECT COUNT(*) FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED')
				AND maker_kind = ? AND maker_id = ?`, j.CompanyID, string(access.User), j.Maker.ID)
			if theirs >= job.MaxOpenOfUser {
				return j, fault.New(fault.Refused, "you have %d jobs that have not ended, and a user may have at most %d: "+
					"wait for one, or cancel it", theirs, job.MaxOpenOfUser)
			}
		}
		t.check(policyOfJob(ctx, t, j))
		t.check(t.Insert(ctx, "jobs", jobColumns, jobFields(&j)))
		n := 0
		for some := range slices.Chunk(assets, jobRows) {
			args := make([]any, 0, 3*len(some))
			for _, id := range some {
				args = append(args, j.ID, n, id)
				n++
			}
			t.do(ctx, `INSERT INTO job_devices (job_id, n, asset_id, state, taken_at, outcome) VALUES `+
				strings.TrimSuffix(strings.Repeat(`(?, ?, ?, 'WAITING', 0, ''), `, len(some)), ", "), args...)
		}
		return j, db.recordJob(ctx, t, j, activity.JobCreated, activity.Change{Field: "command", After: j.Command},
			activity.Change{Field: "filter", After: j.Filter},
			activity.Change{Field: "devices", After: strconv.Itoa(j.Total)},
			activity.Change{Field: "startsAt", After: j.StartsAt.UTC().Format(time.RFC3339)})
	})
}

// policyOfJob fails with fault.Refused if a job moves devices to a policy that is not there. The
// company is locked, as it is where a policy is deleted: see unmoved.
func policyOfJob(ctx context.Context, t *tx, j job.Job) error {
	owner, err := findCompany(ctx, t, `c.id = ?`, j.CompanyID)
	id, moves := j.MovesTo(owner.Slug)
	if err != nil || !moves {
		return err
	}
	if !t.holds(ctx, `SELECT id FROM policies WHERE id = ? AND company_id = ? AND NOT deleted`, id, j.CompanyID) {
		return job.NoPolicy()
	}
	return nil
}

// unmoved is fault.Refused while a job that has not ended moves devices to a policy: it would fail
// at each device that is left. The company is locked.
func unmoved(ctx context.Context, t *tx, companyID, policyID string) error {
	owner, err := findCompany(ctx, t, `c.id = ?`, companyID)
	t.check(err)
	for _, j := range listed(ctx, t, into(jobFields),
		`SELECT `+jobColumns+` FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED')`, companyID) {
		if to, _ := j.MovesTo(owner.Slug); to == policyID {
			return fault.New(fault.Refused, "the job “%s” (%s), which has not ended, moves devices to the policy: wait for it, "+
				"or cancel it", j.Title(), j.ID)
		}
	}
	return nil
}

// recordJob records a step of a job, and hints to the pages that show it.
func (db *DB) recordJob(ctx context.Context, t *tx, j job.Job, action activity.Action, changes ...activity.Change) error {
	t.changed(j.CompanyID, "job", j.ID)
	return db.record(ctx, t, j.CompanyID, activity.Event{Action: action, Reference: j.ID, Changes: changes,
		Target: activity.Target{Kind: activity.Job, ID: j.ID, Name: j.Title()}})
}

// Jobs implements job.Store.
func (db *DB) Jobs(ctx context.Context, companyID, makerID string, limit int) ([]job.Job, error) {
	where, args := `company_id = ?`, []any{companyID}
	if makerID != "" {
		where, args = where+` AND maker_id = ?`, append(args, makerID)
	}
	return list(ctx, db.read(), into(jobFields),
		`SELECT `+jobColumns+` FROM jobs WHERE `+where+`
		ORDER BY status IN ('RUNNING', 'PAUSED') DESC, created_at DESC, id DESC LIMIT ?`, append(args, limit)...)
}

// Job implements job.Store.
func (db *DB) Job(ctx context.Context, companyID, id string) (job.Job, error) {
	return find(ctx, db.read(), "job", into(jobFields), `SELECT `+jobColumns+` FROM jobs WHERE id = ? AND company_id = ?`, id, companyID)
}

// jobDevices are the devices, d, of jobs, j, with the command, m, of each once there is one.
const jobDevices = ` FROM jobs j JOIN job_devices d ON d.job_id = j.id
	LEFT JOIN commands m ON m.idempotency_ref = 'job:' || d.job_id || ':' || d.asset_id AND m.idempotency_ref <> ''`

// jobResult is the status of one of these that people see.
const jobResult = `CASE WHEN COALESCE(m.state, d.state) IN ('PREPARED', 'SENT') THEN 'IN_PROGRESS'
	WHEN m.state IS NULL AND d.state = 'WAITING' AND j.status = 'CANCELED' THEN 'CANCELED' ELSE COALESCE(m.state, d.state) END`

// JobResults implements job.Store.
func (db *DB) JobResults(ctx context.Context, companyID, id, status string, from, limit int) ([]job.Result, error) {
	return list(ctx, db.read(), into(func(r *job.Result) []any {
		return []any{&r.N, &r.AssetID, &r.Name, &r.Status, &r.Outcome}
	}), `SELECT d.n, d.asset_id, COALESCE(a.identification, ''), `+jobResult+`, COALESCE(NULLIF(m.outcome, ''), d.outcome)`+jobDevices+`
		LEFT JOIN assets a ON a.id = d.asset_id WHERE j.company_id = ? AND j.id = ? AND d.n >= ? AND (? = '' OR `+jobResult+` = ?)
		ORDER BY d.n LIMIT ?`, companyID, id, from, status, status, limit)
}

// JobAssets implements job.Store.
func (db *DB) JobAssets(ctx context.Context, companyID, id, status string, policies []string) ([]string, error) {
	only, args := ofPolicies(`a.policy_id`, policies)
	return list(ctx, db.read(), scanValue[string],
		`SELECT a.id`+jobDevices+` JOIN assets a ON a.id = d.asset_id AND a.company_id = j.company_id
		WHERE j.company_id = ? AND j.id = ? AND `+jobResult+` = ? AND a.status <> '`+string(archived)+`'`+only+` ORDER BY d.n`,
		append([]any{companyID, id, status}, args...)...)
}

// JobCounts implements job.Store.
func (db *DB) JobCounts(ctx context.Context, companyID, id string) (map[string]int, error) {
	return mapped[string, int](ctx, db.read(), `SELECT status, COUNT(*) FROM (SELECT `+jobResult+` AS status`+jobDevices+`
		WHERE j.company_id = ? AND j.id = ?) r GROUP BY status`, companyID, id)
}

// JobFailures implements job.Store.
func (db *DB) JobFailures(ctx context.Context, companyID string, ids []string) (map[string]int, error) {
	if len(ids) == 0 {
		return map[string]int{}, nil
	}
	return mapped[string, int](ctx, db.read(), `SELECT d.job_id, COUNT(*)`+jobDevices+`
		WHERE j.company_id = ? AND j.id IN (`+marks(len(ids))+`) AND `+jobResult+` IN ('ERROR', 'UNCONFIRMED') GROUP BY d.job_id`,
		append([]any{companyID}, anys(ids)...)...)
}

// MoveJob implements job.Store.
func (db *DB) MoveJob(ctx context.Context, companyID, id string, to job.Status, why string) (job.Job, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (job.Job, error) {
		owner, err := findCompany(ctx, t, `c.id = ?`+t.hold(), companyID)
		t.check(err)
		j, err := find(ctx, t, "job", into(jobFields), `SELECT `+jobColumns+` FROM jobs WHERE id = ? AND company_id = ?`+t.lock(), id,
			companyID)
		switch {
		case err != nil:
			return j, err
		case !j.Status.Open() || j.Status == to:
			return j, fault.New(fault.Unsupported, "the job is %s", strings.ToLower(string(j.Status)))
		case to == job.Running && owner.Settings.Stop.On():
			return j, fault.New(fault.Refused, "automation is stopped: %s. Resume it first, then the job", owner.Settings.Stop.Reason)
		}
		return db.moveJob(ctx, t, j, to, why)
	})
}

// moveJob moves a locked job and records it.
func (db *DB) moveJob(ctx context.Context, t *tx, j job.Job, to job.Status, why string) (job.Job, error) {
	now := db.now()
	j.Status, j.Why = to, why
	action := map[job.Status]activity.Action{job.Paused: activity.JobPaused, job.Running: activity.JobResumed,
		job.Canceled: activity.JobCanceled, job.Done: activity.JobEnded}[to]
	switch to {
	case job.Running:
		j.NextAt = slices.MaxFunc([]time.Time{now, j.StartsAt}, time.Time.Compare)
	case job.Canceled, job.Done:
		j.EndedAt = now
	default: // a job that pauses keeps its times
	}
	t.do(ctx, `UPDATE jobs SET status = ?, why = ?, next_at = ?, ended_at = ? WHERE id = ?`, string(j.Status), why,
		millis(j.NextAt), millis(j.EndedAt), j.ID)
	t.changed(j.CompanyID, attentionHint, "")
	t.check(mailAgain(ctx, t, j.CompanyID, j.ID))
	return j, db.recordJob(ctx, t, j, action, activity.Differences(activity.Change{Field: "why", After: why})...)
}

// openJobs locks the jobs of a company that have not ended, so that no device of theirs is taken.
func openJobs(ctx context.Context, t *tx, companyID string) []job.Job {
	return listed(ctx, t, into(jobFields),
		`SELECT `+jobColumns+` FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED') ORDER BY id`+t.lock(), companyID)
}

// pauseJobs pauses the running jobs of a company that is stopped.
func (db *DB) pauseJobs(ctx context.Context, t *tx, companyID string, stop access.Stop) {
	for _, j := range openJobs(ctx, t, companyID) {
		if j.Status == job.Running {
			_, err := db.moveJob(ctx, t, j, job.Paused, "automation was stopped: "+stop.Reason)
			t.check(err)
		}
	}
}

// DueJobs implements job.Queue. The next device is due within a minute of the last one, or
// at the start: a later time was noted while the clock was ahead.
func (db *DB) DueJobs(ctx context.Context, now time.Time) ([]job.Job, error) {
	return list(ctx, db.read(), into(jobFields), `SELECT `+jobColumns+` FROM jobs WHERE status = 'RUNNING'
		AND (next_at <= ? OR next_at > ? AND (next_at > starts_at OR starts_at <= created_at)) ORDER BY next_at, id LIMIT 100`,
		millis(now), latest(now.Add(time.Minute)))
}

// JobMaker implements job.Queue.
func (db *DB) JobMaker(ctx context.Context, j job.Job) (access.Principal, error) {
	p, err := find(ctx, db.read(), "company", into(callersFields), `SELECT `+callersColumns+` FROM companies c WHERE c.id = ?`, j.CompanyID)
	if err != nil {
		return p, err
	}
	p.Kind, p.ID, p.Name, p.CompanyID, p.Permissions = access.System, j.Maker.ID, j.Maker.Name, j.CompanyID, access.All
	if j.Maker.Kind == access.User {
		u, err := findUser(ctx, db.read(), `u.id = ? AND u.company_id = ? AND NOT u.disabled`, j.Maker.ID, j.CompanyID)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.Forbidden, "its maker, %s, has no account any more, or a disabled one",
				cmp.Or(j.Maker.Name, "a person"))
		}
		if err != nil {
			return p, err
		}
		version := p.Version
		p = u.Principal(p.CompanySlug, p.Settings)
		p.Version = version
	}
	return p, nil
}
