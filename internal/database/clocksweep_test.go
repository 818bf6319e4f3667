package database_test

import (
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

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
			_, err := account.Begin(f.Context(), f.db, account.PendingSignIn{Kind: account.Invitation, CompanyID: f.company.ID,
				UserID: u.ID, Data: json.RawMessage(`{}`), ExpiresAt: f.clock.Now().Add(account.InvitationLife)})
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
			all, err := f.db.Text(f.Context(), `SELECT (SELECT COUNT(*) FROM agent_tokens) * 100
				+ (SELECT COUNT(*) FROM companion_tokens) * 10 + (SELECT COUNT(*) FROM signin_steps)`)
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
