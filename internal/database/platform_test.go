package database_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

const window = 100 * time.Second

func (f *fixture) spend(project string, reserve int, background bool) bool {
	f.Helper()
	ok, err := f.db.SpendQuery(f.Context(), project, 1000, reserve, window, background, f.clock.Now())
	f.ok(err)
	return ok
}

func TestQuota_IsSharedAndFlowsBack(t *testing.T) {
	withCompany(t, func(f *fixture) {
		const limit, callers = 50, 8
		other := f.open(f.T)
		var spent atomic.Int32
		var all sync.WaitGroup
		for i := range callers {
			db := f.db
			if i%2 == 1 {
				db = other
			}
			all.Go(func() {
				for range 10 {
					ok, err := db.SpendQuery(f.Context(), "p", limit, 0, window, false, f.clock.Now())
					if err != nil {
						f.Error(err)
					}
					if ok {
						spent.Add(1)
					}
				}
			})
		}
		all.Wait()
		equal(f, "queries spent", spent.Load(), limit)
		f.clock.Advance(window / limit) // one flows back
		for i, want := range []bool{true, false} {
			ok, err := f.db.SpendQuery(f.Context(), "p", limit, 0, window, false, f.clock.Now())
			f.ok(err)
			equal(f, fmt.Sprint("query ", i), ok, want)
		}
		equal(f, "another project's query", f.spend("q", 0, false), true)
	})
}

func TestQuota_KeepsReserveForCommands(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for f.spend("p", 997, false) {
			continue
		}
		equal(f, "a background query that would touch the reserve", f.spend("p", 997, true), false)
		equal(f, "a command", f.spend("p", 0, false), true)
		f.ok(f.db.PauseQueries(f.Context(), "p", f.clock.Now().Add(time.Minute)))
		equal(f, "a paused background query", f.spend("p", 0, true), false)
		equal(f, "a command in between", f.spend("p", 0, false), true)
		f.clock.Advance(time.Minute)
		equal(f, "a background query afterwards", f.spend("p", 0, true), true)
	})
}

// In any window, however calls and time are mixed, no more than twice the limit
// can be spent: what was saved up, and what flows back.
func TestQuota_NeverExceedsItsBound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		run := 0
		rapid.Check(f, func(r *rapid.T) {
			run++
			const limit = 20
			project, now := fmt.Sprint("r", run), f.clock.Now()
			begun, latest, spent := now, now, 0 // a clock may go back: what flowed back until the latest time stays
			for _, step := range rapid.SliceOfN(rapid.Int64Range(-2000, 9000), 1, 30).Draw(r, "milliseconds") {
				now = now.Add(time.Duration(step) * time.Millisecond)
				ok, err := f.db.SpendQuery(f.Context(), project, limit, 0, window, false, now)
				if err != nil {
					r.Fatal(err)
				}
				if ok {
					spent++
				}
				if now.After(latest) {
					latest = now
				}
				if most := latest.Sub(begun); float64(spent) > limit+limit*most.Seconds()/window.Seconds()+1 && most > 0 {
					r.Fatalf("%d spent after %v", spent, most)
				}
			}
		})
	})
}

func (f *fixture) toPush(companyID string) []string {
	f.Helper()
	all, err := f.db.PoliciesToPush(f.Context(), companyID, f.clock.Now(), 10)
	f.ok(err)
	ids := []string{}
	for _, p := range all {
		ids = append(ids, p.Name)
	}
	return ids
}

func TestPushes_FindsPolicies(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := f.Context()
		a, b := f.newPolicy("A"), f.newPolicy("B")
		equal(f, "at first", len(f.toPush("")), 2)
		equal(f, "of another company", len(f.toPush("other")), 0)
		f.ok(f.db.SetPushed(ctx, a.ID, 1, 7, f.clock.Now()))
		equal(f, "after one push", f.toPush(f.company.ID), []string{"B"})

		wait := func(failing time.Duration) time.Duration { return failing + time.Minute }
		f.ok(f.db.SetPushFailed(ctx, b.ID, 1, "busy", f.clock.Now(), wait))
		equal(f, "just failed", len(f.toPush("")), 0)
		f.clock.Advance(time.Minute)
		equal(f, "a minute later", f.toPush(""), []string{"B"})
		f.ok(f.db.SetPushFailed(ctx, b.ID, 1, "busy", f.clock.Now(), wait))
		f.clock.Advance(time.Minute)
		equal(f, "failing for a minute, a minute later", len(f.toPush("")), 0)
		f.clock.Advance(time.Minute)
		equal(f, "two minutes later", f.toPush(""), []string{"B"})

		f.ok(f.db.SetPushFailed(ctx, b.ID, 1, "bad value", f.clock.Now(), nil))
		f.clock.Advance(48 * time.Hour)
		equal(f, "refused", len(f.toPush("")), 0)
		read, err := f.db.Policy(ctx, f.company.ID, b.ID)
		f.ok(err)
		equal(f, "the error shown", read.Push.Error, "bad value")
	})
}

