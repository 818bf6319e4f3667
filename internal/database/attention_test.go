package database_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// waits are the kinds and names of what waits in the fixture's company.
func (f *fixture) waits(policies ...string) (all []string) {
	f.Helper()
	items, err := f.db.Attention(f.Context(),
		attention.Query{CompanyID: f.company.ID, Policies: policies, Rule: f.now().Controls.ApplyApproval})
	f.ok(err)
	for _, i := range items {
		all = append(all, string(i.Kind)+" "+i.Name)
	}
	return all
}

// ends makes a command end in a state.
func (f *fixture) ends(c command.Command, to command.State, outcome string) {
	f.Helper()
	_, moved, err := f.db.Advance(f.Context(), c.ID,
		command.Transition{From: []command.State{command.Prepared, command.Sent, command.Unconfirmed}, To: to, Outcome: outcome})
	if f.ok(err); !moved {
		f.Fatalf("%s did not become %s", c.Type, to)
	}
}

// Each kind is listed while it waits, goes by itself, and is of one company.
func TestAttention(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada, all := f.person("ada", true), f.fleet(3)
		f.wants(nil)
		f.destructiveApproval()
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		wipe := f.refusal(f.db, f.asking(all[0], command.WipeCompanyData, "d"))
		f.wants([]string{"AUTHORIZATION " + all[0].Identification})
		p := f.newPolicy("Office")
		f.propose(p, access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"})
		f.propose(p, access.Actor{Kind: access.User, ID: ada.ID, UserID: ada.ID, Name: "ada"}) // a person needs no approval
		f.setLimit(50, 60)
		waiting := f.controls(ada, limitTo(100))
		two := []string{"AUTHORIZATION " + all[0].Identification, "APPROVAL Office", "LOOSENING "}
		f.wants(two)
		f.wants(two[1:], p.ID)
		f.wants(two[2:], resource.NewID())
		f.setControls(func(c *access.Controls) { c.DestructiveApproval = false })
		unknown, failed := f.begin(all[1], command.Lock), f.begin(all[2], command.WipeCompanyData)
		f.ends(unknown, command.Unconfirmed, "")
		f.ends(failed, command.Failed, "refused")
		f.wants(append(slices.Clone(two), "FAILED_WIPE "+all[2].Identification, "UNCONFIRMED "+all[1].Identification))
		acme := f.company
		f.company = f.newCompany("other")
		f.wants(nil)
		f.company = acme

		f.clock.Advance(time.Second)
		f.begin(all[1], command.Lock) // the same command again
		f.begin(all[2], command.WipeCompanyData)
		f.approve(wipe.ID, ada)
		f.ok(f.db.CancelLoosening(f.Context(), f.company.ID, waiting[0].ID))
		f.wants([]string{"APPROVAL Office"})
		f.clock.Advance(proposal.ApprovalLifetime)
		f.wants(nil)
	})
}

func (f *fixture) wants(want []string, policies ...string) {
	f.Helper()
	if got := f.waits(policies...); !slices.Equal(got, want) {
		f.Errorf("waits %q, want %q", got, want)
	}
}

// listedSince fails unless the only item waits since a time, or since a moment later.
func (f *fixture) listedSince(want time.Time) {
	f.Helper()
	items, err := f.db.Attention(f.Context(), attention.Query{CompanyID: f.company.ID})
	f.ok(err)
	if len(items) != 1 || items[0].At.Before(want.Truncate(time.Millisecond)) || items[0].At.After(f.clock.Now()) {
		f.Errorf("%+v waits, want one item since %s", items, want)
	}
}

// Old commands are listed for a week, and those that a stop canceled are not.
func TestAttention_Commands(t *testing.T) {
	withCompany(t, func(f *fixture) {
		all := f.fleet(2)
		canceled := f.begin(all[0], command.WipeCompanyData)
		f.ends(canceled, command.Failed, "cancelled: the company was stopped")
		f.wants(nil)
		c := f.begin(all[1], command.Reboot)
		f.ends(c, command.Unconfirmed, "")
		f.wants([]string{"UNCONFIRMED " + all[1].Identification})
		f.ends(c, command.Succeeded, "done after all")
		f.wants(nil)
		f.ends(f.begin(all[1], command.Lock), command.Unconfirmed, "")
		f.clock.Advance(attention.ShownFor)
		f.wants(nil)
	})
}

