package browser_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	companies "github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
)

// decision is the demo's database while its administrator has a passkey and the company
// wants people to decide.
type decision struct {
	*testing.T
	db    *database.DB
	owner companies.Company
	ada   account.User
}

const passkeyID = "6b6579"

func newDecision(t *testing.T, demo browser.Demo) *decision {
	t.Helper()
	d := &decision{T: t}
	var err error
	d.db, err = database.Open(t.Context(), database.Options{URL: "sqlite:" + demo.Data + "/muster.db", Now: time.Now})
	d.ok(err)
	d.owner, err = d.db.CompanyBySlug(t.Context(), "acme")
	d.ok(err)
	d.controls(access.ApproveAll, true)
	d.ada, err = d.db.UserByEmail(t.Context(), demo.Email)
	d.ok(err)
	credential, err := json.Marshal(map[string]any{"id": base64.StdEncoding.EncodeToString([]byte("key")), "publicKey": ""})
	d.ok(err)
	d.ok(d.db.AddPasskey(t.Context(), account.Passkey{ID: passkeyID, UserID: d.ada.ID, Name: "key", Credential: credential,
		CreatedAt: time.Now().Add(-time.Hour)}))
	return d
}

func (d *decision) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *decision) controls(apply access.ApprovalRule, destructive bool) {
	d.Helper()
	_, err := d.db.UpdateCompany(d.Context(), d.owner.ID, func(c *companies.Company) error {
		c.Settings.Controls.ApplyApproval, c.Settings.Controls.DestructiveApproval = apply, destructive
		return nil
	})
	d.ok(err)
}

// end takes everything back, for the pages that are looked at after this one.
func (d *decision) end() {
	d.Helper()
	d.controls(access.ApproveNone, false)
	d.ok(d.db.RemovePasskey(d.Context(), d.ada.ID, passkeyID))
	d.ok(d.db.Close())
}

// post makes a call with the demo's key, which gives a reason, and decodes its answer.
func (d *decision) post(demo browser.Demo, path, body, reason string, answer any) {
	d.Helper()
	client := servertest.Client{TB: d, URL: demo.URL, Key: demo.Key}
	client.Post(path, body, "X-Muster-Reason", reason, "X-Muster-Ticket", "OPS-1").JSON(d, answer)
}

// onApproval opens the page on which a person with a passkey approves a change of HIGH
// impact, with a warning and a caller's words.
func onApproval(t *testing.T, tab *browser.Tab, demo browser.Demo) {
	t.Helper()
	d := newDecision(t, demo)
	defer d.end()
	all, _, err := d.db.Policies(t.Context(), policy.Query{CompanyID: d.owner.ID, Limit: 1})
	d.ok(err)
	var made struct{ ProposalID string }
	d.post(demo, "/policies/"+all[0].ID+"/changes",
		`{"changes":[{"setting":"FACTORY_RESET","value":"BLOCK"},{"setting":"CONFIGURE_WIFI","value":"BLOCK"}]}`,
		"the warehouse asked for it", &made)
	tab.Go("/approvals/" + made.ProposalID)
	tab.Sees("#decide", "Decide")
}

// onAuthorization opens the page on which a person authorizes a wipe that a key asked for.
func onAuthorization(t *testing.T, tab *browser.Tab, demo browser.Demo) {
	t.Helper()
	d := newDecision(t, demo)
	defer d.end()
	found, _, err := d.db.Assets(t.Context(), asset.Query{Filter: asset.Filter{CompanyID: d.owner.ID, Enrolled: true},
		Page: operation.PageRequest{Size: 1}})
	d.ok(err)
	var problem struct{ ApprovalURL string }
	d.post(demo, "/assets/"+found[0].ID+"/commands/wipe", "{}", "the device was stolen <b>today</b>", &problem)
	page, err := url.Parse(problem.ApprovalURL)
	d.ok(err)
	tab.Go(page.Path)
	tab.Sees("#decide", "Decide")
}
