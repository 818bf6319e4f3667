package database_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
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

// What waits for a time that was set while the clock was ahead goes on after a sweep: the vendor's quota, leases, mail and
// webhooks. What was set by the right clock waits on.
func TestSweep_AfterAClockThatWasAhead(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to, ada, ben := newReceiver(h.T), h.person("ada", true), h.person("ben", true)
		h.create(to, "device.enrolled")
		lease := func(name, holder string) bool {
			held, err := h.db.Lease(h.Context(), name, holder, 27*time.Minute)
			h.ok(err)
			return held
		}
		next := h.clock.Now().Add(30 * time.Minute)
		h.ok(h.db.MailFailed(h.Context(), h.company.ID, ben.ID, next))
		equal(h, "a lease", lease("later", "a"), true)
		h.ahead(func() {
			for h.spend("p", 0, false) {
				continue
			}
			h.ok(h.db.PauseQueries(h.Context(), "p", h.clock.Now().Add(time.Minute)))
			equal(h, "a lease", lease("ahead", "a"), true)
			h.ok(h.db.MailFailed(h.Context(), h.company.ID, ada.ID, h.clock.Now().Add(time.Minute)))
			h.enroll("d1", "")
			h.serve(h.runner)
			equal(h, "calls", len(to.all()), 1)
		})
		h.ok(h.db.Sweep(h.Context(), h.clock.Now()))
		h.clock.Advance(2 * time.Minute)
		equal(h, "the quota", h.spend("p", 0, true), true)
		equal(h, "the lease", lease("ahead", "b"), true)
		equal(h, "a lease by the right clock", lease("later", "b"), false)
		equal(h, "mail", h.recipient(ada).NextAt.After(h.clock.Now()), false)
		equal(h, "mail by the right clock", h.recipient(ben).NextAt.Equal(next), true)
		h.enroll("d2", "")
		h.serve(h.runner)
		equal(h, "calls", len(to.all()), 2)
	})
}

// What was set while the clock was ahead by minutes does not wait for them.
func TestSweep_AfterAClockThatWasAheadByMinutes(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to, d := newReceiver(h.T), h.deviceFor("SN-1")
		h.number()
		h.create(to, "device.enrolled")
		lease := func(holder string) bool {
			held, err := h.db.Lease(h.Context(), "l", holder, 27*time.Minute)
			h.ok(err)
			return held
		}
		h.aheadBy(50*time.Minute, func() {
			equal(h, "the quota", h.spend("p", 0, true), true)
			h.ok(h.db.PauseQueries(h.Context(), "p", h.clock.Now().Add(time.Minute)))
			equal(h, "a lease", lease("a"), true)
			h.enroll("d1", "")
			h.serve(h.runner)
			h.deliver(d, command.Reboot, time.Time{})
		})
		h.ok(h.db.Sweep(h.Context(), h.clock.Now()))
		h.clock.Advance(2 * time.Minute)
		equal(h, "the quota", h.spend("p", 0, true), true)
		equal(h, "the lease", lease("b"), true)
		got, _ := h.visit(h.db, d, 1)
		equal(h, "commands that are offered", len(got.Offered), 1)
		h.enroll("d2", "")
		h.serve(h.runner)
		equal(h, "calls", len(to.all()), 2)
	})
}

// An event from a clock that was ahead is not kept longer than those after it: the oldest that is kept says where reading begins.
func TestSweep_EventsAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		tell := func(device string) {
			f.enroll(device, "")
			_, err := f.db.NumberRound(f.Context())
			f.ok(err)
		}
		f.ahead(func() { tell("d1") })
		tell("d2")
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		f.clock.Advance(company.DefaultKeepEvents + time.Minute)
		tell("d3")
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		head, err := f.db.EventHead(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "positions that are kept", words(head.First, head.Last), "3 3")
	})
}

