package database_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/rollout"
)

// restoredState is what the tests of this file look at after a restore.
type restoredState struct {
	*fixture
	runs, later job.Job
	waits       proposal.Proposal
	allowed     asset.Asset // a person authorized a wipe of it
	approver    account.User
	sent        *sender
}

// beforeBackup has a job that runs, one that waits for its time, a proposal, a control that
// waits to be loosened, and an authorization that was not used.
func (f *fixture) beforeBackup() restoredState {
	f.fleetOf(6)
	f.setLimit(5, 60)
	f.controls(f.person("thief", true), limitTo(200))
	s := restoredState{fixture: f, sent: &sender{sent: map[string]int{}}}
	r := f.jobReplica(f.db, s.sent, nil)
	_, p := f.jobMaker()
	create := func(at time.Time) job.Job {
		j, err := r.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, At: at})
		f.ok(err)
		return j
	}
	s.runs, s.later = create(time.Time{}), create(f.clock.Now().Add(time.Hour))
	s.runs = f.goOn(s.runs, 2, r)
	equal(f, "before the backup", f.jobCounts(s.runs), "WAITING 3, SUCCESS 3")
	s.waits = f.mustPropose(f.newPolicy("Waits"), access.ApproveAll, func(*proposal.Proposal) {})
	f.destructiveApproval()
	s.allowed = f.enroll("allowed", "")
	asked := f.refusal(f.db, f.asking(s.allowed, command.WipeCompanyData, "d1")).ID
	s.approver = f.person("approver", true)
	f.approve(asked, s.approver)
	f.ok(f.db.MailSent(f.Context(), f.company.ID, s.approver.ID, []string{asked}, 0, f.clock.Now()))
	f.served()
	return s
}

// served gives events their positions, as a service does that runs.
func (f *fixture) served() {
	f.Helper()
	f.enroll("of the time before", "")
	if n, err := f.db.NumberRound(f.Context()); err != nil || n == 0 {
		f.Fatal(n, err)
	}
}

// goesOn looks at what a service does with the restored database by itself, and after
// the job was resumed.
func (s restoredState) goesOn(db *database.DB) {
	s.db = db
	s.ok(db.BeginHistory(s.Context()))
	s.ok(db.BeginHistory(s.Context())) // of another replica
	waited, err := db.Proposal(s.Context(), s.company.ID, s.waits.ID)
	s.ok(err)
	equal(s, "the proposal that waited", waited.Status, proposal.Expired)
	equal(s, "the call that was authorized", s.refusal(db, s.asking(s.allowed, command.WipeCompanyData, "d1")).Verdict, approval.Waits)
	equal(s, "mailed of it", len(s.recipient(s.approver).Mailed), 0)
	s.clock.Advance(25 * time.Hour)
	s.ok(db.ApplyLoosenings(s.Context()))
	equal(s, "limit", s.now().Controls.DestructiveLimit.Devices, 5)
	equal(s, "canceled loosenings", s.recorded(activity.LooseningCanceled), 1)
	r := s.jobReplica(db, s.sent, nil)
	for _, j := range []job.Job{s.runs, s.later} {
		j = s.goOn(j, 12, r)
		equal(s, "status", j.Status, job.Paused)
		equal(s, "why", j.Why, "the database was restored or copied: devices may have got the command since")
	}
	equal(s, "recorded pauses", s.recorded(activity.JobPaused), 2)
	_, devices := s.sent.most()
	equal(s, "devices that were sent to", devices, 3)
	_, err = db.MoveJob(access.WithActor(s.Context(), access.ServiceActor(), ""), s.company.ID, s.later.ID, job.Running, "")
	s.ok(err)
	equal(s, "resumed", s.goOn(s.later, 12, r).Status, job.Done)
}

// A new database has nothing to hold up: what people prepared before the first start goes on.
func TestBeginHistory_NewDatabase(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(5, 60)
		f.controls(f.person("ada", true), limitTo(200))
		f.ok(f.db.BeginHistory(f.Context()))
		waiting, err := f.db.Loosenings(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "waiting", len(waiting), 1)
	})
}

func TestBeginHistory_HoldsUpWhatABackupBringsBack(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	s := r.beforeBackup()
	r.backup += ".open"
	r.ok(r.db.Backup(t.Context(), r.backup))
	r.ok(r.db.Close())
	_, err := r.restore()
	r.ok(err)
	db := r.openOnce()
	s.goesOn(db)
	r.ok(db.Close())
}

