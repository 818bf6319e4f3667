package database_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

func (f *fixture) policy(id string) policy.Policy {
	f.Helper()
	p, err := f.db.Policy(f.Context(), f.company.ID, id)
	f.ok(err)
	return p
}

func TestPolicy_IsStoredWhole(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := policy.Policy{ID: "p1", CompanyID: f.company.ID, CompanySlug: "acme", Name: "Kiosk ö", Type: policy.Agent, VROnly: true,
			Version: 1, Document: json.RawMessage(`{"b": [1, 2],  "a": null}`), Description: "d", Labels: []string{"x", "y"},
			Group: "g", CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
		by := policy.Author{Kind: "USER", ID: "u", Name: "Ada"}
		f.ok(f.db.CreatePolicy(f.Context(), p, by, "prp_1"))
		equal(f, "policy", f.policy("p1"), p)
		all, err := f.db.Revisions(f.Context(), f.company.ID, "p1", 20)
		f.ok(err)
		equal(f, "revisions", all, []policy.Revision{{PolicyID: "p1", Revision: 1, Version: 1, SavedAt: p.CreatedAt, SavedBy: by,
			Name: p.Name, Origin: policy.FromCreate, ProposalID: "prp_1", Document: p.Document, Description: "d",
			Labels: p.Labels, Group: "g"}})
	})
}

func TestPolicy_OfAnotherCompanyIsNotFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, other := f.newPolicy("Mine"), f.newCompany("other")
		_, err := f.db.Policy(f.Context(), other.ID, p.ID)
		f.code(fault.NotFound, err)
		_, err = f.db.Revisions(f.Context(), other.ID, p.ID, 20)
		f.code(fault.NotFound, err)
		_, err = f.db.Revision(f.Context(), other.ID, p.ID, 1)
		f.code(fault.NotFound, err)
		f.code(fault.NotFound, f.deletePolicy(f.Context(), other.ID, p.ID, f.clock.Now()))
		next := p
		next.CompanyID = other.ID
		_, err = f.db.SavePolicy(f.Context(), next, 1, policy.Revision{SavedAt: f.clock.Now()})
		f.code(fault.NotFound, err)
		all, total, err := f.db.Policies(f.Context(), policy.Query{CompanyID: other.ID, Limit: 20})
		f.ok(err)
		equal(f, "policies", fmt.Sprint(len(all), total), "0 0")
	})
}

func TestPolicy_NamesAreUnique(t *testing.T) {
	withCompany(t, func(f *fixture) {
		first, second := f.newPolicy("Größe"), f.newPolicy("Other")
		at := f.clock.Now()
		for _, taken := range []string{"Größe", " größe ", "GRÖSSE\t"[:len("GRÖSSE")-2] + "ẞE"} {
			p := policy.Policy{ID: "new", CompanyID: f.company.ID, Name: taken, Type: policy.Agent, Document: json.RawMessage(`{}`)}
			if policy.NameKey(taken) != policy.NameKey(first.Name) {
				continue // the rule of the domain decides; the store follows it
			}
			f.code(fault.Refused, f.db.CreatePolicy(f.Context(), p, policy.Author{}, ""))
			second.Name = taken
			_, err := f.db.SavePolicy(f.Context(), second, 1, policy.Revision{SavedAt: at})
			f.code(fault.Refused, err)
		}
		equal(f, "version after a refused save", f.policy(second.ID).Version, 1)
		// A policy may change the case of its own name; a deleted one gives its name back.
		first.Name = "GRÖßE"
		_, err := f.db.SavePolicy(f.Context(), first, 1, policy.Revision{SavedAt: at})
		f.ok(err)
		f.ok(f.deletePolicy(f.Context(), f.company.ID, first.ID, at))
		f.newPolicy("größe")
	})
}

func TestSavePolicy_OneOfManyWins(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, second := f.newPolicy("Contended"), f.open(f)
		var won, stale atomic.Int32
		var all sync.WaitGroup
		for n := range 20 {
			db := f.db
			if n%2 == 1 {
				db = second
			}
			all.Go(func() {
				next := p
				next.Document = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
				saved, err := db.SavePolicy(f.Context(), next, 1, policy.Revision{SavedAt: f.clock.Now(), Origin: policy.FromProposal})
				switch {
				case err == nil && saved.Version == 2:
					won.Add(1)
				case fault.CodeOf(err) == fault.StaleProposal:
					stale.Add(1)
				default:
					f.Errorf("saved %+v, %v", saved, err)
				}
			})
		}
		all.Wait()
		equal(f, "won and stale", fmt.Sprint(won.Load(), stale.Load()), "1 19")
		revisions, err := f.db.Revisions(f.Context(), f.company.ID, p.ID, 20)
		f.ok(err)
		equal(f, "revisions", len(revisions), 2)
		equal(f, "documents", string(revisions[0].Document), string(f.policy(p.ID).Document))
	})
}

