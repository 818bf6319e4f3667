package database_test

import (
	"math"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
)

// told is how often it was told of each proposal, by events of a type.
func (f *fixture) told(of event.Type) map[string]int {
	f.Helper()
	told := map[string]int{}
	f.reader(f.db, all()).rest(f) // numbers the events
	events, err := f.db.Events(f.Context(), event.Query{CompanyID: f.company.ID, Upto: math.MaxInt64, Limit: 1000,
		See: event.Sight{All: true}, Types: []event.Type{of}})
	f.ok(err)
	for _, e := range events {
		told[e.ProposalID]++
	}
	return told
}

func risky(p *proposal.Proposal) { p.Fields[0].Label = "Factory reset from Settings" }

// A proposal whose impact rises waits from then on, which is told once, by a read or a claim.
func TestEvents_RisenProposalWaits(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveRisky })
		p := f.newPolicy("Office")
		read, claimed := f.mustPropose(p, access.ApproveRisky, risky), f.mustPropose(p, access.ApproveRisky, risky)
		normal := f.mustPropose(p, access.ApproveRisky, nil)
		f.enroll("d1", p.ID)
		equal(f, "told before", f.told(event.ProposalWaiting), map[string]int{})
		for range 2 {
			for _, id := range []string{read.ID, normal.ID} {
				_, err := f.db.Proposal(f.Context(), f.company.ID, id)
				f.ok(err)
			}
			verdict, err := f.db.ClaimProposal(f.Context(), proposal.Claim{ID: claimed.ID, Holder: "h", For: time.Minute, Confirmed: true})
			f.ok(err)
			equal(f, "the claim", verdict, proposal.NotApproved)
		}
		equal(f, "told", f.told(event.ProposalWaiting), map[string]int{read.ID: 1, claimed.ID: 1})
	})
}

// What waits by a rule that is switched on is told once, and not again by a stricter rule.
func TestEvents_ProposalsWaitByANewRule(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Office")
		risen := f.mustPropose(p, "", risky)
		f.enroll("d1", p.ID)
		normal, dangerous := f.mustPropose(p, "", nil), f.mustPropose(p, "", high)
		warned := f.mustPropose(p, "", func(p *proposal.Proposal) { p.Warnings = []string{"w"} })
		f.mustPropose(p, "", func(p *proposal.Proposal) { p.Owner = access.Actor{Kind: access.User, ID: "u1", UserID: "u1"} })
		f.mustPropose(p, "", func(p *proposal.Proposal) { p.BaseVersion, p.Impact = p.BaseVersion+1, proposal.High })
		want := map[string]int{}
		equal(f, "told while it was off", f.told(event.ProposalWaiting), want)
		for _, rule := range []access.ApprovalRule{access.ApproveRisky, access.ApproveAll} {
			f.setControls(func(c *access.Controls) { c.ApplyApproval = rule })
			_, err := f.db.Proposal(f.Context(), f.company.ID, risen.ID)
			f.ok(err)
			want[risen.ID], want[dangerous.ID], want[warned.ID] = 1, 1, 1
			if rule == access.ApproveAll {
				want[normal.ID] = 1
			}
			equal(f, "told by "+string(rule), f.told(event.ProposalWaiting), want)
		}
	})
}