// On both engines, a database without a history counts as restored.
func TestBeginHistory_WithoutOne(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.BeginHistory(f.Context()))
		s := f.beforeBackup()
		f.ok(f.db.BeginHistory(f.Context()))
		s.runs = f.goOn(s.runs, 0)
		equal(f, "with a history", s.runs.Status, job.Running)
		f.tamper(`DELETE FROM event_history`)
		s.goesOn(f.open(f.T))
	})
}

// A backup from before events has no history that a restore could end: the restore of the file
// is known by its number, that of PostgreSQL by what docs/how-to/recovery.md prescribes.
func TestBeginHistory_RestoredFromBeforeEvents(t *testing.T) {
	const statement = `INSERT INTO event_heads (company_id, last) SELECT id, 0 FROM companies`
	text, err := os.ReadFile("../../docs/how-to/recovery.md")
	if err != nil || !strings.Contains(string(text), statement) {
		t.Errorf("docs/how-to/recovery.md does not prescribe %q: %v", statement, err)
	}
	rows := append(slices.Clone(firstRows), `INSERT INTO loosenings (id, company_id, control, value_before, value_after, asked_by,
		asked_by_name, asked_at, effective_at) VALUES ('l1', 'c1', 'apply-approval', 'all', 'none', 'u1', 'Ada', 1, 4000000000000)`)
	for _, restored := range []bool{false, true} {
		for _, engine := range []string{"sqlite", "postgres"} {
			e := emptyEngine(t, engine)
			f := &fixture{T: t, engine: e}
			f.ok(database.MigrateTo(t.Context(), e.url, 320, rows...))
			if restored && e.name == "sqlite" {
				path := filepath.Join(t.TempDir(), "muster.db")
				prepared, err := database.PrepareRestore(t.Context(), path, strings.TrimPrefix(e.url, "sqlite:"))
				f.ok(err)
				_, err = prepared.Commit(t.Context(), f.clock.Now())
				f.ok(err)
				e.url = "sqlite:" + path
			}
			f.db = e.openAs(t, database.Upgrade)
			if restored && e.name != "sqlite" {
				f.tamper(statement)
			}
			f.ok(f.db.BeginHistory(t.Context()))
			waiting, err := f.db.Loosenings(t.Context(), "c1")
			f.ok(err)
			equal(f, fmt.Sprint(engine, ": goes on by itself, restored: ", restored), len(waiting) == 1, !restored)
		}
	}
}

// What a key or a connection sent to erase or to release a device, and what no agent was offered,
// is not carried out after a restore: a stop may have canceled it since. The rest goes on.
func TestBeginHistory_CancelsEndingsByAutomation(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.BeginHistory(f.Context()))
		kiosk := f.agentPolicy("Kiosk")
		offer := func(id string) int {
			d, err := f.db.AgentDevice(f.Context(), id)
			f.ok(err)
			got, err := f.db.Offer(f.Context(), d, f.clock.Now().Add(time.Minute), 5)
			f.ok(err)
			return len(got)
		}
		const pending, released, active = agentdevice.WipePending, agentdevice.RelinquishPending, agentdevice.Active
		tests := []struct {
			by           access.Kind
			kind         command.Type
			brings       agentdevice.State
			offered      bool
			state        agentdevice.State
			device, sent string
		}{
			{by: access.APIKey, kind: command.WipeCompanyData, brings: pending, state: active},
			{by: access.Connection, kind: command.RelinquishOwnership, brings: released, state: active},
			{by: access.APIKey, kind: command.WipeCompanyData, brings: pending, offered: true, state: pending},
			{by: access.User, kind: command.WipeCompanyData, brings: pending, state: pending},
			{by: access.APIKey, kind: command.Reboot, state: active},
		}
		for i := range tests {
			c := &tests[i]
			d, err := f.enrollAgent(kiosk, fmt.Sprint("SN-", i))
			f.ok(err)
			intent := f.intent(f.asset(d.AssetID), c.kind)
			intent.State, intent.Ref, intent.Actor.Kind = command.Sent, "agent/"+d.ID+"/"+intent.ID, c.by
			_, _, err = f.db.Begin(f.Context(), intent, &agentdevice.Delivery{CommandID: intent.ID, DeviceID: d.ID, Type: string(c.kind),
				Args: []byte(`{}`), CreatedAt: intent.CreatedAt, Brings: c.brings})
			f.ok(err)
			if c.device, c.sent = d.ID, intent.ID; c.offered {
				equal(f, "offered before the backup", offer(d.ID), 1)
			}
		}
		f.served()
		f.tamper(`DELETE FROM event_history`)
		f.ok(f.db.BeginHistory(f.Context()))
		for _, c := range tests {
			what := fmt.Sprint(c.by, " ", c.kind, ", offered: ", c.offered)
			canceled := c.state == active && c.brings != ""
			want, outcome, open := command.Sent, "", 1
			if canceled {
				want, open = command.Failed, 0
				outcome = "cancelled: the database was restored or copied: send it again if it is still wanted"
			}
			now, err := f.db.AgentDevice(f.Context(), c.device)
			f.ok(err)
			equal(f, what+": device", now.State, c.state)
			equal(f, what+": open", now.Open, open)
			equal(f, what+": offered", offer(c.device), open)
			equal(f, what+": command", f.command(c.sent).State, want)
			equal(f, what+": outcome", f.command(c.sent).Outcome, outcome)
		}
		failed := 0
		for _, e := range f.reader(f.db, all()).rest(f) {
			if e.Type == event.CommandFailed {
				failed++
			}
		}
		equal(f, "events", failed, 2)
		equal(f, "wait for a person", len(f.waits()), 1) // the wipe
	})
}

