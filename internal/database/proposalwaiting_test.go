package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// proposes keeps a proposal of a key for a day, under a rule of its company.
func (f *fixture) proposes(p policy.Policy, rule access.ApprovalRule, edit func(*proposal.Proposal)) (proposal.Proposal, error) {
	f.Helper()
	f.clock.Advance(time.Millisecond)
	made := proposal.Proposal{ID: resource.NewProposalID(), CompanyID: p.CompanyID, CompanySlug: p.CompanySlug, Rule: rule,
		Capability: proposal.UpdateSettings, Status: proposal.Pending, Impact: proposal.Normal, Title: "t", Form: "s",
		Fields: []proposal.Field{{Label: "Camera", Value: "BLOCK"}}, PolicyID: p.ID, TargetName: p.Name, BaseVersion: p.Version,
		Next: proposal.Next{PolicyID: p.ID, Name: p.Name, Document: []byte(`{}`)}, Owner: proposal.Owner{Kind: access.APIKey, ID: "k1"}}
	if edit != nil {
		edit(&made)
	}
	return f.db.Propose(f.Context(), made, proposal.ApprovalLifetime)
}

func (f *fixture) mustPropose(p policy.Policy, rule access.ApprovalRule, edit func(*proposal.Proposal)) proposal.Proposal {
	f.Helper()
	made, err := f.proposes(p, rule, edit)
	f.ok(err)
	return made
}

func high(p *proposal.Proposal) { p.Impact = proposal.High }

// approvals are the ids of the proposals that wait for a person, in the order of lists.
func (f *fixture) approvals() (ids []string) {
	f.Helper()
	items, err := f.db.Attention(f.Context(), attention.Query{CompanyID: f.company.ID, Rule: f.now().Controls.ApplyApproval})
	f.ok(err)
	for _, i := range items {
		if i.Kind == attention.Approval {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// What needs no approval hides nothing that waits, and of too much that waits the oldest is listed.
func TestAttention_ApprovalsBehindProposalsThatNeedNone(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveRisky })
		p := f.newPolicy("Office")
		f.enroll("d1", p.ID)
		made := func(n int, edit func(*proposal.Proposal)) (ids []string) {
			for i := range n {
				ids = append(ids, f.mustPropose(p, "", func(p *proposal.Proposal) { // the rule of before: no bound
					p.Devices = i % 2 // the device of half of them came later
					if edit != nil {
						edit(p)
					}
				}).ID)
			}
			return ids
		}
		first := made(1, high)
		made(5*attention.Limit, nil)
		equal(f, "waits", f.approvals(), first)
		last := made(attention.Limit, high)
		equal(f, "the oldest wait", f.approvals(), slices.Concat(first, last[:attention.Limit-1]))
	})
}

// The list has each proposal that awaits an approval by the rule in Go, and no other.
func TestAttention_ApprovalsByRule(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		empty, office, fleet := f.newPolicy("Empty"), f.newPolicy("Office"), f.newPolicy("Fleet")
		f.enroll("office", office.ID)
		for i := range proposal.HighImpactDevices {
			f.enroll(words("d", i), fleet.ID)
		}
		ada := f.person("ada", true)
		for _, p := range []policy.Policy{empty, office, fleet} {
			for _, owner := range []access.Kind{access.APIKey, access.Connection, access.User} {
				for _, c := range []proposal.Capability{proposal.UpdateSettings, proposal.CreatePolicy, proposal.RollBack} {
					for _, label := range []string{"Camera", "Factory reset from Settings"} {
						f.mustPropose(p, "", func(p *proposal.Proposal) {
							p.Owner, p.Capability, p.Fields[0].Label = proposal.Owner{Kind: owner, ID: "k1", UserID: ada.ID}, c, label
						})
					}
				}
			}
		}
		f.mustPropose(empty, "", func(p *proposal.Proposal) { p.Warnings = []string{"w"} })
		f.mustPropose(empty, "", high)
		f.mustPropose(office, "", func(p *proposal.Proposal) { p.BaseVersion, p.Impact = p.BaseVersion+1, proposal.High })
		for rule, want := range map[access.ApprovalRule]int{access.ApproveNone: 0, access.ApproveRisky: 16, access.ApproveAll: 38} {
			f.setControls(func(c *access.Controls) { c.ApplyApproval = rule })
			all, err := f.db.CompanyProposals(f.Context(), proposal.Query{CompanyID: f.company.ID, Waiting: true, Limit: 1000})
			f.ok(err)
			var awaits []string
			for _, l := range slices.Backward(all) {
				if l.AwaitsApproval() {
					awaits = append(awaits, l.ID)
				}
			}
			equal(f, "await by "+string(rule), len(awaits), want)
			equal(f, "listed by "+string(rule), f.approvals(), awaits)
		}
	})
}

// What only a caller that has ended could do waits for no person.
func TestAttention_OfRevokedKeys(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveRisky })
		k, _ := f.newKey("ci", access.PoliciesRead|access.PoliciesWrite)
		p := f.newPolicy("Office")
		left := f.mustPropose(p, "", high)
		made := f.mustPropose(p, "", func(p *proposal.Proposal) { p.Impact, p.Owner.ID = proposal.High, k.ID })
		equal(f, "wait", f.approvals(), []string{left.ID, made.ID})
		_, err := f.db.RevokeKey(f.Context(), f.company.ID, k.ID, f.clock.Now())
		f.ok(err)
		equal(f, "wait after the key was revoked", f.approvals(), []string{left.ID})
		l, err := f.db.ListedProposal(f.Context(), f.company.ID, made.ID)
		f.ok(err)
		equal(f, "the maker has ended", l.Maker.Ended, true)
	})
}

// A caller's proposals that need no approval do not hide how many of it wait.
func TestPropose_TwentyWaitBesideAThousand(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveRisky })
		p := f.newPolicy("Office")
		for range 1000 {
			f.mustPropose(p, access.ApproveRisky, nil)
		}
		first := f.mustPropose(p, access.ApproveRisky, high)
		for range proposal.MaxWaiting - 1 {
			f.mustPropose(p, access.ApproveRisky, high)
		}
		_, err := f.proposes(p, access.ApproveRisky, high)
		f.code(fault.RateLimited, err)
		equal(f, "retry after", fault.From(err).RetryAfter, first.ExpiresAt.Sub(f.clock.Now()))
		f.mustPropose(p, access.ApproveRisky, nil)
	})
}
