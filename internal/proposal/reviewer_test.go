package proposal_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/expect"
)

func (r *fixture) reviewer() proposal.Reviewer {
	return proposal.Reviewer{Service: r.service, Store: r.db}
}

// again repeats a proposal as the portal does: through the kernel.
func (r *fixture) again(call operation.Call, id string) (proposal.Proposal, error) {
	r.Helper()
	registry := &operation.Registry{}
	proposal.Define(registry, r.service)
	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: r.db, Now: r.clock.Now}, Now: r.clock.Now})
	name, args, err := r.reviewer().Repeat(r.Context(), call.Principal, id)
	if err != nil {
		return proposal.Proposal{}, err
	}
	text, err := json.Marshal(args)
	r.ok(err)
	out := kernel.Run(r.Context(), registry.Find(name), call.Principal, operation.Meta{}, operation.Flat(text))
	if out.Fault != nil {
		return proposal.Proposal{}, out.Fault
	}
	return r.service.Look(r.Context(), call.Principal, out.Result.(proposal.View).ProposalID)
}

// person is a user of the fixture's company, limited to some policies or not.
func (r *fixture) person(display string, role account.Role, only ...string) operation.Call {
	r.Helper()
	rights, _ := role.Rights()
	user := account.User{ID: resource.NewID(), CompanyID: r.company.ID, Email: display + "@" + resource.NewID() + ".test",
		Name: display, Role: role,
		Rights: rights, Policies: only, CreatedAt: r.clock.Now()}
	r.ok(r.db.CreateUser(r.Context(), user))
	return operation.Call{Principal: user.Principal(r.company.Slug, access.Settings{})} // every gate is shut
}

// A person who likes a key's proposal makes the same his own and applies that;
// the key's stays the key's (contract 5.6).
func TestReview_ByPeople(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		people, ada, bob := r.reviewer(), r.person("Ada", account.Manager), r.person("Bob", account.Admin)
		p := r.newPolicy("Warehouse", 2)
		made, err := r.service.ProposeChanges(t.Context(), r.key("k"), p.ID, set("FACTORY_RESET", "BLOCK"))
		r.ok(err)
		found, err := people.Look(t.Context(), ada.Principal, made.ID)
		r.ok(err)
		expect.Equal(t, "found", expect.Values{"mine": {found.Mine, false}, "appliable": {found.Appliable(), false},
			"stale": {found.Stale, false},
			"gone":  {found.Gone, false}, "maker": {found.Maker.Kind, access.APIKey}, "number of fields": {len(found.Fields), 1},
			"why": {found.Why, []string{"it changes Factory reset from Settings"}}, "devices": {found.Policy.DeviceCount, 2}})
		_, err = r.service.Apply(t.Context(), ada, made.ID, "Warehouse")
		r.code(fault.NotFound, err)

		own, err := r.again(ada, made.ID)
		r.ok(err)
		hers := own
		hers.Owner.Kind, hers.Owner.ID, hers.Fields, hers.Impact = access.User, ada.Principal.ID, made.Fields, proposal.High
		if same(t, "her own", own, hers); own.ID == made.ID {
			t.Error("she applies the other's proposal")
		}
		look, err := people.Look(t.Context(), ada.Principal, own.ID)
		if r.ok(err); !look.Appliable() || look.Maker.UserName != "Ada" {
			t.Errorf("own %+v", look)
		}
		if theirs, err := people.Look(t.Context(), bob.Principal, own.ID); err != nil || theirs.Mine {
			t.Errorf("Bob sees %+v, %v", theirs, err)
		}
		_, err = r.service.Apply(t.Context(), bob, own.ID, "Warehouse")
		r.code(fault.NotFound, err)
		_, err = r.service.Apply(t.Context(), r.key("k"), own.ID, "Warehouse")
		r.code(fault.NotFound, err)
		_, err = r.service.Apply(t.Context(), ada, own.ID, "")
		r.code(fault.ConfirmationRequired, err)
		done, err := r.service.Apply(t.Context(), ada, own.ID, " warehouse ")
		if r.ok(err); done.Status != proposal.Succeeded || done.Version != 2 {
			t.Errorf("applied %+v", done)
		}
		newest := r.revisions(p.ID)[0]
		want := newest
		want.SavedBy, want.ProposalID, want.Origin = policy.Author{Kind: "USER", ID: ada.Principal.ID, Name: "Ada"},
			own.ID, policy.FromProposal
		same(t, "the revision", newest, want)

		stale, err := people.Look(t.Context(), ada.Principal, made.ID)
		if r.ok(err); !stale.Stale || len(stale.Since.Moves) != 1 || stale.Since.Moves[0].Setting.ID != "FACTORY_RESET" {
			t.Errorf("stale %+v", stale)
		}
		_, err = r.again(ada, made.ID)
		r.code(fault.Refused, err) // nothing would change any more
	})
}