func TestRevisions_AreNumberedAndLimited(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Old")
		for version := 1; version <= 5; version++ {
			p.Name = fmt.Sprintf("Name %d", version+1)
			f.clock.Advance(time.Second)
			saved, err := f.db.SavePolicy(f.Context(), p, version, policy.Revision{SavedAt: f.clock.Now(), Origin: policy.FromPortal})
			f.ok(err)
			equal(f, "version", saved.Version, version+1)
			equal(f, "updatedAt", saved.UpdatedAt, f.clock.Now())
		}
		newest, err := f.db.Revisions(f.Context(), f.company.ID, p.ID, 2)
		f.ok(err)
		equal(f, "newest", words(newest[0].Revision, newest[1].Revision, len(newest)), "6 5 2")
		third, err := f.db.Revision(f.Context(), f.company.ID, p.ID, 3)
		f.ok(err)
		equal(f, "third", words(third.Revision, third.Version, third.Name, third.Origin), "3 3 Name 3 PORTAL")
		_, err = f.db.Revision(f.Context(), f.company.ID, p.ID, 7)
		f.code(fault.NotFound, err)
	})
}

func TestDeletePolicy_InUseIsRefused(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Used")
		a := f.enroll("d1", p.ID)
		equal(f, "devices", f.policy(p.ID).DeviceCount, 1)
		f.code(fault.Refused, f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()))
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, 1, f.clock.Now()))
		f.ok(f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()))
		if got := f.policy(p.ID); !got.Deleted || got.DeviceCount != 0 {
			f.Fatalf("tombstone: %+v", got)
		}
		f.code(fault.NotFound, f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()))
		_, err := f.db.SavePolicy(f.Context(), p, 1, policy.Revision{SavedAt: f.clock.Now()})
		f.code(fault.NotFound, err)
	})
}

func TestPolicies_AreListedInOrder(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ids := map[string]string{}
		for _, n := range []string{"b", "C", "a"} {
			f.clock.Advance(time.Second)
			ids[n] = f.newPolicy(n).ID
		}
		f.observe(f.joined("d", ids["b"]))
		gone := f.newPolicy("gone")
		f.ok(f.deletePolicy(f.Context(), f.company.ID, gone.ID, f.clock.Now()))
		a := f.policy(ids["a"])
		_, err := f.db.SavePolicy(f.Context(), a, 1, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		for _, row := range []struct {
			query policy.Query
			want  string
			total int64
		}{
			{policy.Query{Order: policy.ByName, Limit: 20}, "[C a b]", 3},
			{policy.Query{Order: policy.ByName, Descending: true, Limit: 20}, "[b a C]", 3},
			{policy.Query{Order: policy.ByUpdatedAt, Limit: 20}, "[b C a]", 3},
			{policy.Query{Order: policy.ByVersion, Descending: true, Limit: 1}, "[a]", 3},
			{policy.Query{Order: policy.ByDevices, Descending: true, Limit: 1}, "[b]", 3},
			{policy.Query{Order: policy.ByName, Limit: 1, Offset: 1}, "[a]", 3},
			{policy.Query{Order: policy.ByName, Limit: 1, Offset: 3}, "[]", 3},
			{policy.Query{Order: policy.ByName, Limit: 20, IDs: []string{ids["a"], ids["b"], gone.ID}}, "[a b]", 2},
			{policy.Query{Order: policy.ByName, Limit: 20, IDs: []string{}}, "[]", 0},
		} {
			row.query.CompanyID = f.company.ID
			page, total, err := f.db.Policies(f.Context(), row.query)
			f.ok(err)
			names := []string{}
			for _, p := range page {
				names = append(names, p.Name)
			}
			equal(f, fmt.Sprintf("%+v", row.query), words(names, total), words(row.want, row.total))
		}
	})
}

