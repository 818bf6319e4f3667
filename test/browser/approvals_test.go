package browser_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/browser"
)

// onApproval opens the page on which a person with a passkey approves a change of HIGH
// impact, with a warning and a caller's words.
func onApproval(t *testing.T, tab *browser.Tab, demo browser.Demo) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + demo.Data + "/muster.db", Now: time.Now})
	ok(err)
	defer func() { _ = db.Close() }()
	owner, err := db.CompanyBySlug(t.Context(), "acme")
	ok(err)
	_, err = db.ChangeControls(t.Context(), owner.ID, account.User{ID: "test", Name: "test"}, func(to *access.Settings) { to.Controls.ApplyApproval = access.ApproveAll })
	ok(err)
	all, _, err := db.Policies(t.Context(), policy.Query{CompanyID: owner.ID, Limit: 1})
	ok(err)
	p := all[0]
	fields := []proposal.Field{{Label: "Factory reset from Settings", PreviousValue: "NOT_SET", Value: "BLOCK"}, {Label: "Configuring Wi-Fi networks", PreviousValue: "ALLOW", Value: "BLOCK"}}
	made, err := db.Propose(t.Context(), proposal.Proposal{ID: resource.NewProposalID(), CompanyID: owner.ID, CompanySlug: owner.Slug, Capability: proposal.UpdateSettings,
		Status: proposal.Pending, Impact: proposal.High, Title: "Change settings of " + p.Name, Form: "Sets two settings.", Fields: fields,
		Warnings: []string{policy.Warning("CONFIGURE_WIFI", "BLOCK")}, PolicyID: p.ID, TargetName: p.Name, BaseVersion: p.Version,
		Next: proposal.Next{PolicyID: p.ID, Name: p.Name, Document: p.Document}, Owner: proposal.Owner{Kind: access.APIKey, ID: "key", Name: "assistant"},
		Note: access.Note{Reason: "the warehouse asked for it", Ticket: "OPS-1"}}, proposal.ApprovalLifetime)
	ok(err)
	ada, err := db.UserByEmail(t.Context(), demo.Email)
	ok(err)
	credential, err := json.Marshal(map[string]any{"id": base64.StdEncoding.EncodeToString([]byte("key")), "publicKey": ""})
	ok(err)
	ok(db.AddPasskey(t.Context(), account.Passkey{ID: "6b6579", UserID: ada.ID, Name: "key", Credential: credential, CreatedAt: time.Now().Add(-time.Hour)}))
	tab.Go("/approvals/" + made.ID)
	tab.Sees("#decide", "Decide")
	ok(db.RemovePasskey(t.Context(), ada.ID, "6b6579"))
}
