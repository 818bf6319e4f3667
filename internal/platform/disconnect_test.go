package platform_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/provisioning"
)

// lose deletes the company's enterprise at the platform, as its owner can.
func (b *bench) lose() {
	b.Helper()
	transport := &http.Transport{DialContext: b.network.dial}
	b.Cleanup(transport.CloseIdleConnections)
	request, err := http.NewRequestWithContext(b.Context(), http.MethodDelete, "http://vendor.test/v1/"+b.company.Enterprise, nil)
	b.ok(err)
	response, err := (&http.Client{Transport: transport}).Do(request)
	b.ok(err)
	b.ok(response.Body.Close())
	b.equal("deleted at the platform", response.StatusCode, http.StatusOK)
}

// disconnected fails unless the company has no enterprise, and can be connected to
// another, which gets its policies and enrolls devices.
func (b *bench) disconnected() {
	b.Helper()
	former := b.company.Enterprise
	var err error
	b.company, err = b.db.CompanyByID(b.Context(), b.company.ID)
	b.ok(err)
	b.equal("enterprise", b.company.Enterprise, "")
	troubles, err := b.db.EnterpriseTroubles(b.Context())
	b.ok(err)
	b.equal("troubles", len(troubles), 0)
	_, err = b.platform.Disconnect(b.Context(), b.company.ID)
	b.equal("again", fault.CodeOf(err), fault.Refused)
	b.connect()
	b.equal("another enterprise", b.company.Enterprise != former, true)
	b.pass(2 * time.Second)
	b.equal("pushed", b.saved(b.policy.ID).Behind(), false)
	b.equal("enrolled", b.device().Status, asset.Active)
}

// An enterprise that the platform lost is noticed, logged once and given up: its
// devices end, and it stays unknown what became of their commands.
func TestDisconnect_LostEnterprise(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.asset(b.enroll(provisioning.Disallowed, emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: "HOLD"}})[0])
		other := b.device()
		_, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.lose()
		b.pass(2 * time.Minute)
		troubles, err := b.db.EnterpriseTroubles(b.Context())
		b.ok(err)
		b.equal("known as lost", troubles[b.company.ID].LostSince.IsZero(), false)
		b.equal("logged", b.log.count("the platform does not have a company's enterprise"), 1)
		_, err = b.platform.Disconnect(b.Context(), b.company.ID)
		b.ok(err)
		for _, one := range []asset.Asset{a, other} {
			b.equal("status", b.again(one).Status, asset.Deleted)
		}
		b.equal("command", b.history(a)[0].State, command.Unconfirmed)
		b.equal("deletions", b.calls("delete"), 1) // that of the test
		b.disconnected()
	})
}

// A lost enterprise that cannot be asked for by name keeps none of the others unnoticed.
func TestEnterprises_TroubleOfOneHidesNoOther(t *testing.T) {
	connected(t, func(b *bench) {
		other := b.neighbor()
		b.lose()
		other.lose()
		b.fault(emulator.Fault{Method: "get", Match: b.company.Enterprise, Status: 503, Times: -1})
		b.pass(2 * time.Minute)
		troubles, err := b.db.EnterpriseTroubles(b.Context())
		b.ok(err)
		b.equal("known as lost", troubles[other.company.ID].LostSince.IsZero(), false)
		b.equal("not known", troubles[b.company.ID].LostSince.IsZero(), true)
	})
}

