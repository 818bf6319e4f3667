package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// pushed notes that the platform has the present version of a policy.
func (f *fixture) pushed(id string) {
	f.Helper()
	p, err := f.db.Policy(f.Context(), f.company.ID, id)
	f.ok(err)
	f.ok(f.db.SetPushed(f.Context(), id, p.Version, 1, f.clock.Now()))
}

// behind reports whether the platform is to be sent a policy.
func (f *fixture) behind(id string) bool {
	f.Helper()
	all, err := f.db.PoliciesToPush(f.Context(), "", f.clock.Now().Add(time.Hour), 100)
	f.ok(err)
	return slices.ContainsFunc(all, func(p policy.Policy) bool { return p.ID == id })
}

// What the platform has of a change is saved, as the copy of the platform where its lease was held for the whole time.
func TestProposals_Saved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, c := range []struct {
			name   string
			after  time.Duration
			held   bool // the platform took it
			behind bool
		}{
			{"sent while the lease was held", time.Second, true, false},
			{"sent while another could have the lease", time.Hour, true, true},
			{"not sent", time.Second, false, true},
		} {
			p := f.newPolicy(c.name)
			f.pushed(p.ID)
			made := f.mustPropose(p, access.ApproveNone, nil)
			equal(f, c.name+": verdict", f.claim(made.ID), proposal.Begun)
			f.clock.Advance(c.after)
			f.finish(made.ID, "h", proposal.Ending{Save: true, Held: c.held, VendorVersion: 2, Status: proposal.Succeeded})
			now, err := f.db.Policy(f.Context(), f.company.ID, p.ID)
			f.ok(err)
			equal(f, c.name, words(now.Version, f.behind(p.ID)), words(2, c.behind))
		}
	})
}

// What became doubtful is not saved over what was saved since, or under a name that was given away since: the platform is
// sent what is saved.
func TestProposals_NotSavedAnyMore(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for name, c := range map[string]struct {
			edit  func(*proposal.Proposal)
			since func(p policy.Policy)
			next  int // the version of the policy that is proposed; 0: there is none
		}{
			"the policy was saved": {nil, func(p policy.Policy) {
				p.Version++
				_, err := f.db.SavePolicy(f.Context(), p, 1, policy.Revision{SavedAt: f.clock.Now()})
				f.ok(err)
			}, 2},
			"the policy was deleted": {nil, func(p policy.Policy) {
				f.ok(f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()))
			}, 1},
			"the name was given away": {func(p *proposal.Proposal) { p.Next.Name, p.Renames = "New", true },
				func(policy.Policy) { f.newPolicy("New") }, 1},
			"the name of the copy was given away": {func(p *proposal.Proposal) {
				p.Capability, p.Next.PolicyID, p.Next.Name, p.Renames = proposal.CreatePolicy, resource.NewID(), "Copy", true
			}, func(policy.Policy) { f.newPolicy("Copy") }, 0},
		} {
			p := f.newPolicy("Policy of which " + name)
			made := f.mustPropose(p, access.ApproveNone, c.edit)
			equal(f, name+": verdict", f.claim(made.ID), proposal.Begun)
			f.finish(made.ID, "h", proposal.Ending{Status: proposal.Unconfirmed, LookIn: time.Second})
			c.since(p)
			f.pushed(p.ID)
			f.clock.Advance(time.Minute)
			_, taken, err := f.db.TakeOverProposal(f.Context(), made.ID, "k", time.Minute)
			f.ok(err)
			equal(f, name+": taken over", taken, true)
			f.finish(made.ID, "k", proposal.Ending{Save: true, Held: true, VendorVersion: 2, Status: proposal.Succeeded})
			now, err := f.db.Policy(f.Context(), f.company.ID, made.Next.PolicyID)
			if c.next == 0 {
				f.code(fault.NotFound, err)
				continue
			}
			f.ok(err)
			equal(f, name, words(now.Version, now.Name, f.behind(p.ID)), words(c.next, p.Name, !now.Deleted))
		}
	})
}