// After a restore no version of the agent is offered until the operator lets it go on: each rollout may
// have been paused or ended since. One that the operator had paused keeps its reason.
func TestBeginHistory_PausesRollouts(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.BeginHistory(f.Context()))
		devices := f.agents(1)
		begin := func(version string) {
			_, err := f.db.BeginRollout(f.Context(), version, 100)
			f.ok(err)
		}
		for i, version := range []string{"2.0", "3.0", "4.0"} {
			f.release(version, int64(i+2), 10)
			begin(version)
		}
		f.served()
		f.tamper(`UPDATE agent_rollouts SET state = 'RUNNING', ring = 100, upto = 9223372036854775807;
			UPDATE agent_rollouts SET state = 'DONE' WHERE version = '3.0';
			UPDATE agent_rollouts SET state = 'PAUSED', reason = 'by the operator' WHERE version = '2.0';
			DELETE FROM event_history`)
		f.clock.Advance(time.Second)
		f.ok(f.db.BeginHistory(f.Context()))
		equal(f, "recorded", f.companyChanges(f.company.ID)[0], "Muster paused the rollouts of the agent to all companies")
		const why = "the database was restored or copied: the rollout may have been paused or ended since"
		for version, reason := range map[string]string{"2.0": rollout.ByOperator, "3.0": why, "4.0": why} {
			r := f.rollout(version)
			equal(f, version, fmt.Sprint(r.State, " ", r.Reason), "PAUSED "+reason)
			equal(f, version+": alarm", r.PausedItself(), reason == why)
		}
		equal(f, "offered", f.checkIn(f.db, &devices[0]), false)
		begin("4.0")
		equal(f, "resumed", f.rollout("4.0").State, rollout.Running)
		equal(f, "offered when resumed", f.checkIn(f.db, &devices[0]), true)
	})
}

// After a restore the platform gets each policy again, and an agent's policy has a version
// that none since the backup had, whatever was saved again since.
func TestBeginHistory_RenewsPolicies(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.BeginHistory(f.Context()))
		vendors, agents := f.newPolicy("Vendor"), f.agentPolicy("Agents").ID
		f.ok(f.db.SetPushed(f.Context(), vendors.ID, 1, 7, f.clock.Now()))
		kept, err := f.db.Policy(f.Context(), f.company.ID, agents)
		f.ok(err)
		f.served()
		due := func() []policy.Policy {
			all, err := f.db.PoliciesToPush(f.Context(), f.company.ID, f.clock.Now(), 10)
			f.ok(err)
			return all
		}
		equal(f, "to push before", len(due()), 0)
		highest := kept.Version
		for range 3 { // the same backup is restored again and again, and saved five times in ten seconds
			f.clock.Advance(10 * time.Second)
			highest += 5
			f.tamper(`DELETE FROM event_history; UPDATE policies SET version = 1 WHERE type = 'AGENT';
				UPDATE policy_revisions SET version = 1 WHERE version > 1`)
			f.ok(f.db.BeginHistory(f.Context()))
			now, err := f.db.Policy(f.Context(), f.company.ID, agents)
			f.ok(err)
			if now.Version <= highest {
				f.Errorf("after the restore the version is %d; one of before may be %d", now.Version, highest)
			}
			highest = now.Version
			last, err := f.db.Revision(f.Context(), f.company.ID, agents, 1)
			f.ok(err)
			equal(f, "version of the revision", last.Version, now.Version)
		}
		equal(f, "to push", len(due()), 1)
	})
}
