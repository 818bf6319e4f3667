package database_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/signature"
)

// jump is how far the clock is ahead for a moment in these tests.
const jump = 300 * 24 * time.Hour

// ahead does something while the clock is ahead.
func (f *fixture) ahead(do func()) { f.aheadBy(jump, do) }

func (f *fixture) aheadBy(jump time.Duration, do func()) {
	f.clock.Advance(jump)
	do()
	f.clock.Advance(-jump)
}

// sweepByAge sweeps as the service does: by the time of AgedBy.
func sweepByAge(t *testing.T, db *database.DB) {
	t.Helper()
	asOf, err := db.AgedBy(t.Context())
	if err == nil {
		err = db.Sweep(t.Context(), asOf)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a device said while the clock was ahead makes no later word of it stale.
func TestObserve_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		phone := f.enroll("d", f.newPolicy("Office").ID)
		d, err := f.enrollAgent(f.agentPolicy("Agents"), "SN-9")
		f.ok(err)
		says := func() (all []enrollment.Observation) {
			agent := f.observation(d.ID)
			agent.Management = asset.Agent
			all = append(all, f.observation("d"), agent)
			for i := range all {
				all[i].ReportedAt, all[i].ObservedAt = f.clock.Now(), f.clock.Now()
			}
			return all
		}
		f.ahead(func() {
			for _, o := range says() {
				f.observe(o)
			}
		})
		for range 2 {
			f.clock.Advance(time.Hour)
			for _, o := range says() {
				equal(f, "applied", f.observe(o).Applied, true)
				stale := o
				stale.ObservedAt = o.ObservedAt.Add(-time.Second)
				equal(f, "an older one applied", f.observe(stale).Applied, o.Management == asset.Agent)
			}
			equal(f, "synchronized", f.asset(phone.ID).SyncedAt, f.clock.Now())
		}
		n, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(time.Second), 10)
		f.ok(err)
		equal(f, "devices that can become inactive", n, 2)
	})
}

// A clock that is set back by less than a minute loses no report of an agent: its sequence numbers say which is newer.
func TestObserve_AgentAfterASmallStepBack(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-9")
		report := f.observation(d.ID)
		report.Management = asset.Agent
		f.observe(report)
		newest := f.clock.Now()
		f.clock.Advance(-30 * time.Second)
		report = f.observation(d.ID)
		report.Management, report.StatusReport = asset.Agent, []byte(`{"batteryLevel": 7}`)
		equal(f, "applied", f.observe(report).Applied, true)
		got := f.asset(d.AssetID)
		equal(f, "status report", string(got.Device.StatusReport), `{"batteryLevel": 7}`)
		equal(f, "synchronized", got.SyncedAt, newest)
		equal(f, "seen", got.Device.LastSeenAt, newest)
		f.ok(f.db.MarkDeleted(f.Context(), d.AssetID, got.Device.Epoch, f.clock.Now()))
		equal(f, "a report after the end is applied", f.observe(report).Applied, false)
	})
}

// Commands that were kept or leased for an agent while the clock was ahead are offered after a sweep. A stop takes back
// only what no device can have.
func TestOffer_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.deviceFor("SN-1")
		var leased, made command.Command
		f.ahead(func() {
			leased = f.deliver(d, command.Reboot, time.Time{})
			got, _ := f.visit(f.db, d, 1)
			equal(f, "leased", ids(got.Offered), []string{leased.ID})
			made = f.deliver(d, command.UploadLog, time.Time{})
		})
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		got, _ := f.visit(f.db, d, 2)
		equal(f, "offered at once", ids(got.Offered), []string(nil))
		f.clock.Advance(2 * time.Minute)
		unoffered := func(c command.Command) bool {
			left, err := f.db.Text(f.Context(), `SELECT COUNT(*) FROM agent_deliveries WHERE command_id = ? AND lease_until = created_at`,
				c.ID)
			f.ok(err)
			return left[0] == "1"
		}
		equal(f, "a stop takes back what was leased", unoffered(leased), false)
		equal(f, "a stop takes back what was made", unoffered(made), true)
		got, _ = f.visit(f.db, d, 3)
		equal(f, "offered", len(got.Offered), 2)

		f.ahead(func() { made = f.deliver(d, command.LaunchApp, time.Time{}) })
		f.ok(f.db.ExpireDeliveryLeases(f.Context()))
		equal(f, "a stop takes back what was made, after a start", unoffered(made), true)
	})
}

