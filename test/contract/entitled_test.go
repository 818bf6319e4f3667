package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// decision is a form of the page at which a person decides, signed but not yet sent.
type decision struct{ path, token, answer string }

// signs opens the page and signs that it is allowed.
func (d decider) signs(t *testing.T, page string) decision {
	t.Helper()
	made := decision{path: page}
	form := d.Get(page).Want(t, 200)
	if strings.HasPrefix(page, "/approvals/") {
		made.path += "/approve"
		_, form.Body, _ = strings.Cut(form.Body, `action="`+made.path+`"`)
	}
	made.token, made.answer = form.Field(t, "token"), d.key.Get(form.Options(t))
	return made
}

func (d decider) sends(made decision) servertest.Page {
	return d.Post(made.path, "token", made.token, "answer", made.answer)
}

// One who may not decide is told why by the page, also if the page was opened and signed
// while it was allowed, and nothing is decided: the user of the client that asked where a
// second person must decide, another user than the one who signed, and one whose passkey
// is too young. A second person then decides.
func TestDecisions_OfOneWhoMayNot(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := authorizing(t, env)
	set := func(args ...string) {
		env.CLI(new(any), append([]string{"company", "set", "acme"}, args...)...)
		env.Advance(2 * time.Second)
	}
	set("--apply-approval", "all")
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	servertest.AwaitStatus(t, tenant, tenant.Client(replica, access.All), device.AssetID, "ACTIVE")
	asking := env.Browser(tenant.Company, account.Admin)
	client := servertest.WithToken(t, replica.PublicURL(), asking.Connect(replica.PublicURL(), "mcp:devices:destructive",
		"mcp:policies:write").Access)
	asks := decider{replica.PortalClient(t, asking.User), servertest.NewAuthenticator(t, replica.PublicURL())}
	asks.AddPasskey(asks.key).Want(t, 200)
	second := newDecider(t, env, replica, tenant.Company, account.Admin)

	var proposal struct{ ProposalID string }
	client.Call("update_policy_settings", args{"policyId": tenant.Policy.ID, "changes": change("CAMERA", "BLOCK")}).OK(t, &proposal)
	for kind, call := range map[string]func() servertest.ToolResult{
		"authorization": func() servertest.ToolResult { return client.Call("wipe_device", args{"assetId": device.AssetID}) },
		"approval": func() servertest.ToolResult {
			return client.Call("apply_policy_proposal", args{"proposalId": proposal.ProposalID})
		},
	} {
		refused := call()
		refused.Failed(t)
		var refusal struct{ ApprovalURL string }
		if err := json.Unmarshal([]byte(refused.Content[0].Text), &refusal); err != nil {
			t.Fatal(err)
		}
		page := strings.TrimPrefix(refusal.ApprovalURL, replica.PublicURL())
		says := func(shown servertest.Page, want string) {
			t.Helper()
			if !strings.Contains(shown.Body, want) {
				t.Errorf("%s: the page does not say %q: %d %s", kind, want, shown.Status, shown.Body)
			}
			if now := second.Get(page); now.Status != 200 || !strings.Contains(now.Body, "data-passkey") {
				t.Errorf("%s: it does not wait any more: %d %s", kind, now.Status, now.Body)
			}
		}
		own, borrowed := asks.signs(t, page), asks.signs(t, page)
		set("--second-person", "on")
		says(asks.Get(page), "A second person must decide this")
		says(asks.sends(own), "second person must decide this")
		says(second.sends(borrowed), "done already: try again")
		early := second.signs(t, page)
		set("--approver-age", "24h")
		young := second.sends(early)
		set("--approver-age", "0s")
		says(young, "must be older than 24h")
		second.sends(second.signs(t, page)).Want(t, 200)
		if result := call(); result.IsError {
			t.Errorf("%s: refused after a second person decided: %v", kind, result.Content)
		}
		set("--second-person", "off")
	}
}

// A person limited to other policies is answered alike for a call that waits and for one
// that never was, so that ids cannot be tried.
func TestDecisions_HiddenAndUnknownCallsReadAlike(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := authorizing(t, env)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	servertest.AwaitStatus(t, tenant, tenant.Client(replica, access.All), device.AssetID, "ACTIVE")
	asking := env.Browser(tenant.Company, account.Admin)
	client := servertest.WithToken(t, replica.PublicURL(), asking.Connect(replica.PublicURL(), "mcp:devices:destructive").Access)
	refused := client.Call("wipe_device", args{"assetId": device.AssetID})
	refused.Failed(t)
	var refusal struct{ ApprovalURL string }
	if err := json.Unmarshal([]byte(refused.Content[0].Text), &refusal); err != nil {
		t.Fatal(err)
	}
	page := strings.TrimPrefix(refusal.ApprovalURL, replica.PublicURL())
	other := env.Policy(tenant.Company, "Other", policy.Platform)
	limited := replica.PortalClient(t, env.Browser(tenant.Company, account.Operator, other.ID).User)
	madeUp := page[:len(page)-4] + "0000"
	for method, ask := range map[string]func(path string) servertest.Page{
		"GET":  func(path string) servertest.Page { return limited.Get(path) },
		"POST": func(path string) servertest.Page { return limited.Post(path, "token", "t", "answer", "{}") },
	} {
		hidden, unknown := ask(page), ask(madeUp)
		if hidden.Status != 404 || unknown.Status != 404 || errorOf(hidden) != errorOf(unknown) ||
			!strings.Contains(errorOf(hidden), "there is no such authorization") {
			t.Errorf("%s: hidden %d %q, unknown %d %q", method, hidden.Status, errorOf(hidden), unknown.Status, errorOf(unknown))
		}
	}
	if shown := replica.PortalClient(t, asking.User).Get(page); shown.Status != 200 {
		t.Errorf("for one who may see it: %d", shown.Status)
	}
}

// errorOf is what a page of an error says, without the request's id.
func errorOf(page servertest.Page) string {
	_, main, _ := strings.Cut(page.Body, `id="problem"`)
	main, _, _ = strings.Cut(main, "Request <span") // whose id is another for each request
	return main
}
