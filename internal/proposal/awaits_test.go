package proposal_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/test/expect"
)

// Whether an approval is needed, is there, and can be given now.
func TestProposal_AwaitsApproval(t *testing.T) {
	t.Parallel()
	risky := proposal.Proposal{Status: proposal.Pending, Rule: access.ApproveRisky, Impact: proposal.High,
		Owner: access.Actor{Kind: access.APIKey}}
	with := func(edit func(*proposal.Proposal)) proposal.Proposal {
		p := risky
		edit(&p)
		return p
	}
	approved := func(p *proposal.Proposal) { p.Approval.State = proposal.Approved }
	for _, c := range []struct {
		name                      string
		p                         proposal.Proposal
		needs, unapproved, awaits bool
	}{
		{"of a key, with high impact", risky, true, true, true},
		{"of a connection", with(func(p *proposal.Proposal) { p.Owner.Kind = access.Connection }), true, true, true},
		{"of a person", with(func(p *proposal.Proposal) { p.Owner.Kind = access.User }), false, false, false},
		{"with normal impact", with(func(p *proposal.Proposal) { p.Impact = proposal.Normal }), false, false, false},
		{"with a warning", with(func(p *proposal.Proposal) { p.Impact, p.Warnings = proposal.Normal, []string{"w"} }), true, true, true},
		{"with normal impact, where all are approved",
			with(func(p *proposal.Proposal) { p.Impact, p.Rule = proposal.Normal, access.ApproveAll }), true, true, true},
		{"where none is approved", with(func(p *proposal.Proposal) { p.Rule = access.ApproveNone }), false, false, false},
		{"from before there was a rule", with(func(p *proposal.Proposal) { p.Rule = "" }), false, false, false},
		{"approved", with(approved), true, false, false},
		{"declined", with(func(p *proposal.Proposal) { p.Approval.State, p.Status = proposal.Declined, proposal.Failed }), true, true,
			false},
		{"ended", with(func(p *proposal.Proposal) { p.Status = proposal.Failed }), true, true, false},
		{"being applied", with(func(p *proposal.Proposal) { p.Status = proposal.Executing }), true, true, false},
		{"the policy was saved since", with(func(p *proposal.Proposal) { p.Outdated = true }), true, true, false},
		{"approved, and the policy was saved since", with(func(p *proposal.Proposal) { approved(p); p.Outdated = true }), true, true,
			false},
		{"approved, and the impact rose since", with(func(p *proposal.Proposal) { approved(p); p.Rose = true }), true, true, true},
	} {
		expect.Equal(t, c.name, expect.Values{"needs approval": {c.p.NeedsApproval(), c.needs},
			"unapproved": {c.p.Unapproved(), c.unapproved}, "awaits approval": {c.p.AwaitsApproval(), c.awaits}})
	}
}