// A device that was heard last while the clock was ahead is silent after its time, like another.
func TestMarkInactive_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ahead(func() { f.enroll("d", f.newPolicy("Office").ID) })
		f.enroll("e", "")
		silent := func() (n int) {
			n, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(-24*time.Hour), 10)
			f.ok(err)
			return n
		}
		equal(f, "at once", silent(), 0)
		f.clock.Advance(23 * time.Hour)
		equal(f, "before its time", silent(), 0)
		f.clock.Advance(2 * time.Hour)
		equal(f, "after its time", silent(), 2)
	})
}

// A device that ended while the clock was ahead enrolls again.
func TestObserve_EnrollsAgainAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Office")
		one := f.joined("a", p.ID)
		one.SerialNumber = "SN-1"
		id := f.observe(one).AssetID
		f.ahead(func() {
			f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: "a", Management: asset.Platform, Gone: true,
				ObservedAt: f.clock.Now()})
		})
		f.clock.Advance(time.Hour)
		again := f.joined("b", p.ID)
		again.SerialNumber = "SN-1"
		equal(f, "asset", f.observe(again).AssetID, id)
	})
}

// The companion's word says when the device was heard of.
func TestReportCompanion_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", f.newPolicy("Office").ID)
		companion := agentdevice.Device{AssetID: a.ID, CompanyID: f.company.ID, Epoch: a.Device.Epoch}
		report := func() {
			_, err := f.db.ReportCompanion(f.Context(), companion, agentdevice.CompanionReport{SeenAt: f.clock.Now()})
			f.ok(err)
		}
		f.ahead(report)
		f.clock.Advance(time.Hour)
		report()
		equal(f, "seen", f.asset(a.ID).Device.LastSeenAt, f.clock.Now())
	})
}

// A job goes on when the clock is right again, also one that was made in between. One that
// waits for its time waits on.
func TestDueJobs_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(6)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		_, p := f.jobMaker()
		create := func(at time.Time) job.Job {
			j, err := r.service.Create(f.Context(), p,
				job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}, At: at})
			f.ok(err)
			return j
		}
		runs, later := create(time.Time{}), create(f.clock.Now().Add(48*time.Hour))
		var made job.Job
		f.ahead(func() {
			made = create(time.Time{})
			j, err := f.db.Job(f.Context(), f.company.ID, runs.ID)
			f.ok(err)
			taken, err := f.db.TakeDevices(f.Context(), j, 1, f.clock.Now().Add(time.Second), f.clock.Now())
			f.ok(err)
			f.ok(f.db.SettleDevice(f.Context(), taken[0], job.DeviceSuccess, ""))
		})
		equal(f, "goes on", f.goOn(runs, 10, r).Status, job.Done)
		equal(f, "made in between", f.goOn(made, 0).Status, job.Done)
		equal(f, "waits for its time", f.jobCounts(f.goOn(later, 0)), "WAITING 6")
	})
}

// A device of a job that was taken while the clock was ahead, by a process that was killed, is taken again when it is right. While
// the clock is behind, those that are sent to are left to their senders.
func TestLookAfter_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		_, p := f.jobMaker()
		j, err := r.service.Create(f.Context(), p,
			job.Spec{Command: "reboot", Words: "all=true", Filter: asset.Filter{CompanyID: f.company.ID}})
		f.ok(err)
		take := func() {
			j, err = f.db.Job(f.Context(), f.company.ID, j.ID)
			f.ok(err)
			taken, err := f.db.TakeDevices(f.Context(), j, 1, f.clock.Now().Add(time.Second), f.clock.Now())
			f.ok(err)
			equal(f, "taken", len(taken), 1)
		}
		_, err = f.db.AgedBy(f.Context())
		f.ok(err)
		take()
		f.aheadBy(-jump, func() { f.ok(f.db.LookAfter(f.Context(), f.clock.Now().Add(-2*time.Minute))) })
		equal(f, "after a clock that was behind", f.jobCounts(j), "WAITING 1, IN_PROGRESS 1")
		f.ahead(take)
		f.ok(f.db.LookAfter(f.Context(), f.clock.Now().Add(-2*time.Minute)))
		equal(f, "after a clock that was ahead", f.jobCounts(j), "WAITING 1, IN_PROGRESS 1")
		equal(f, "goes on", f.jobCounts(f.goOn(j, 200, r)), "SUCCESS 2")
	})
}

