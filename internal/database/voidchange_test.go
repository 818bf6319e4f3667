package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

// The right that one person loses takes back what this person approved, and nothing that
// others approved.
func TestVoid_OthersApprovalsStand(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) {
			c.ApplyApproval, c.DestructiveApproval, c.ApproverAge = access.ApproveAll, true, 0
		})
		ada, bob := f.person("Ada", true), f.person("Bob", true)
		type approved struct{ change, call string }
		by := map[string]approved{}
		devices := f.fleet(2)
		for i, person := range []account.User{ada, bob} {
			change := f.loosening(f.newPolicy("Policy of " + person.Name)).ID
			f.ok(f.approveChange(change, person))
			call := f.refusal(f.db, f.asking(devices[i], command.WipeCompanyData, person.Name)).ID
			f.approve(call, person)
			by[person.Name] = approved{change, call}
		}
		_, err := f.db.UpdateUser(f.Context(), f.company.ID, bob.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		for name, want := range map[string]struct {
			change proposal.ApprovalState
			call   approval.State
		}{"Ada": {proposal.Approved, approval.Approved}, "Bob": {"", approval.Waiting}} {
			p, err := f.db.Proposal(f.Context(), f.company.ID, by[name].change)
			f.ok(err)
			equal(f, "the change that "+name+" approved", p.Approval.State, want.change)
			equal(f, "the call that "+name+" approved", f.authorization(by[name].call).State, want.call)
		}
		equal(f, "approvals of changes recorded as void", f.recorded(activity.ApprovalVoid), 1)
		equal(f, "authorizations recorded as void", f.recorded(activity.AuthorizationVoid), 1)
	})
}

// What a caller that has ended can never use is not recorded as waiting again when its approver loses the right.
func TestVoid_NothingOfCallersThatEnded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		ada, device := f.person("Ada", true), f.fleet(1)[0]
		k, _ := apikey.New(f.company.ID, "K", "operator", access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), k))
		change := f.mustPropose(f.newPolicy("Office"), access.ApproveAll, func(p *proposal.Proposal) {
			p.Owner = access.Actor{Kind: access.APIKey, ID: k.ID}
		})
		f.ok(f.approveChange(change.ID, ada))
		call := f.asking(device, command.WipeCompanyData, "wipe")
		call.Actor.Kind, call.Actor.ID = access.APIKey, k.ID
		call.Ask.Caller = approval.Caller{Actor: access.Actor{Kind: access.APIKey, ID: k.ID}}
		asked := f.refusal(f.db, call).ID
		f.approve(asked, ada)
		_, err := f.db.RevokeKey(f.Context(), f.company.ID, k.ID, f.clock.Now())
		f.ok(err)
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, ada.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		equal(f, "recorded as void", []int{f.recorded(activity.ApprovalVoid), f.recorded(activity.AuthorizationVoid)}, []int{0, 0})
		equal(f, "the authorization", f.authorization(asked).At(f.clock.Now()), approval.Expired)
	})
}

// A change of a policy that was deleted since cannot be approved: it waits for no person, and fills no place.
func TestAwaiting_NoChangeOfDeletedPolicy(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		gone, stays := f.newPolicy("Gone"), f.newPolicy("Stays")
		for range proposal.MaxWaiting {
			f.mustPropose(gone, access.ApproveAll, nil)
		}
		_, err := f.proposes(stays, access.ApproveAll, nil)
		f.code(fault.RateLimited, err)
		f.ok(f.deletePolicy(f.Context(), f.company.ID, gone.ID, f.clock.Now()))
		last := f.mustPropose(stays, access.ApproveAll, nil)
		listed, err := f.db.CompanyProposals(f.Context(), proposal.Query{CompanyID: f.company.ID, Limit: 100})
		f.ok(err)
		for _, l := range listed {
			equal(f, "awaits an approval", l.AwaitsApproval(), l.ID == last.ID)
		}
	})
}

// A change whose policy was saved since cannot be approved: it does not wait again when its approver loses the right.
func TestVoid_StaleChangeDoesNotWait(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = access.ApproveAll, 0 })
		ada, p := f.person("Ada", true), f.newPolicy("Office")
		change := f.mustPropose(p, access.ApproveAll, nil)
		waiting := func() int {
			n, err := f.db.WaitingProposals(f.Context(), f.company.ID, nil)
			f.ok(err)
			return n
		}
		equal(f, "counted as waiting before", waiting(), 1)
		f.ok(f.approveChange(change.ID, ada))
		next := p
		next.Version++
		_, err := f.db.SavePolicy(f.Context(), next, p.Version, policy.Revision{SavedAt: f.clock.Now()})
		f.ok(err)
		equal(f, "counted as waiting", waiting(), 0)
		_, err = f.db.UpdateUser(f.Context(), f.company.ID, ada.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		equal(f, "approvals recorded as void", f.recorded(activity.ApprovalVoid), 1)
		equal(f, "told as waiting", f.told(event.ProposalWaiting), map[string]int{change.ID: 1})
	})
}