// A living enterprise is deleted at the platform, but not while it manages devices,
// and once, whatever becomes of the answer.
func TestDisconnect_LivingEnterprise(t *testing.T) {
	for name, c := range map[string]struct {
		fault emulator.Fault
		first fault.Code // what the first call is answered; empty: it succeeds
		calls int
	}{
		"at once":           {calls: 1},
		"lost answer":       {fault: emulator.Fault{Status: 503, AfterEffect: true}, first: fault.Provider, calls: 1},
		"unknown, not done": {fault: emulator.Fault{Status: 503}, first: fault.Provider, calls: 2},
		"refused":           {fault: emulator.Fault{Status: 400, Reason: "FAILED_PRECONDITION"}, first: fault.Provider, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			connected(t, func(b *bench) {
				a := b.device()
				_, err := b.platform.Disconnect(b.Context(), b.company.ID)
				b.equal("with a device", fault.CodeOf(err), fault.Refused)
				_, err = b.command(a, command.WipeCompanyData, nil)
				b.ok(err)
				b.pass(5 * time.Second)
				if c.fault.Status != 0 {
					c.fault.Method, c.fault.Times = "delete", 1
					b.fault(c.fault)
				}
				_, err = b.platform.Disconnect(b.Context(), b.company.ID)
				if c.first != "" {
					b.equal("first", fault.CodeOf(err), c.first)
					_, err = b.platform.Disconnect(b.Context(), b.company.ID)
				}
				b.ok(err)
				b.equal("calls", b.calls("delete"), c.calls)
				b.disconnected()
			})
		})
	}
}

// A device that the platform has and we do not know keeps its enterprise.
func TestDisconnect_DeviceThatIsNotKnown(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.pass(time.Second)
		token, err := b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID),
			provisioning.Wanted{Usage: provisioning.Disallowed, Lifetime: provisioning.Lifetime})
		b.ok(err)
		quiet := false
		_, err = b.emulator.Enroll(b.Context(), emulator.Enrollment{EnrollmentToken: string(token.Payload), Notify: &quiet})
		b.ok(err)
		_, err = b.platform.Disconnect(b.Context(), b.company.ID)
		b.equal("refused", fault.CodeOf(err), fault.Refused)
		b.says("why", err.Error(), "1 devices are managed")
		troubles, err := b.db.EnterpriseTroubles(b.Context())
		b.ok(err)
		b.equal("taken back", len(troubles), 0)
	})
}

// Two installations that share a subscription each get what is theirs.
func TestNotifications_OfAnotherInstallation(t *testing.T) {
	on(t, func(b *bench) {
		other := *b
		other.url, other.log = "sqlite:"+b.T.TempDir()+"/other.db", &logged{}
		other.db = other.open()
		other.start(nil)
		other.populate()
		installations := []*bench{b, &other}
		for _, one := range installations {
			one.connect()
			one.run()
		}
		b.pass(2 * time.Second)
		names := map[*bench][]string{}
		met := func() bool { // which of them gets a notification first is chance
			return !slices.ContainsFunc(installations, func(one *bench) bool {
				return one.log.count("notifications of another installation's enterprise") == 0
			})
		}
		for round := 0; round < 10 && !met(); round++ {
			for _, one := range installations {
				names[one] = append(names[one], one.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 20})...)
			}
			b.pass(5 * time.Minute)
		}
		for _, one := range installations {
			for _, name := range names[one] {
				b.equal("status of "+name, one.asset(name).Status, asset.Active)
			}
			foreign, err := one.db.ForeignEnterprises(b.Context(), time.Now())
			b.ok(err)
			b.equal("foreign enterprises", len(foreign), 1)
			b.equal("logged", one.log.count("notifications of another installation's enterprise"), 1)
		}
		for _, one := range installations {
			one.halt()
		}
		b.equal("left over", b.backlog(), 0)
	})
}

// Another installation's enterprise is noted once a minute, also after a clock that was ahead.
func TestStrangers_AfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	now, noted := time.Now(), platform.Strangers{}
	for _, step := range []struct {
		at  time.Duration
		due bool
	}{{0, true}, {30 * time.Second, false}, {time.Hour, true}, {time.Minute, true}, {90 * time.Second, false}} {
		if due := noted.Note("e", now.Add(step.at)); due != step.due {
			t.Errorf("at %s: to be noted %v, want %v", step.at, due, step.due)
		}
	}
}

// Enterprises are listed once in the time that the schedule says, also by a single replica.
func TestEnterprises_AreListedOnceInTheirTime(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.runOnly(b.platform.Enterprises)
		b.pass(5*time.Minute + time.Second)
		b.equal("lists", b.calls("list"), 11) // at once, and each 30 s
	})
}