// A wipe waits for a person from its bad end, however long the device was away before.
func TestAttention_WipeThatFailedLate(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.fleet(1)[0]
		for _, to := range []command.State{command.Failed, command.Unconfirmed} {
			c := f.begin(a, command.WipeCompanyData)
			f.clock.Advance(attention.ShownFor + 24*time.Hour)
			_, _, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: to})
			f.ok(err)
			f.clock.Advance(attention.ShownFor - time.Hour)
			f.wants([]string{map[command.State]string{command.Failed: "FAILED_WIPE ", command.Unconfirmed: "UNCONFIRMED "}[to] +
				a.Identification})
			f.clock.Advance(time.Hour)
			f.wants(nil)
		}
	})
}

// A change of a policy whose outcome is not known is listed for a week, or until the policy is
// changed: by itself after all, or in another way.
func TestAttention_UnconfirmedChanges(t *testing.T) {
	withCompany(t, func(f *fixture) {
		one, two := f.newPolicy("One"), f.newPolicy("Two")
		doubt := func(p policy.Policy) proposal.Proposal {
			made := f.propose(p, access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"})
			f.claim(made.ID)
			f.finish(made.ID, "h", proposal.Ending{Status: proposal.Unconfirmed, LookIn: time.Millisecond})
			return made
		}
		saved := doubt(one)
		doubt(two)
		f.wants([]string{"UNCONFIRMED_CHANGE One", "UNCONFIRMED_CHANGE Two"})
		f.wants([]string{"UNCONFIRMED_CHANGE Two"}, two.ID)
		f.clock.Advance(time.Second)
		_, taken, err := f.db.TakeOverProposal(f.Context(), saved.ID, "h", time.Minute)
		if f.ok(err); !taken {
			f.Fatal("the proposal was not due")
		}
		f.finish(saved.ID, "h", proposal.Ending{Save: true, Held: true, Status: proposal.Succeeded})
		f.wants([]string{"UNCONFIRMED_CHANGE Two"})
		f.clock.Advance(attention.ShownFor - time.Minute)
		f.wants([]string{"UNCONFIRMED_CHANGE Two"})
		f.clock.Advance(time.Minute)
		f.wants(nil)
		doubt(two)
		f.wants([]string{"UNCONFIRMED_CHANGE Two"})
		next := f.propose(two, access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"})
		f.clock.Advance(time.Minute)
		f.claim(next.ID)
		f.finish(next.ID, "h", proposal.Ending{Save: true, Held: true, Status: proposal.Succeeded})
		f.wants(nil)
	})
}

// A job that the service paused is listed until a person resumes or cancels it, and one that a
// person paused is not.
func TestAttention_PausedJobs(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		u, p := f.jobMaker()
		j, err := r.service.Create(f.Context(), p, job.Spec{Command: "reboot", Words: "all=true",
			Filter: asset.Filter{CompanyID: f.company.ID}, Rate: 1})
		f.ok(err)
		move := func(to job.Status, why string) {
			_, err := f.db.MoveJob(f.Context(), f.company.ID, j.ID, to, why)
			f.ok(err)
		}
		move(job.Paused, job.ByPerson+"Ada")
		f.wants(nil)
		move(job.Running, "")
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		f.clock.Advance(time.Hour)
		paused := f.clock.Now()
		f.goOn(j, 2, r)
		f.wants([]string{"PAUSED_JOB reboot"})
		f.listedSince(paused)
		f.clock.Advance(attention.ShownFor)
		f.wants([]string{"PAUSED_JOB reboot"})
		move(job.Running, "")
		f.wants(nil)
		f.ok(f.settings(func(s *access.Settings) { s.Stop = access.Stop{At: f.clock.Now(), Reason: "an incident"} }))
		f.wants([]string{"PAUSED_JOB reboot"})
		move(job.Canceled, "")
		f.wants(nil)
	})
}