// A clock that is behind for a moment, as at the start of a machine, changes no time of an event or of a contact.
func TestSweep_AfterAClockThatWasBehind(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", f.newPolicy("Office").ID)
		_, err := f.db.NumberRound(f.Context())
		f.ok(err)
		sweep := func() {
			f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
			n, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(-24*time.Hour), 10)
			f.ok(err)
			equal(f, "devices that become inactive", n, 0)
		}
		f.aheadBy(-100*24*time.Hour, sweep)
		sweep()
		head, err := f.db.EventHead(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "the first event that is kept", head.First, 1)
		equal(f, "seen", f.asset(a.ID).Device.LastSeenAt, a.Device.LastSeenAt)
	})
}

// An event that is made while the clock is behind changes no time of another: those are kept for their time.
func TestSweep_AnEventOfAClockThatWasBehind(t *testing.T) {
	withCompany(t, func(f *fixture) {
		sweep := func() { sweepByAge(f.T, f.db) }
		tell := func(device string) {
			f.enroll(device, "")
			_, err := f.db.NumberRound(f.Context())
			f.ok(err)
		}
		tell("d1")
		sweep()
		f.aheadBy(-100*24*time.Hour, func() {
			tell("d2")
			for range 3 {
				sweep()
			}
		})
		sweep()
		head, err := f.db.EventHead(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "the first event that is kept", head.First, 1)
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

// A sweep ends sessions, steps and codes from a clock that was ahead, and leaves others.
func TestSweep_SignInsAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada := f.person("Ada", true)
		hash := func(name string) access.SecretHash { return access.HashSecret(name) }
		begin := func(name string, created time.Time) {
			now := f.clock.Now()
			f.ok(f.db.CreateSession(f.Context(), account.Session{ID: resource.NewID(), TokenHash: hash(name), UserID: ada.ID,
				CompanyID: ada.CompanyID, CreatedAt: created, SeenAt: now, ProvedAt: now, PasswordHash: ada.PasswordHash}))
			f.ok(f.db.SaveStep(f.Context(), hash(name), account.PendingSignIn{Kind: account.SignDocument, CompanyID: ada.CompanyID,
				UserID: ada.ID, Data: json.RawMessage("{}"), ExpiresAt: now.Add(account.PendingLife)}))
			f.ok(f.db.SaveCode(f.Context(), oauth.AuthorizationCode{Hash: hash(name), CompanyID: ada.CompanyID, UserID: ada.ID,
				ClientID: "c", Resource: "r", ExpiresAt: now.Add(time.Minute)}))
		}
		started := f.clock.Now()
		f.ahead(func() {
			begin("ahead", f.clock.Now())
			begin("used ahead", started)
		})
		begin("right", started)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		for name, want := range map[string]struct {
			session, step fault.Code
			fresh         bool
		}{"right": {fresh: true}, "ahead": {session: fault.NotFound, step: fault.NotFound}, "used ahead": {step: fault.NotFound}} {
			s, _, _, err := f.db.SessionByToken(f.Context(), hash(name))
			equal(f, "session "+name, fault.CodeOf(err), want.session)
			equal(f, "identity proved "+name, s.Fresh(f.clock.Now()), want.fresh)
			_, err = f.db.Step(f.Context(), hash(name), account.SignDocument)
			equal(f, "step "+name, fault.CodeOf(err), want.step)
		}
		_, err := f.db.RedeemCode(f.Context(), hash("ahead"), func(oauth.AuthorizationCode) error { return nil }, oauth.Tokens{})
		f.code(fault.Refused, err)
	})
}

// A sweep ends access tokens from a clock that was ahead. Their client goes on with its refresh token.
func TestSweep_AccessTokensAfterAClockThatWasAhead(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		code := consent(t, db, e, access.DevicesRead)
		right, _ := redeem(t, db, e, code)
		e.clock.Advance(jump)
		ahead, _ := redeem(t, db, e, again(t, db, e, code, access.DevicesRead))
		e.clock.Advance(-jump)
		if err := db.Sweep(t.Context(), e.clock.Now()); err != nil {
			t.Fatal(err)
		}
		wantAllowed(t, db, "a token of the right clock", right.Access, access.DevicesRead)
		wantEnded(t, db, "a token of the clock that was ahead", ahead.Access)
		next, _ := pair(e)
		if _, err := db.RotateToken(t.Context(), ahead.Refresh, code.ClientID, 0, next); err != nil {
			t.Fatal(err)
		}
		wantAllowed(t, db, "the next token", next.Access, access.DevicesRead)
	})
}

