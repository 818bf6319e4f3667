package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
)

// toldWaiting is how often it was told of each proposal of the key k1 that it waits.
func (f *fixture) toldWaiting() map[string]int {
	f.Helper()
	told := map[string]int{}
	for _, e := range f.reader(f.db, all()).rest(f) {
		if e.Type == event.ProposalWaiting {
			told[e.Data.ProposalID]++
		}
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
		equal(f, "told before", f.toldWaiting(), map[string]int{})
		for range 2 {
			for _, id := range []string{read.ID, normal.ID} {
				_, err := f.db.Proposal(f.Context(), f.company.ID, id)
				f.ok(err)
			}
			verdict, err := f.db.ClaimProposal(f.Context(), proposal.Claim{ID: claimed.ID, Holder: "h", For: time.Minute, Confirmed: true})
			f.ok(err)
			equal(f, "the claim", verdict, proposal.NotApproved)
		}
		equal(f, "told", f.toldWaiting(), map[string]int{read.ID: 1, claimed.ID: 1})
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
		f.mustPropose(p, "", func(p *proposal.Proposal) { p.Owner = proposal.Owner{Kind: access.User, ID: "u1", UserID: "u1"} })
		f.mustPropose(p, "", func(p *proposal.Proposal) { p.BaseVersion, p.Impact = p.BaseVersion+1, proposal.High })
		want := map[string]int{}
		equal(f, "told while it was off", f.toldWaiting(), want)
		for _, rule := range []access.ApprovalRule{access.ApproveRisky, access.ApproveAll} {
			f.setControls(func(c *access.Controls) { c.ApplyApproval = rule })
			_, err := f.db.Proposal(f.Context(), f.company.ID, risen.ID)
			f.ok(err)
			want[risen.ID], want[dangerous.ID], want[warned.ID] = 1, 1, 1
			if rule == access.ApproveAll {
				want[normal.ID] = 1
			}
			equal(f, "told by "+string(rule), f.toldWaiting(), want)
		}
	})
}
