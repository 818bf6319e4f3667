package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// An approval counts for exactly what a person approved.
func TestProposals_AppliedAsApproved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = access.ApproveAll, 0 })
		ada := f.person("Ada", true)
		for i, c := range []struct {
			name  string
			alter func(*proposal.Next)
			want  proposal.Claimed
		}{
			{"another policy", func(n *proposal.Next) { n.PolicyID = resource.NewID() }, proposal.NotApproved},
			{"another name", func(n *proposal.Next) { n.Name = "Other" }, proposal.NotApproved},
			{"another document", func(n *proposal.Next) { n.Document = []byte(`{"a":3}`) }, proposal.NotApproved},
			{"what was approved", func(*proposal.Next) {}, proposal.Begun},
		} {
			made := f.mustPropose(f.newPolicy(c.name), access.ApproveAll, nil)
			f.ok(f.approveChange(made.ID, ada))
			f.code(fault.NotPending, f.approveChange(made.ID, ada)) // it is approved already
			claim := claimOf(made.ID)
			claim.Next, claim.Verifier = made.Next, approvaltest.Verifier()
			c.alter(&claim.Next)
			verdict, err := f.db.ClaimProposal(f.Context(), claim)
			f.ok(err)
			equal(f, c.name, verdict, c.want)
			equal(f, c.name+": approvals that became void", f.recorded(activity.ApprovalVoid), min(i+1, 3))
		}
	})
}

// An approval that does not count any more keeps no person from deciding.
func TestProposals_ApprovedOnceMore(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = access.ApproveAll, 0 })
		ada := f.person("Ada", true)
		made := f.mustPropose(f.newPolicy("Warehouse"), access.ApproveAll, nil)
		f.ok(f.approveChange(made.ID, ada))
		f.ok(f.db.Write(f.Context(), nil, `UPDATE proposals SET signed_id = 'x' WHERE id = '`+made.ID+`'`)) // nothing proves it
		f.ok(f.approveChange(made.ID, ada))
		equal(f, "approvals that became void", f.recorded(activity.ApprovalVoid), 1)
		equal(f, "approvals", f.recorded(activity.ProposalApproved), 2)
	})
}

// What a person decides about a proposal counts while it waits for them; a decision that does not count is in the log.
func TestProposals_Decided(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval, c.ApproverAge = access.ApproveAll, 0 })
		ada, other := f.person("Ada", true), f.newCompany("other")
		ofPerson := func(p *proposal.Proposal) { p.Owner = access.Actor{Kind: access.User, ID: ada.ID, UserID: ada.ID} }
		for name, c := range map[string]struct {
			edit   func(*proposal.Proposal)
			before func(made proposal.Proposal)
			want   fault.Code
		}{
			"waits": {nil, func(proposal.Proposal) {}, ""},
			"is being applied": {ofPerson,
				func(made proposal.Proposal) { equal(f, "verdict", f.claim(made.ID), proposal.Begun) }, fault.NotPending},
			"needs none": {ofPerson, func(proposal.Proposal) {}, fault.Refused},
			"can never be applied": {nil, func(made proposal.Proposal) {
				p, err := f.db.Policy(f.Context(), f.company.ID, made.PolicyID)
				f.ok(err)
				p.Version++
				_, err = f.db.SavePolicy(f.Context(), p, 1, policy.Revision{SavedAt: f.clock.Now()})
				f.ok(err)
			}, fault.Refused},
		} {
			for _, d := range []signature.Decision{signature.Decline, signature.Approve} {
				of := words(name, d)
				made := f.mustPropose(f.newPolicy(of), access.ApproveAll, c.edit)
				c.before(made)
				f.clock.Advance(time.Second)
				f.code(fault.NotFound, f.decideChange(other.ID, made.ID, ada, d))
				f.code(c.want, f.decideChange(f.company.ID, made.ID, ada, d))
				entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID}, activity.Cursor{}, 1)
				f.ok(err)
				now, err := f.db.Proposal(f.Context(), f.company.ID, made.ID)
				f.ok(err)
				action := map[signature.Decision]activity.Action{signature.Approve: activity.ProposalApproved,
					signature.Decline: activity.ProposalDeclined}[d]
				outcome := map[bool]activity.Outcome{true: activity.OK, false: activity.Refused}[c.want == ""]
				equal(f, of+": in the log", words(entries[0].Action, entries[0].Outcome), words(action, outcome))
				equal(f, of+": has failed", now.Status == proposal.Failed, c.want == "" && d == signature.Decline)
			}
		}
	})
}

// Where no approval is asked for any more, a proposal lives as long as any other, and else for as long as before.
func TestProposals_RuleChanged(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveRisky })
		made := f.mustPropose(f.newPolicy("Warehouse"), access.ApproveRisky, nil)
		for _, c := range []struct {
			rule  access.ApprovalRule
			lives time.Duration
		}{
			{access.ApproveRisky, proposal.ApprovalLifetime},
			{access.ApproveAll, proposal.ApprovalLifetime},
			{access.ApproveNone, proposal.Lifetime},
			{access.ApproveAll, proposal.Lifetime},
		} {
			f.setControls(func(k *access.Controls) { k.ApplyApproval = c.rule })
			now, err := f.db.Proposal(f.Context(), f.company.ID, made.ID)
			f.ok(err)
			equal(f, "it lives under "+string(c.rule), now.ExpiresAt.Sub(now.CreatedAt), c.lives)
		}
	})
}