// A proposal that was made while the clock was ahead can be applied for as long as another, from a sweep on. One that a person
// approved keeps its time.
func TestSweep_ProposalsAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, by := f.newPolicy("Office"), access.Actor{Kind: access.APIKey, ID: "k"}
		f.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = access.ApproveAll, 0 })
		ada := f.person("Ada", true)
		var ahead, approved proposal.Proposal
		f.ahead(func() {
			ahead, approved = f.propose(p, by), f.propose(f.newPolicy("Warehouse"), by)
			f.ok(f.approveChange(approved.ID, ada))
		})
		right := f.propose(p, by)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		kept, err := f.db.Proposal(f.Context(), f.company.ID, approved.ID)
		f.ok(err)
		equal(f, "end of one that was approved, which is signed", kept.ExpiresAt, approved.ExpiresAt)
		status := func(id string) proposal.Status {
			got, err := f.db.Proposal(f.Context(), f.company.ID, id)
			f.ok(err)
			return got.Status
		}
		equal(f, "by the right clock", status(right.ID), proposal.Pending)
		f.clock.Advance(proposal.Lifetime - time.Minute)
		equal(f, "before its time", status(ahead.ID), proposal.Pending)
		f.clock.Advance(time.Minute)
		equal(f, "after its time", status(ahead.ID), proposal.Expired)
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

// What was told to expire while the clock was ahead is told again when it does.
func TestTellDue_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		const day = 24 * time.Hour
		f.propose(f.newPolicy("Office"), access.Actor{Kind: access.APIKey, ID: "k"})
		key, _ := apikey.New(f.company.ID, "ci", "operator", access.All, f.clock.Now(), f.clock.Now().Add(22*day))
		f.ok(f.db.CreateKey(f.Context(), key))
		f.aheadBy(20*day, func() { equal(f, "told while it is ahead", f.toldDue(), "1 1") })
		tells := func(when, want string) {
			f.Helper()
			f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
			equal(f, "told "+when, f.toldDue(), want)
			f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
			equal(f, "told again "+when, f.toldDue(), want)
		}
		tells("when it is right", "1 1")
		f.clock.Advance(10 * time.Minute)
		tells("when the proposal expires", "2 1")
		f.clock.Advance(22*day - event.ExpiresSoon)
		tells("when the key expires soon", "2 2")
	})
}

// A clock that is behind for a moment takes no time of a proposal, and nothing is told twice.
func TestTellDue_AfterAClockThatWasBehind(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, by := f.newPolicy("Office"), access.Actor{Kind: access.APIKey, ID: "k"}
		f.propose(p, by)
		key, _ := apikey.New(f.company.ID, "ci", "operator", access.All, f.clock.Now(), f.clock.Now().Add(24*time.Hour))
		f.ok(f.db.CreateKey(f.Context(), key))
		f.clock.Advance(10 * time.Minute)
		equal(f, "told", f.toldDue(), "1 1")
		made := f.propose(p, by)
		sweep := func() { sweepByAge(f.T, f.db) }
		sweep()
		f.aheadBy(-jump, sweep)
		sweep()
		equal(f, "told when it is right", f.toldDue(), "1 1")
		kept, err := f.db.Proposal(f.Context(), f.company.ID, made.ID)
		f.ok(err)
		equal(f, "status", kept.Status, proposal.Pending)
		equal(f, "end", kept.ExpiresAt, made.ExpiresAt)
	})
}