func TestPolls_FindsCommands(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := f.Context()
		p := f.newPolicy("A")
		a := f.enroll("enterprises/LC1/devices/1", p.ID)
		sent := f.begin(a, command.Lock)
		_, _, err := f.db.Advance(ctx, sent.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent,
			Ref: "enterprises/LC1/devices/1/operations/1"})
		f.ok(err)
		pushed := f.begin(a, command.StatusReport) // to the companion
		_, _, err = f.db.Advance(ctx, pushed.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent,
			Ref: "push/" + pushed.ID})
		f.ok(err)
		due := func() int {
			f.Helper()
			all, err := f.db.CommandsToPoll(ctx, command.Sent, f.clock.Now(), f.clock.Now(), 10)
			f.ok(err)
			return len(all)
		}
		equal(f, "too young", due(), 0)
		f.clock.Advance(time.Minute)
		equal(f, "due", due(), 1)
		f.ok(f.db.SetPolled(ctx, sent.ID, f.clock.Now().Add(time.Minute)))
		equal(f, "asked after", due(), 0)
		f.clock.Advance(time.Minute)
		equal(f, "due again", due(), 1)
		_, _, err = f.db.Advance(ctx, sent.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded})
		f.ok(err)
		equal(f, "final", due(), 0)
		f.clock.Advance(30 * 24 * time.Hour)
		f.ok(f.db.Sweep(ctx, f.clock.Now()))
	})
}

func TestAsset_OfDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("enterprises/LC1/devices/1", "")
		id, err := f.db.AssetOfDevice(f.Context(), f.company.ID, "enterprises/LC1/devices/1")
		f.ok(err)
		equal(f, "asset", id, a.ID)
		_, err = f.db.AssetOfDevice(f.Context(), f.company.ID, "enterprises/LC1/devices/2")
		f.code(fault.NotFound, err)
		_, err = f.db.AssetOfDevice(f.Context(), f.newCompany("other").ID, "enterprises/LC1/devices/1")
		f.code(fault.NotFound, err)
		gone := enrollment.Observation{CompanyID: f.company.ID, Device: "enterprises/LC1/devices/3", Gone: true, ObservedAt: f.clock.Now()}
		f.observe(gone)
		_, err = f.db.AssetOfDevice(f.Context(), f.company.ID, gone.Device)
		f.code(fault.NotFound, err)
	})
}

func TestSignups_AreStoredAndEnd(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := f.Context()
		c, err := f.db.UpdateCompany(ctx, f.company.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
		f.ok(err)
		f.ok(f.db.SaveSignup(ctx, company.Signup{State: "s1", CompanyID: c.ID, Session: "z1", Name: "signupUrls/C1",
			Address: "https://vendor/1", Begun: f.clock.Now()}))
		signup, err := f.db.Signup(ctx, "s1")
		f.ok(err)
		begun := f.clock.Now()
		equal(f, "sign-up", signup, company.Signup{State: "s1", CompanyID: c.ID, Session: "z1", Name: "signupUrls/C1",
			Address: "https://vendor/1", Begun: signup.Begun})
		f.ok(f.db.SetSignupNonce(ctx, "s1", "n"))
		f.code(fault.NotFound, f.db.SetSignupNonce(ctx, "s9", "n"))
		marked, err := f.db.MarkedSignups(ctx, c.ID)
		f.ok(err)
		equal(f, "marked before it is finished", len(marked), 0)
		open, err := f.db.OpenSignup(ctx, c.ID, begun)
		f.ok(err)
		equal(f, "open", open.Address+open.Token, "https://vendor/1")
		_, err = f.db.OpenSignup(ctx, c.ID, begun.Add(time.Second))
		f.code(fault.NotFound, err)
		f.ok(f.db.KeepSignupToken(ctx, "s1", "t"))
		open, err = f.db.OpenSignup(ctx, c.ID, begun)
		f.ok(err)
		equal(f, "returned", open.Returned(), true)
		for range 2 { // the browser may come back twice
			f.ok(f.db.FinishSignup(ctx, "s1", "enterprises/LCnew"))
		}
		marked, err = f.db.MarkedSignups(ctx, c.ID)
		f.ok(err)
		equal(f, "marked", len(marked), 1)
		equal(f, "enterprise", marked[0].Enterprise+marked[0].Nonce, "enterprises/LCnewn")
		f.ok(f.db.SetSignupNonce(ctx, "s1", ""))
		marked, err = f.db.MarkedSignups(ctx, c.ID)
		f.ok(err)
		equal(f, "marked after its enterprise was renamed", len(marked), 0)
		_, err = f.db.OpenSignup(ctx, c.ID, begun)
		f.code(fault.NotFound, err)
		f.code(fault.NotFound, f.db.KeepSignupToken(ctx, "s1", "again"))
		bound, err := f.db.CompanyByEnterprise(ctx, "enterprises/LCnew")
		f.ok(err)
		equal(f, "bound company", bound.ID, c.ID)

		f.code(fault.NotFound, f.db.FinishSignup(ctx, "s9", "enterprises/LCx"))
		f.ok(f.db.SaveSignup(ctx, company.Signup{State: "s2", CompanyID: c.ID, Session: "z2", Name: "signupUrls/C2",
			Address: "https://vendor/2", Begun: f.clock.Now()}))
		f.code(fault.Refused, f.db.FinishSignup(ctx, "s2", "enterprises/LCanother"))
		other := f.newCompany("other")
		f.ok(f.db.SaveSignup(ctx, company.Signup{State: "s3", CompanyID: other.ID, Session: "z3", Name: "signupUrls/C3",
			Address: "https://vendor/3", Begun: f.clock.Now()}))
		_, err = f.db.UpdateCompany(ctx, other.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
		f.ok(err)
		f.code(fault.Refused, f.db.FinishSignup(ctx, "s3", "enterprises/LCnew"))
		f.clock.Advance(100 * 24 * time.Hour)
		f.ok(f.db.Sweep(ctx, f.clock.Now()))
		_, err = f.db.Signup(ctx, "s1")
		f.code(fault.NotFound, err)
	})
}
