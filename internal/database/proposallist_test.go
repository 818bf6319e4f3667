package database_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

func (f *fixture) propose(p policy.Policy, by access.Actor) proposal.Proposal {
	f.Helper()
	f.clock.Advance(time.Second)
	made, err := f.db.Propose(f.Context(), proposal.Proposal{ID: resource.NewProposalID(), CompanyID: p.CompanyID,
		CompanySlug: p.CompanySlug,
		Capability:  proposal.UpdateSettings, Status: proposal.Pending, Impact: proposal.Normal, Title: "t", Summary: "s",
		Fields: []proposal.Field{{Label: "Camera", Value: "BLOCK", PreviousValue: "ALLOW"}}, PolicyID: p.ID, TargetName: p.Name,
		BaseVersion: p.Version, Next: proposal.Next{PolicyID: p.ID, Name: p.Name, Document: []byte(`{"cameraDisabled":true}`)},
		Owner: by}, 10*time.Minute)
	f.ok(err)
	return made
}

// connection is one of a user to the client "Assistant".
func (f *fixture) connection(of account.User) oauth.Connection {
	f.Helper()
	client := oauth.Client{ID: "client-1", Name: "Assistant", RedirectURIs: []string{"https://a.test/cb"}, Dynamic: true,
		CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(time.Hour)}
	f.ok(f.db.SaveOAuthClient(f.Context(), client))
	code := oauth.AuthorizationCode{Hash: access.HashSecret("x" + of.ID), CompanyID: f.company.ID, UserID: of.ID, ClientID: client.ID,
		ClientName: client.Name, Scopes: access.PoliciesWrite, ExpiresAt: f.clock.Now().Add(time.Minute)}
	f.ok(f.db.SaveCode(f.Context(), code))
	o, err := f.db.RedeemCode(f.Context(), code.Hash, agree,
		oauth.Tokens{Access: access.HashSecret("a" + of.ID), Refresh: access.HashSecret("r" + of.ID)})
	f.ok(err)
	return o
}

// TestProposals_AreListedWithTheirMakers makes proposals by a key, a connection
// and a user, and lists them page by page.
func TestProposals_AreListedWithTheirMakers(t *testing.T) {
	withCompany(t, func(f *fixture) {
		one, two := f.newPolicy("One"), f.newPolicy("Two")
		elsewhere := f.newCompany("other")
		key, _ := apikey.New(f.company.ID, "ci", "operator", access.PoliciesWrite, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), key))
		user := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: "ada@acme.test", Name: "Ada", Role: account.Admin,
			CreatedAt: f.clock.Now()}
		f.ok(f.db.CreateUser(f.Context(), user))
		connection := f.connection(user)

		made := []proposal.Proposal{
			f.propose(one, access.Actor{Kind: access.APIKey, ID: key.ID, Name: "ci"}),
			f.propose(two, access.Actor{Kind: access.Connection, ID: connection.ID, UserID: user.ID, Name: "Assistant"}),
			f.propose(one, access.Actor{Kind: access.User, ID: user.ID, UserID: user.ID, Name: "Ada"}),
		}
		want := []string{key.Prefix, "Assistant", "Ada"}
		ask := proposal.Query{CompanyID: f.company.ID, Limit: 2}
		var listed []proposal.Listed
		for {
			page, err := f.db.CompanyProposals(f.Context(), ask)
			f.ok(err)
			if len(page) == 0 {
				break
			}
			listed = append(listed, page...)
			ask.Before = page[len(page)-1].Position()
		}
		if len(listed) != 3 {
			f.Fatalf("%d listed", len(listed))
		}
		for i, l := range listed {
			p := made[2-i]
			if maker := cmp.Or(l.Maker.KeyPrefix, l.Maker.Client, l.Maker.UserName); maker != want[2-i] || l.Maker.Kind != p.Owner.Kind {
				f.Errorf("%d was made by %q of kind %v", i, maker, l.Maker.Kind)
			}
			if l.ID != p.ID || len(l.Fields) != 1 || string(l.Next.Document) != "{}" {
				f.Errorf("%d is %+v", i, l)
			}
			full, err := f.db.ListedProposal(f.Context(), f.company.ID, p.ID)
			if f.ok(err); full.Maker != l.Maker || string(full.Next.Document) != string(p.Next.Document) {
				f.Errorf("by id: %+v", full)
			}
			_, err = f.db.ListedProposal(f.Context(), elsewhere.ID, p.ID)
			f.code(fault.NotFound, err)
		}

		for _, test := range []struct {
			q    proposal.Query
			want int
		}{
			{proposal.Query{CompanyID: elsewhere.ID}, 0},
			{proposal.Query{CompanyID: f.company.ID, Policies: []string{}}, 0},
			{proposal.Query{CompanyID: f.company.ID, Policies: []string{two.ID}}, 1},
			{proposal.Query{CompanyID: f.company.ID, Policies: []string{two.ID}, PolicyID: one.ID}, 0},
			{proposal.Query{CompanyID: f.company.ID, PolicyID: one.ID}, 2},
			{proposal.Query{CompanyID: f.company.ID, PolicyID: one.ID, Waiting: true}, 2},
		} {
			test.q.Limit = 10
			page, err := f.db.CompanyProposals(f.Context(), test.q)
			if f.ok(err); len(page) != test.want {
				f.Errorf("%+v lists %d", test.q, len(page))
			}
		}

		if _, err := f.db.FailProposal(f.Context(), made[0].ID, fault.Internal, "no"); err != nil {
			f.Fatal(err)
		}
		for _, test := range []struct {
			ids  []string
			want int
		}{{nil, 2}, {[]string{one.ID}, 1}, {[]string{two.ID}, 1}, {[]string{}, 0}} {
			if n, err := f.db.WaitingProposals(f.Context(), f.company.ID, test.ids); err != nil || n != test.want {
				f.Errorf("%v: %d wait, %v", test.ids, n, err)
			}
		}
		f.clock.Advance(10 * time.Minute)
		waiting, err := f.db.CompanyProposals(f.Context(), proposal.Query{CompanyID: f.company.ID, Waiting: true, Limit: 10})
		if n, err2 := f.db.WaitingProposals(f.Context(), f.company.ID, nil); err != nil || err2 != nil || n != 0 || len(waiting) != 0 {
			f.Errorf("expired, %d wait, %d listed", n, len(waiting))
		}
		for i := range 3 { // what is read as EXPIRED is not stored so
			if p, err := f.db.Proposal(f.Context(), f.company.ID, made[i].ID); err != nil || p.Status == proposal.Pending {
				f.Error(fmt.Sprint(p.Status, err))
			}
		}
	})
}