// The last use of keys and connections is noted again after a clock that was ahead.
func TestSweep_LastUsesAfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		key, _ := f.newKey("k", access.All)
		o := f.connection(f.person("Ada", true))
		use := func() {
			one := f.open(f)
			f.ok(one.TouchKey(f.Context(), key.ID))
			f.ok(one.TouchConnection(f.Context(), o.ID, o.GrantID))
			f.ok(one.Close())
		}
		f.ahead(use)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		f.clock.Advance(2 * time.Minute)
		use()
		keys, err := f.db.Keys(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "of the key", keys[0].LastUsedAt, f.clock.Now())
		connections, err := f.db.Connections(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "of the connection", connections[0].LastUsedAt, f.clock.Now())
	})
}

// A webhook to which nothing is to be sent keeps its position also after a clock that was ahead: it misses nothing.
func TestWebhook_MissesNothingAfterAClockThatWasAhead(t *testing.T) {
	withWebhooks(t, func(h *hooks) {
		to := newReceiver(h.T)
		w, _ := h.create(to, "platform.failing")
		h.ahead(func() {
			h.enroll("d1", "")
			h.serve(h.runner)
			h.clock.Advance(2 * time.Hour)
			h.serve(h.runner) // its position is kept, with the time
			h.clock.Advance(-2 * time.Hour)
		})
		h.enroll("d2", "")
		h.serve(h.runner)
		h.ok(h.db.Sweep(h.Context(), h.clock.Now()))
		h.clock.Advance(2 * time.Hour)
		h.serve(h.runner)
		h.clock.Advance(company.DefaultKeepEvents)
		h.ok(h.db.Sweep(h.Context(), h.clock.Now()))
		h.enroll("d3", "")
		h.serve(h.runner)
		equal(h, "missed", h.webhook(w.ID).Missed, 0)
	})
}

// A device that set out to erase itself while the clock was ahead has erased itself once it is silent for long enough.
func TestErased_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.agents(1)[0]
		f.ahead(func() {
			f.ok(f.db.Accept(f.Context(), d.ID, f.openCommand(d, command.WipeCompanyData), "WIPE_COMPANY_DATA", f.clock.Now()))
			_, known, err := f.db.Contact(f.Context(), d.ID, d.Key, 100)
			f.ok(err)
			equal(f, "in touch", known, true)
		})
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		erased := func() int {
			before := f.clock.Now().Add(-15 * time.Minute)
			all, err := f.db.Erased(f.Context(), before, 10)
			f.ok(err)
			return len(all)
		}
		f.clock.Advance(14 * time.Minute)
		equal(f, "devices that are silent for too short a time", erased(), 0)
		f.clock.Advance(2 * time.Minute)
		equal(f, "devices that are silent for long enough", erased(), 1)
	})
}

// A clock that is ahead for a moment makes nothing old: the time by which rows are removed follows it by an hour at each look.
// After weeks without the service it is at the present again within days.
func TestAgedBy_FollowsTheClock(t *testing.T) {
	withCompany(t, func(f *fixture) {
		aged := func() time.Duration { // before the present
			at, err := f.db.AgedBy(f.Context())
			f.ok(err)
			return f.clock.Now().Sub(at)
		}
		equal(f, "at first", aged(), 0)
		f.clock.Advance(5 * time.Minute)
		equal(f, "later", aged(), 0)
		f.ahead(func() {
			equal(f, "while it is ahead", aged(), jump-time.Hour)
			equal(f, "at the next look", aged(), jump-2*time.Hour)
		})
		equal(f, "when it is right again", aged(), 0)
		f.clock.Advance(10 * time.Hour)
		for range 9 {
			aged()
		}
		equal(f, "after a night", aged(), 0)
	})
}