func TestPushes_FollowTheRevision(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.newPolicy("a"), f.newPolicy("b")
		behind := func() string {
			all, err := f.db.PoliciesToPush(f.Context(), "", f.clock.Now(), 10)
			f.ok(err)
			names := []string{}
			for _, p := range all {
				names = append(names, p.Name)
			}
			return fmt.Sprint(names)
		}
		f.ok(f.db.SetPushed(f.Context(), a.ID, 1, 41, f.clock.Now()))
		f.ok(f.db.SetPushed(f.Context(), b.ID, 1, 7, f.clock.Now()))
		equal(f, "behind", behind(), "[]")
		equal(f, "push", f.policy(a.ID).Push, policy.Push{Version: 1, PushedAt: f.clock.Now(), TriedAt: f.clock.Now()})

		_, err := f.db.SavePolicy(f.Context(), a, 1, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		equal(f, "behind", behind(), "[a]")
		f.ok(f.db.SetPushed(f.Context(), a.ID, 2, 42, f.clock.Now()))
		f.ok(f.db.SetPushed(f.Context(), a.ID, 1, 41, f.clock.Now())) // an older push's answer comes late
		equal(f, "pushed", f.policy(a.ID).Push.Version, 2)
		reported := map[int64]int{}
		for _, push := range []int64{41, 42} {
			device := fmt.Sprint("d", push)
			joined := f.observe(f.joined(device, a.ID))
			report := f.observation(device)
			report.AppliedPolicy, report.AppliedPush = a.ID, push
			f.observe(report)
			reported[push] = f.asset(joined.AssetID).Device.PolicyApplied
		}
		equal(f, "our versions", reported, map[int64]int{41: 1, 42: 2})

		c := f.newPolicy("c")
		figures := func() string {
			waiting, failing, err := f.db.PoliciesBehind(f.Context())
			f.ok(err)
			return fmt.Sprint(waiting, failing)
		}
		equal(f, "waiting, failing", figures(), "1 0")
		f.ok(f.db.SetPushFailed(f.Context(), c.ID, 1, "refused", f.clock.Now(), nil))
		equal(f, "waiting, failing", figures(), "0 1")
		_, err = f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
		f.ok(err)
		equal(f, "behind while not connected", behind(), "[]")
		equal(f, "waiting, failing", figures(), "0 0")

		// Devices report 43 before it is known that it is our version 3, as after an apply whose answer was lost.
		applied := map[string]int{}
		for n, push := range []int64{43, 44} { // in this order: 43 is known after the first
			device := fmt.Sprint("d", n+1)
			joined := f.observe(f.joined(device, a.ID))
			report := f.observation(device)
			report.AppliedPolicy, report.AppliedPush = a.ID, push
			f.observe(report)
			f.ok(f.db.SetPushed(f.Context(), b.ID, 2, push, f.clock.Now()))
			applied[device] = f.asset(joined.AssetID).Device.PolicyApplied
			f.ok(f.db.SetPushed(f.Context(), a.ID, 3, 43, f.clock.Now()))
			applied[device+" later"] = f.asset(joined.AssetID).Device.PolicyApplied
		}
		equal(f, "applied", applied, map[string]int{"d1": 1, "d1 later": 3, "d2": 1, "d2 later": 1})
	})
}

// The platform keeps its version when what is saved means the same to it, and devices then have nothing new to report.
func TestPushes_UnderTheVersionBefore(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, other := f.newPolicy("p"), f.newPolicy("other")
		devices := map[string]string{}
		applied := func() string {
			all := []int{}
			for _, name := range []string{"old", "current", "unknown", "elsewhere"} {
				all = append(all, f.asset(devices[name]).Device.PolicyApplied)
			}
			return fmt.Sprint(all)
		}
		f.ok(f.db.SetPushed(f.Context(), p.ID, 1, 6, f.clock.Now()))
		f.ok(f.db.SetPushed(f.Context(), p.ID, 2, 7, f.clock.Now()))
		f.ok(f.db.SetPushed(f.Context(), other.ID, 2, 7, f.clock.Now()))
		for name, push := range map[string]int64{"old": 6, "current": 7, "unknown": 8, "elsewhere": 7} {
			of := p.ID
			if name == "elsewhere" {
				of = other.ID
			}
			devices[name] = f.observe(f.joined(name, of)).AssetID
			report := f.observation(name)
			report.AppliedPolicy, report.AppliedPush = of, push
			f.observe(report)
		}
		equal(f, "applied", applied(), "[1 2 1 2]")
		f.ok(f.db.SetPushed(f.Context(), p.ID, 3, 7, f.clock.Now()))
		equal(f, "applied after a save that means the same", applied(), "[1 3 1 2]")
		f.ok(f.db.SetPushed(f.Context(), p.ID, 2, 7, f.clock.Now())) // its answer comes late
		equal(f, "applied after a late answer", applied(), "[1 3 1 2]")
		f.ok(f.db.SetPushed(f.Context(), p.ID, 4, 6, f.clock.Now())) // the platform had lost the policy
		equal(f, "applied after numbers that began again", applied(), "[1 3 1 2]")
	})
}

func TestPolicies_OfATypeWithoutDocuments(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for id, of := range map[string]policy.Type{"p1": policy.Platform, "p2": policy.Agent} {
			f.ok(f.db.CreatePolicy(f.Context(), policy.Policy{ID: id, CompanyID: f.company.ID, Name: id, Type: of, Description: "d",
				Document: json.RawMessage(`{"a":1}`)}, policy.Author{}, ""))
		}
		page, total, err := f.db.Policies(f.Context(), policy.Query{CompanyID: f.company.ID, Type: policy.Agent, Limit: 20})
		f.ok(err)
		if len(page) != 1 || total != 1 {
			f.Fatalf("got %+v of %d, want p2", page, total)
		}
		got := page[0]
		equal(f, "the policy", words(got.ID, got.Description, string(got.Document)), words("p2", "d", ""))
	})
}