func TestReview_PeopleProposeCopiesAndRollbacks(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	people, ada := r.reviewer(), r.person("Ada", account.Manager)
	p := r.newPolicy("Warehouse", 1)
	first, err := r.service.ProposeChanges(t.Context(), ada, p.PathName(), set("CAMERA", "block"))
	r.ok(err)
	_, err = r.service.Apply(t.Context(), ada, first.ID, "")
	r.ok(err)
	back, err := r.service.ProposeRollback(t.Context(), ada, p.ID, 1)
	r.ok(err)
	look, err := people.Look(t.Context(), ada.Principal, back.ID)
	if r.ok(err); len(look.Why) != 1 || look.Why[0] != "it returns to an earlier revision" || len(look.Others) != 0 {
		t.Errorf("a rollback %+v", look)
	}
	copied, err := r.service.ProposeCopy(t.Context(), ada, p.ID, "Copy", set("SMS", "BLOCK"))
	r.ok(err)
	bob := r.person("Bob", account.Manager)
	again, err := r.again(bob, copied.ID)
	if r.ok(err); again.Next.Name != "Copy" || again.Next.PolicyID == copied.Next.PolicyID || len(again.Fields) != 1 {
		t.Errorf("again %+v", again)
	}
	r.clock.Advance(time.Millisecond)
	again, err = r.again(bob, back.ID)
	if r.ok(err); again.Capability != proposal.RollBack || again.Request.Revision != 1 {
		t.Errorf("again %+v", again)
	}
	all, err := people.List(t.Context(), bob.Principal, proposal.Query{})
	if r.ok(err); len(all) != 5 || all[0].ID != again.ID {
		t.Errorf("%d are listed", len(all))
	}
	if waiting, err := people.List(t.Context(), bob.Principal, proposal.Query{Waiting: true}); err != nil || len(waiting) != 4 {
		t.Errorf("%d wait, %v", len(waiting), err)
	}
}

// Looking and applying take the right to edit policies and stay within the
// person's limits; the budget is the person's own.
func TestReview_Rights(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	people := r.reviewer()
	p, other := r.newPolicy("Warehouse", 0), r.newPolicy("Shop", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	viewer, limited := r.person("Vic", account.Viewer), r.person("Lim", account.Manager, other.ID)
	stranger := r.person("Eve", account.Admin)
	stranger.Principal.CompanyID = r.newCompany("other", "").ID
	for who, want := range map[*operation.Call]fault.Code{&viewer: fault.Forbidden, &limited: fault.NotFound, &stranger: fault.NotFound} {
		_, err := people.Look(t.Context(), who.Principal, made.ID)
		r.code(want, err)
		_, err = r.again(*who, made.ID)
		r.code(want, err)
	}
	_, err := people.List(t.Context(), viewer.Principal, proposal.Query{})
	r.code(fault.Forbidden, err)
	for who, want := range map[*operation.Call]int{&limited: 0, &stranger: 0} {
		all, err := people.List(t.Context(), who.Principal, proposal.Query{CompanyID: r.company.ID})
		if err != nil || len(all) != want {
			t.Errorf("%s: %d proposals, %v; want %d", who.Principal.Name, len(all), err, want)
		}
	}
	_, err = people.Look(t.Context(), r.person("Ada", account.Admin).Principal, "prp_nothing")
	r.code(fault.NotFound, err)

	ada := r.person("Ada", account.Manager)
	for range operation.PeopleCalls {
		_, err := r.again(ada, made.ID)
		r.ok(err)
	}
	_, err = r.again(ada, made.ID)
	r.code(fault.RateLimited, err)
	_, err = r.again(r.person("Bob", account.Manager), made.ID)
	r.ok(err)
	r.clock.Advance(time.Minute)
	_, err = r.again(ada, made.ID)
	r.ok(err)
}

// A review names the size of the fleet when that alone makes the impact HIGH,
// and says that a policy is gone.
func TestReview_LargeAndDeletedPolicies(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	people, ada := r.reviewer(), r.person("Ada", account.Admin)
	p := r.newPolicy("Fleet", proposal.HighImpactDevices-1)
	device := r.enroll(p)
	made := r.propose(p, "CAMERA", "BLOCK")
	look, err := people.Look(t.Context(), ada.Principal, made.ID)
	if r.ok(err); len(look.Why) != 1 || look.Why[0] != "50 or more devices use the policy" {
		t.Errorf("why %q", look.Why)
	}
	r.observe(p, device, true)
	look, err = people.Look(t.Context(), ada.Principal, made.ID)
	if r.ok(err); len(look.Why) != 1 || look.Why[0] != "50 or more devices used the policy after it was proposed" {
		t.Errorf("with a device less: why %q", look.Why)
	}
	empty := r.newPolicy("Empty", 0)
	lost, err := r.service.ProposeChanges(t.Context(), ada, empty.ID, set("CAMERA", "BLOCK"))
	r.ok(err)
	r.ok(r.deletePolicy(empty.ID))
	if look, err := people.Look(t.Context(), ada.Principal, lost.ID); err != nil || !look.Gone || look.Appliable() || look.Why != nil {
		t.Errorf("gone: %+v, %v", look, err)
	}
}