// Mail, which divides what waits among people, asks for more items of a kind than one person is shown.
func TestAttention_AsManyAsAreAskedFor(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for range 3 {
			paused := job.Job{ID: resource.NewID(), CompanyID: f.company.ID, Command: "reboot", Status: job.Paused, Rate: 1, Total: 1,
				CreatedAt: f.clock.Now(), StartsAt: f.clock.Now(), Maker: access.Actor{Kind: access.User, ID: "u"}}
			_, err := f.db.CreateJob(f.Context(), paused, []string{"asset"})
			f.ok(err)
		}
		for most, want := range map[int]int{0: 3, 2: 2, 1000: 3} {
			items, err := f.db.Attention(f.Context(), attention.Query{CompanyID: f.company.ID, Most: most})
			f.ok(err)
			equal(f, fmt.Sprintf("items of at most %d", most), len(items), want)
		}
	})
}

// Who asked for a loosening, or by the rule of a second person for a command, is not one
// who decides, and a limited user sees what concerns the user's policies.
func TestItem_Concerns(t *testing.T) {
	t.Parallel()
	admin := access.Approver{UserID: "ada", Permissions: access.All, Manages: true}
	loosening := attention.Item{Kind: attention.Loosening, Matter: access.Matter{Administers: true, AskedBy: "ada"}}
	call := attention.Item{Kind: attention.Authorization,
		Matter: access.Matter{Needs: access.DevicesRead | access.DevicesCommandDestructive, AskedBy: "ada", Policies: []string{"p"}}}
	move := attention.Item{Kind: attention.Authorization, Matter: approval.Authorization{Call: approval.Call{
		Move: approval.Move{From: approval.Policy{ID: "p"}, To: approval.Policy{ID: "q"}}}}.Matter("p")}
	editor := access.Approver{UserID: "eve", Permissions: access.PoliciesRead | access.PoliciesWrite}
	bea := access.Approver{UserID: "bea", Permissions: access.DevicesRead}
	paused := attention.Item{Kind: attention.PausedJob,
		Matter: access.Matter{Needs: access.DevicesRead | access.DevicesCommand, AskedBy: "ada"}}
	ada := access.Approver{UserID: "ada", Permissions: access.All, Policies: []string{"q"}}
	limited := access.Approver{UserID: "cid", Permissions: access.All, Policies: []string{"q"}}
	for _, c := range []struct {
		name              string
		item              attention.Item
		by                access.Approver
		second            bool
		visible, concerns bool
	}{
		{"the asker of a loosening", loosening, admin, false, true, false},
		{"another without the right", loosening, bea, false, false, false},
		{"the maker of the key", call, admin, false, true, true},
		{"the maker of the key, with a second person", call, admin, true, true, false},
		{"a viewer", call, bea, false, true, false},
		{"a user of other policies", call, limited, false, false, false},
		{"a move, for an administrator", move, admin, false, true, true},
		{"a move, for who edits policies and sees no devices", move, editor, false, false, false},
		{"a command that any viewer may decide, for who sees no devices", attention.Item{Kind: attention.Authorization}, editor, false,
			false, false},
		{"a paused job", paused, admin, true, true, true},
		{"a paused job of another, for a limited user", paused, limited, false, false, false},
		{"a paused job of a limited user", paused, ada, true, true, true},
		{"a paused job, for a viewer", paused, bea, false, true, false},
		{"a change with an unknown outcome, for a viewer", attention.Item{Kind: attention.UnconfirmedChange,
			Matter: access.Matter{Needs: access.PoliciesRead | access.PoliciesWrite}},
			access.Approver{UserID: "bea", Permissions: access.PoliciesRead}, false, false, false},
	} {
		controls := access.Controls{SecondPerson: c.second}
		if c.item.Seen(c.by) != c.visible || c.item.Concerns(c.by, controls) != c.concerns {
			t.Errorf("%s: visible %t, concerns %t", c.name, c.item.Seen(c.by), c.item.Concerns(c.by, controls))
		}
		if c.item.Signed() && c.item.May(c.by, controls, time.Now()) {
			t.Errorf("%s may decide without a passkey", c.name)
		}
	}
}