// What counts in the limit since the clock was ahead counts for one window from the first
// refusal on, and not less.
func TestBegin_LimitAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(2, 60)
		all := f.fleet(3)
		f.ahead(func() {
			f.begin(all[0], command.WipeCompanyData)
			f.begin(all[1], command.WipeCompanyData)
		})
		begins := func() error {
			_, _, err := f.db.Begin(f.Context(), f.intent(all[2], command.WipeCompanyData), nil)
			return err
		}
		f.clock.Advance(3 * time.Hour)
		if begins() == nil {
			f.Error("the first is not refused")
		}
		f.clock.Advance(59 * time.Minute)
		remaining, frees, _, err := f.db.DestructiveLeft(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "remaining", remaining, 0)
		equal(f, "frees", frees, time.Minute)
		if begins() == nil {
			f.Error("it is not refused within a window")
		}
		f.clock.Advance(time.Minute)
		f.ok(begins())
	})
}

// Devices that a key noted while the clock was ahead count for a day from the first refusal on.
func TestBegin_DevicesOfAKeyAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		key, _ := f.newKey("day", access.All)
		all := f.fleet(2)
		begin := func(a asset.Asset) error {
			c := f.intent(a, command.Lock)
			c.DevicesPerDay, c.Actor.ID = 1, key.ID
			_, _, err := f.db.Begin(f.Context(), c, nil)
			return err
		}
		f.ahead(func() { f.ok(begin(all[0])) })
		refused, ok := errors.AsType[*fault.Error](begin(all[1]))
		if !ok || refused.RetryAfter > 24*time.Hour+time.Minute {
			f.Errorf("refused: %+v", refused)
		}
		f.clock.Advance(24*time.Hour + time.Second)
		f.ok(begin(all[1]))
	})
}

// What a person authorized while the clock was ahead cannot be used, neither then nor when that time comes: the call is asked
// for again. What waits since then does not count in the caller's five.
func TestBegin_AuthorizationsAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		ada, all := f.person("Ada", true), f.fleet(approval.MaxWaiting+1)
		wipe := func(n int) command.Command { return f.asking(all[n], command.WipeCompanyData, all[n].ID) }
		var first, waits approval.Refusal
		f.ahead(func() {
			first = f.refusal(f.db, wipe(0))
			f.approve(first.ID, ada)
			for n := range approval.MaxWaiting {
				waits = f.refusal(f.db, wipe(n+1))
			}
		})
		over := func(when string) {
			f.Helper()
			for _, id := range []string{first.ID, waits.ID} {
				equal(f, "state "+when, f.authorization(id).At(f.clock.Now()), approval.Expired)
			}
			n, err := f.db.WaitingAuthorizations(f.Context(), f.company.ID, nil)
			f.ok(err)
			equal(f, "waiting "+when, n, 0)
			f.wants(nil)
		}
		over("at once")
		f.code(fault.Refused, f.decide(waits.ID, ada, signature.Approve))
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		over("after a sweep")
		f.clock.Advance(jump + time.Minute)
		over("when the time comes")
		again := f.refusal(f.db, wipe(0))
		equal(f, "verdict", again.Verdict, approval.Asks)
		f.approve(again.ID, ada)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		_, begun, err := f.db.Begin(f.Context(), wipe(0), nil)
		f.ok(err)
		equal(f, "begun with one by the right clock", begun, true)
	})
}

// toldDue counts the events of proposals that ended and of keys that expire soon, once all that is due is told.
func (f *fixture) toldDue() string {
	f.Helper()
	f.ok(f.db.TellDue(f.Context()))
	n, err := f.db.Text(f.Context(), `SELECT COALESCE(SUM(CASE WHEN type = ? THEN 1 ELSE 0 END), 0) || ' ' ||
		COALESCE(SUM(CASE WHEN type = ? THEN 1 ELSE 0 END), 0) FROM events WHERE company_id = ?`,
		string(event.ProposalEnded), string(event.KeyExpiring), f.company.ID)
	f.ok(err)
	return n[0]
}

// A device was in touch every day again a week after a clock that was ahead, so that a rollout notices its silence.
func TestContact_DailyAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := &f.agents(1)[0]
		f.clock.Advance(time.Hour)
		f.ahead(func() { f.contact(d) })
		daily := func(version string, code int64) (is bool) {
			f.release(version, code, 10)
			_, err := f.db.BeginRollout(f.Context(), version, 100)
			f.ok(err)
			f.ok(rollout.Watcher{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}.Watch(f.Context()))
			equal(f, "began", f.checkIn(f.db, d), true)
			f.ok(f.db.Members(f.Context(), version, func(m rollout.Member) { is = m.Daily }))
			return is
		}
		days := func(n int) {
			for range 2 * n {
				f.contact(d)
				f.clock.Advance(12 * time.Hour)
			}
		}
		days(6)
		equal(f, "after six days", daily("2.0", 2), false)
		days(2)
		equal(f, "after eight days", daily("3.0", 3), true)
	})
}
