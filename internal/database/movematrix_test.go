package database_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// meeting is a proposal and a move of one caller that are under way at one time.
type meeting struct {
	*fixture
	rule     access.ApprovalRule
	kind     proposal.Capability
	caller   access.Kind
	ada      account.User
	from, to policy.Policy // the move's; to is what the proposal is about
	phone    asset.Asset
	made     proposal.Proposal
}

// withMeetings runs a test for each rule, kind of proposal and kind of caller.
func withMeetings(t *testing.T, test func(m *meeting)) {
	withCompany(t, func(f *fixture) {
		ada := f.person("Ada", true)
		for _, rule := range []access.ApprovalRule{access.ApproveRisky, access.ApproveAll} {
			f.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = rule, 0 })
			for _, kind := range []proposal.Capability{proposal.UpdateSettings, proposal.RollBack, proposal.CreatePolicy} {
				for _, caller := range []access.Kind{access.APIKey, access.Connection} {
					name := fmt.Sprint(rule, " ", kind, " ", caller)
					f.Run(name, func(t *testing.T) {
						inner := *f
						inner.T = t
						m := &meeting{fixture: &inner, rule: rule, kind: kind, caller: caller, ada: ada,
							from: inner.newPolicy("From " + name), to: inner.newPolicy("To " + name)}
						m.phone = m.enroll(name, m.from.ID)
						m.propose()
						test(m)
					})
				}
			}
		}
	})
}

// propose makes the proposal. Under a rule for all changes a person approves it.
func (m *meeting) propose() {
	m.Helper()
	m.clock.Advance(time.Second)
	p := loosening(m.to)
	p.Capability, p.Owner.Kind = m.kind, m.caller
	if m.caller == access.Connection {
		p.Owner.UserID = m.ada.ID
	}
	switch m.kind {
	case proposal.RollBack:
		p.Next.Name, p.Renames = m.to.Name+" of before", true
	case proposal.CreatePolicy:
		p.Next.PolicyID, p.Next.Name, p.Renames = resource.NewID(), "Copy of "+m.to.Name, true
	}
	var err error
	m.made, err = m.db.Propose(m.Context(), p, time.Hour)
	m.ok(err)
	if m.rule == access.ApproveAll {
		m.ok(m.approveChange(m.made.ID, m.ada))
	}
}

func (m *meeting) claims() proposal.Claimed {
	m.Helper()
	verdict, err := m.db.ClaimProposal(m.Context(),
		proposal.Claim{ID: m.made.ID, Holder: "h", For: time.Minute, Confirmed: true, Next: m.made.Next,
			Verifier: approvaltest.Verifier()})
	m.ok(err)
	return verdict
}

// moves begins the move, compared with a version of the policy to which it goes.
func (m *meeting) moves(when string, from, to policy.Policy, version int, want fault.Code) command.Command {
	m.Helper()
	c := m.moving(m.phone, from, to)
	c.Ask.Move.To.Version, c.Actor.Kind, c.Ask.Caller.Kind = version, m.caller, m.caller
	_, begun, err := m.db.Begin(m.Context(), c, nil)
	if fault.CodeOf(err) != want || begun != (want == "") {
		m.Fatalf("%s: a move began %t, %v, want %q", when, begun, err, want)
	}
	return c
}

// A move waits for whatever changes the policy that it goes to, and can begin once that
// ended, compared with what there is then. A copy changes nothing of its source, and no
// device moves to it before it is there.
func TestMatrix_TheProposalFirst(t *testing.T) {
	withMeetings(t, func(m *meeting) {
		equal(m, "verdict", m.claims(), proposal.Begun)
		if m.kind == proposal.CreatePolicy {
			m.moves("to the copy", m.from, policy.Policy{ID: m.made.Next.PolicyID}, 1, fault.Unavailable)
			m.moves("to its source", m.from, m.to, 1, "")
			return
		}
		m.moves("while it is applied", m.from, m.to, 1, fault.Unavailable)
		m.finish(m.made.ID, "h", proposal.Ending{Save: true, Status: proposal.Succeeded})
		m.moves("compared with what was", m.from, m.to, 1, fault.Unavailable)
		m.moves("compared with what is", m.from, m.to, 2, "")
	})
}

// What changes the policy to which a device is moving needs a person who saw that, also
// if one approved it before.
func TestMatrix_TheMoveFirst(t *testing.T) {
	withMeetings(t, func(m *meeting) {
		move := m.moves("at first", m.from, m.to, 1, "")
		if m.kind == proposal.CreatePolicy {
			equal(m, "a copy of a policy with devices", m.claims(), proposal.Begun)
			return
		}
		equal(m, "while the device moves", m.claims(), proposal.NotApproved)
		read, err := m.db.Proposal(m.Context(), m.company.ID, m.made.ID)
		m.ok(err)
		equal(m, "impact and approval", words(read.Impact, read.Approval.State), words(proposal.High, proposal.Approval{}.State))
		_, _, err = m.db.Advance(m.Context(), move.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent})
		m.ok(err)
		m.ok(m.db.AssignPolicy(m.Context(), m.phone.ID, m.phone.Device.Epoch, m.to.ID))
		equal(m, "once it has the policy", m.claims(), proposal.NotApproved)
		m.ok(m.approveChange(m.made.ID, m.ada))
		equal(m, "approved as it is", m.claims(), proposal.Begun)
	})
}

// Devices that enroll while a proposal is applied void nothing: what was approved was
// claimed, and ends as usual.
func TestMatrix_EnrollmentsWhileItIsApplied(t *testing.T) {
	withMeetings(t, func(m *meeting) {
		void := func() int {
			entries, err := m.db.Activity(m.Context(), activity.Filter{CompanyID: m.company.ID}, activity.Cursor{}, 1000)
			m.ok(err)
			n := 0
			for _, e := range entries {
				if e.Action == activity.ApprovalVoid {
					n++
				}
			}
			return n
		}
		equal(m, "verdict", m.claims(), proposal.Begun)
		state := m.made.Approval.State
		if m.rule == access.ApproveAll {
			state = proposal.Approved
		}
		for n := range 2 {
			m.enroll(words("late", m.rule, m.kind, m.caller, n), m.to.ID)
			read, err := m.db.Proposal(m.Context(), m.company.ID, m.made.ID)
			m.ok(err)
			equal(m, "while it is applied", words(read.Status, read.Approval.State), words(proposal.Executing, state))
		}
		m.finish(m.made.ID, "h", proposal.Ending{Save: true, Status: proposal.Succeeded})
		read, err := m.db.Proposal(m.Context(), m.company.ID, m.made.ID)
		m.ok(err)
		equal(m, "afterwards", words(read.Status, read.Approval.State), words(proposal.Succeeded, state))
		equal(m, "approvals that became void", void(), 0)
	})
}
