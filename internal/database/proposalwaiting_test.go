package database_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// proposes keeps a proposal of a key for a day, under a rule of its company.
func (f *fixture) proposes(p policy.Policy, rule access.ApprovalRule, edit func(*proposal.Proposal)) (proposal.Proposal, error) {
	f.Helper()
	f.clock.Advance(time.Millisecond)
	made := proposal.Proposal{ID: resource.NewProposalID(), CompanyID: p.CompanyID, CompanySlug: p.CompanySlug, Rule: rule,
		Capability: proposal.UpdateSettings, Status: proposal.Pending, Impact: proposal.Normal, Title: "t", Form: "s",
		Fields: []proposal.Field{{Label: "Camera", Value: "BLOCK"}}, PolicyID: p.ID, TargetName: p.Name, BaseVersion: p.Version,
		Next: proposal.Next{PolicyID: p.ID, Name: p.Name, Document: []byte(`{}`)}, Owner: access.Actor{Kind: access.APIKey, ID: "k1"}}
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
							p.Owner, p.Capability, p.Fields[0].Label = access.Actor{Kind: owner, ID: "k1", UserID: ada.ID}, c, label
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

// waiting says what waits for a person by each count and list: all of them must agree.
func (f *fixture) waiting() (changes, calls int) {
	f.Helper()
	changes, err := f.db.WaitingProposals(f.Context(), f.company.ID, nil)
	f.ok(err)
	listed, err := f.db.CompanyProposals(f.Context(), proposal.Query{CompanyID: f.company.ID, Waiting: true, Limit: 10})
	f.ok(err)
	calls, err = f.db.WaitingAuthorizations(f.Context(), f.company.ID, nil)
	f.ok(err)
	equal(f, "changes listed and needed", []int{len(listed), len(f.approvals())}, []int{changes, changes})
	equal(f, "calls needed", len(f.waits())-changes, calls)
	return changes, calls
}

// What only a caller that has ended could use waits for no person, and is refused to one. A key does not end with its maker.
func TestAttention_OfCallersThatEnded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		f.setControls(func(c *access.Controls) { c.ApplyApproval = access.ApproveAll })
		ada, phone := f.person("Ada", true), f.fleet(1)[0]
		update := func(u account.User, edit func(*account.User)) {
			_, err := f.db.UpdateUser(f.Context(), u.CompanyID, u.ID, func(u *account.User) error { edit(u); return nil })
			f.ok(err)
		}
		remove := func(u account.User) {
			_, err := f.db.DeleteUser(f.Context(), u.CompanyID, u.ID)
			f.ok(err)
		}
		for i, c := range []struct {
			what string
			kind access.Kind
			end  func(id string, of account.User)
			left int
		}{
			{"a key of a user who was deleted", access.APIKey, func(_ string, u account.User) { remove(u) }, 1},
			{"a key that was revoked", access.APIKey, func(id string, u account.User) {
				_, err := f.db.RevokeKey(f.Context(), u.CompanyID, id, f.clock.Now())
				f.ok(err)
			}, 0},
			{"a key that has expired", access.APIKey, func(string, account.User) { f.clock.Advance(time.Minute) }, 0},
			{"a connection that was revoked", access.Connection, func(id string, u account.User) {
				_, err := f.db.UpdateConnection(f.Context(), u.CompanyID, id, func(o *oauth.Connection) error {
					o.RevokedAt = f.clock.Now()
					return nil
				})
				f.ok(err)
			}, 0},
			{"a connection of a user who is disabled", access.Connection, func(_ string, u account.User) {
				update(u, func(u *account.User) { u.Disabled = true })
			}, 0},
			{"a connection that an older program left", access.Connection, func(_ string, u account.User) {
				f.tamper("UPDATE users SET disabled = TRUE WHERE id = '" + u.ID + "'")
			}, 0},
			{"a connection of a user who was deleted", access.Connection, func(_ string, u account.User) { remove(u) }, 0},
		} {
			f.clock.Advance(proposal.ApprovalLifetime)
			of := f.person(words("u", i), false)
			k, _ := apikey.New(f.company.ID, "K", of.ID, access.All, f.clock.Now(), f.clock.Now().Add(time.Minute))
			f.ok(f.db.CreateKey(f.Context(), k))
			owner := access.Actor{Kind: c.kind, ID: k.ID}
			if c.kind == access.Connection {
				owner.ID, owner.UserID = f.connection(of).ID, of.ID
			}
			made := f.mustPropose(f.newPolicy(words("p", i)), "", func(p *proposal.Proposal) { p.Owner = owner })
			call := f.asking(phone, command.WipeCompanyData, words("d", i))
			call.Actor.Kind, call.Actor.ID = owner.Kind, owner.ID
			call.Ask.Caller = approval.Caller{Actor: access.Actor{Kind: owner.Kind, ID: owner.ID, UserID: owner.UserID}}
			asked := f.refusal(f.db, call)
			changes, calls := f.waiting()
			equal(f, "waits of "+c.what, []int{changes, calls}, []int{1, 1})
			c.end(owner.ID, of)
			changes, calls = f.waiting()
			equal(f, "waits after the end of "+c.what, []int{changes, calls}, []int{c.left, c.left})
			late := []error{f.approveChange(made.ID, ada), f.decide(asked.ID, ada, signature.Approve)}
			equal(f, "decisions about "+c.what, []fault.Code{fault.CodeOf(late[0]), fault.CodeOf(late[1])},
				[][]fault.Code{{fault.NotPending, fault.Refused}, {"", ""}}[c.left])
			l, err := f.db.ListedProposal(f.Context(), f.company.ID, made.ID)
			f.ok(err)
			equal(f, "the page of "+c.what, []bool{l.Outcome == approval.NoCaller, f.authorization(asked.ID).CallerEnded(f.clock.Now())},
				[]bool{c.left == 0, c.left == 0})
			for range 2 { // it is told once
				f.ok(f.db.TellDue(f.Context()))
				equal(f, "told that the proposal ended of "+c.what, f.told(event.ProposalEnded)[made.ID], 1-c.left)
			}
		}
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

// A proposal whose impact rose is read although that cannot be kept, as while the disk is full.
func TestProposal_WhoseImpactCannotBeKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqliteEngine(t))
	p := f.newPolicy("Office")
	made := f.mustPropose(p, "", nil)
	for n := range proposal.HighImpactDevices {
		f.enroll(words("d", n), p.ID)
	}
	f.tamper(`CREATE TRIGGER full BEFORE UPDATE ON proposals BEGIN SELECT RAISE(ABORT, 'no room'); END`)
	now, err := f.db.Proposal(f.Context(), f.company.ID, made.ID)
	f.ok(err)
	equal(f, "impact", now.Impact, proposal.High)
	canceled, cancel := context.WithCancel(f.Context())
	cancel()
	if _, err := f.db.Proposal(canceled, f.company.ID, made.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("error of a call that was canceled = %v, want %v", err, context.Canceled)
	}
	f.tamper(`DROP TRIGGER full`)
	_, err = f.db.Proposal(f.Context(), f.company.ID, made.ID)
	f.ok(err)
	kept, err := f.db.Text(f.Context(), `SELECT impact FROM proposals`)
	f.ok(err)
	equal(f, "impact that the next read keeps", kept, []string{"HIGH"})
}