// A clock that is behind for a moment delays what is removed by no more than the looks that it lasted.
func TestAgedBy_AfterAClockThatWasBehind(t *testing.T) {
	withCompany(t, func(f *fixture) {
		aged := func() time.Duration { // before the present
			at, err := f.db.AgedBy(f.Context())
			f.ok(err)
			return f.clock.Now().Sub(at)
		}
		aged()
		f.aheadBy(-365*24*time.Hour, func() {
			for range 3 {
				equal(f, "while it is behind", aged(), 0)
			}
		})
		for range 3 {
			aged()
		}
		equal(f, "when it is right again", aged(), 0)
	})
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

// What is made or begun while the clock is ahead deletes no token, invitation or mark that is not over by the right clock. The sweep
// deletes them a day after their end, and keeps the token of a device whose request to enroll was confirmed.
func TestTokensAndSteps_AfterAClockThatWasAhead(t *testing.T) {
	withCompany(t, func(f *fixture) {
		agents, u := f.agentPolicy("Agents"), f.user(account.Viewer)
		phone := f.enroll("d", f.newPolicy("Office").ID)
		companion := func() {
			f.ok(f.db.CreateCompanionToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())),
				CompanyID: f.company.ID, AssetID: phone.ID, Epoch: phone.Device.Epoch, ExpiresAt: f.clock.Now().Add(time.Hour)}))
		}
		begin := func() {
			_, err := account.Begin(f.Context(), f.db, account.PendingSignIn{Kind: account.Invitation, CompanyID: f.company.ID, UserID: u.ID,
				Data: json.RawMessage(`{}`), ExpiresAt: f.clock.Now().Add(account.InvitationLife)})
			f.ok(err)
		}
		token := f.agentToken(agents)
		companion()
		begin()
		f.ahead(func() {
			f.agentToken(agents)
			companion()
			begin()
		})
		kept := func() []string {
			all, err := f.db.Text(f.Context(), `SELECT (SELECT COUNT(*) FROM agent_tokens) * 100 + (SELECT COUNT(*) FROM companion_tokens) * 10
				+ (SELECT COUNT(*) FROM signin_steps)`)
			f.ok(err)
			return all
		}
		equal(f, "tokens, tokens of companions, steps", kept(), []string{"222"})
		d, err := f.redeem(token, "SN-1")
		f.ok(err)
		equal(f, "enrolled under", f.asset(d.AssetID).Device.PolicyID, agents.ID)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now().Add(25*time.Hour+time.Second)))
		equal(f, "a day after the end of tokens", kept(), []string{"112"})
		f.ok(f.db.Sweep(f.Context(), f.clock.Now().Add(account.InvitationLife+time.Second)))
		equal(f, "after the end of the invitation", kept(), []string{"111"})
	})
}

// A request that a crash left while the clock was ahead is repeated when it is right, and its answer is kept for a day from then.
func TestClaim_AfterAClockThatWasAhead(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		e.clock.Advance(jump)
		left, answered := take(t, db, claim(e, "left", "f"), operation.Claimed), take(t, db, claim(e, "answered", "f"), operation.Claimed)
		if err := db.SettleClaim(t.Context(), answered, []byte("answer")); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(-jump)
		if h, err := db.FindClaim(t.Context(), claim(e, "left", "f")); err != nil || h.State != operation.Claimed {
			t.Errorf("the claim that is left: %+v, %v", h, err)
		}
		if h := take(t, db, claim(e, "left", "f"), operation.Claimed); h.Ref != left.Ref || h.Attempt != 2 {
			t.Errorf("taken over as %+v, want attempt 2 of %s", h, left.Ref)
		}
		take(t, db, claim(e, "left", "f"), operation.Running)
		sweepByAge(t, db)
		e.clock.Advance(24*time.Hour - time.Minute)
		take(t, db, claim(e, "answered", "f"), operation.Answered)
		e.clock.Advance(time.Minute)
		take(t, db, claim(e, "answered", "g"), operation.Claimed)
	})
}

// A clock that is behind for a moment takes no claim from its holder, and ends no answer before its time.
func TestClaim_AfterAClockThatWasBehind(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		sweepByAge(t, db)
		take(t, db, claim(e, "held", "f"), operation.Claimed)
		answered := take(t, db, claim(e, "answered", "f"), operation.Claimed)
		if err := db.SettleClaim(t.Context(), answered, []byte("answer")); err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(-jump)
		sweepByAge(t, db)
		take(t, db, claim(e, "held", "f"), operation.Running)
		e.clock.Advance(jump)
		sweepByAge(t, db)
		take(t, db, claim(e, "answered", "f"), operation.Answered)
	})
}
