package proposal_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
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

// Who is behind a proposal, and what a person types, by who made it and by its impact.
func TestListed_Subject(t *testing.T) {
	t.Parallel()
	maker := proposal.Maker{KeyMaker: "maker", UserName: "Ada"}
	person := &signature.Person{ID: "user", Name: "Ada"}
	for _, c := range []struct {
		kind    access.Kind
		impact  proposal.Impact
		askedBy string
		name    string
		user    *signature.Person
	}{
		{access.APIKey, proposal.Normal, "maker", "", nil},
		{access.APIKey, proposal.High, "maker", "Warehouse", nil},
		{access.Connection, proposal.Normal, "user", "", person},
		{access.User, proposal.High, "user", "Warehouse", nil},
	} {
		s := proposal.Listed{Maker: maker, Proposal: proposal.Proposal{TargetName: "Warehouse", Impact: c.impact, Devices: 2,
			Owner: access.Actor{Kind: c.kind, ID: "id", UserID: "user"}}}.Subject()
		now, _ := s.Document(signature.Head{}, nil).(signature.Change)
		shown, _ := s.Document(signature.Head{}, &signature.Change{Devices: 7}).(signature.Change)
		expect.Equal(t, string(c.kind)+" "+string(c.impact), expect.Values{"asked by": {s.Matter.AskedBy, c.askedBy},
			"to be typed": {s.Name, c.name}, "person behind the caller": {now.Caller.User, c.user}, "devices": {now.Devices, 2},
			"devices that were shown": {shown.Devices, 7}})
	}
}

// Which states never change again.
func TestStatus_Final(t *testing.T) {
	t.Parallel()
	for status, want := range map[proposal.Status]bool{proposal.Pending: false, proposal.Executing: false, proposal.Succeeded: true,
		proposal.Failed: true, proposal.Unconfirmed: true, proposal.Expired: true} {
		if status.Final() != want {
			t.Errorf("%s: final %v, want %v", status, status.Final(), want)
		}
	}
}

// A list that is empty is shown as one.
func TestProposal_ViewWithoutFields(t *testing.T) {
	t.Parallel()
	if (proposal.Proposal{}).View().Fields == nil {
		t.Error("there is no list of fields")
	}
}

// The outcome of a proposal that was declined has the reason, if there is one.
func TestDeclinedBy(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"": "a person declined it: Ada",
		"too early": "a person declined it: Ada; the reason: too early"} {
		if got := proposal.DeclinedBy(" Ada ", reason); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