// A proposal is looked after once it is due, by one who gets the lease of its policy.
func TestProposals_TakenOver(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Warehouse")
		made := f.mustPropose(p, access.ApproveNone, nil)
		takes := func(when string, want bool) {
			f.Helper()
			_, taken, err := f.db.TakeOverProposal(f.Context(), made.ID, "k", time.Minute)
			f.ok(err)
			equal(f, when, taken, want)
		}
		takes("while it is pending", false)
		equal(f, "verdict", f.claim(made.ID), proposal.Begun)
		takes("while its holder has the lease", false)
		e := proposal.Ending{ID: made.ID, Holder: "k", Status: proposal.Failed}
		if _, held, err := f.db.FinishProposal(f.Context(), e); err != nil || held {
			f.Errorf("ended by another: %t, %v", held, err)
		}
		f.clock.Advance(2 * time.Minute)
		held, err := f.db.Lease(f.Context(), policy.LeaseKey(p.ID), "pusher", time.Minute)
		f.ok(err)
		equal(f, "held by another", held, true)
		takes("while another has the lease", false)
		f.clock.Advance(2 * time.Minute)
		takes("once it is due", true)
		takes("once it was taken over", false)
		f.finish(made.ID, "k", proposal.Ending{Status: proposal.Unconfirmed, LookIn: time.Second})
		f.clock.Advance(time.Second)
		takes("for another look", true)
		f.finish(made.ID, "k", proposal.Ending{Looked: true})
		takes("after the last look", false)
		equal(f, "recorded", f.recorded(activity.ProposalApplied), 1)
	})
}

// A proposal that expired without a decision goes 30 days later, once its end is told. One that was decided about, also
// without effect, was applied or has failed stays.
func TestSweep_UndecidedProposals(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = access.ApproveAll, 0 })
		ada := f.person("Ada", true)
		made := map[string]string{}
		propose := func(name string) string {
			made[name] = f.mustPropose(f.newPolicy(name), access.ApproveNone, nil).ID
			return made[name]
		}
		propose("undecided")
		propose("untold")
		propose("told by an earlier version")
		f.ok(f.approveChange(propose("approved"), ada))
		f.ok(f.approveChange(propose("approved without effect"), ada))
		f.ok(f.db.Write(f.Context(), nil, `UPDATE proposals SET approval = '', approved_by = '', approved_at = 0, signed_id = ''
			WHERE id = '`+made["approved without effect"]+`'`))
		_, err := f.db.FailProposal(f.Context(), propose("failed"), fault.Refused, "no")
		f.ok(err)
		f.setControls(func(k *access.Controls) { k.ApplyApproval = access.ApproveNone })
		for name, status := range map[string]proposal.Status{"applied": proposal.Succeeded, "unconfirmed": proposal.Unconfirmed} {
			equal(f, "verdict", f.claim(propose(name)), proposal.Begun)
			f.finish(made[name], "h", proposal.Ending{Status: status})
		}
		gone := func(when string, want ...string) {
			f.Helper()
			f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
			var names []string
			for name, id := range made {
				if _, err := f.db.Proposal(f.Context(), f.company.ID, id); fault.CodeOf(err) == fault.NotFound {
					names = append(names, name)
				} else {
					f.ok(err)
				}
			}
			slices.Sort(names)
			equal(f, "gone "+when, names, want)
		}
		f.clock.Advance(proposal.Lifetime + time.Minute)
		f.ok(f.db.TellDue(f.Context()))
		f.ok(f.db.Write(f.Context(), nil, `UPDATE proposals SET expiry_told = 0 WHERE id = '`+made["untold"]+`'`))
		f.ok(f.db.Write(f.Context(), nil, `UPDATE proposals SET expiry_told = 1 WHERE id = '`+made["told by an earlier version"]+`'`))
		f.clock.Advance(approval.KeepFor - 2*time.Minute)
		gone("before 30 days")
		f.clock.Advance(2 * time.Minute)
		gone("after 30 days", "undecided")
		f.ok(f.db.TellDue(f.Context()))
		gone("once both are told", "undecided", "untold")
		_, err = f.db.Attention(f.Context(), attention.Query{CompanyID: f.company.ID})
		f.ok(err)
		equal(f, "entries of the log", f.recorded(activity.ProposalMade), len(made))
	})
}
