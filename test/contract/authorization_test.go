package contract_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// decider is a user with a passkey, in a browser.
type decider struct {
	*servertest.PortalClient
	key *servertest.Authenticator
}

func newDecider(t *testing.T, env *servertest.Env, r *servertest.Replica, c company.Company, role account.Role,
	policies ...string) decider {
	t.Helper()
	d := decider{r.PortalClient(t, env.Browser(c, role, policies...).User), servertest.NewAuthenticator(t, r.PublicURL())}
	d.AddPasskey(d.key).Want(t, 200)
	return d
}

// decide answers the page's first question, which authorizes, or its second, which declines.
func (d decider) decide(t *testing.T, address string, decline bool) servertest.Page {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	page := d.Get(u.Path).Want(t, 200)
	switch {
	case decline:
		page.Body = page.Body[strings.LastIndex(page.Body, "data-passkey"):]
	case strings.Contains(page.Body, `name="confirmation"`): // compared before it is signed
		page = d.Post(u.Path, "decision", "APPROVE", "confirmation", nameToType(t, page)).Want(t, 200)
	}
	return d.Post(u.Path, "token", page.Field(t, "token"), "answer", d.key.Get(page.Options(t))).Want(t, 200)
}

// nameToType is the name that a page wants typed.
func nameToType(t *testing.T, page servertest.Page) string {
	t.Helper()
	_, after, found := strings.Cut(page.Body, "The name is ")
	name, _, ended := strings.Cut(after, ". Case and")
	if !found || !ended {
		t.Fatalf("the page names nothing to type: %.3000s", page.Body)
	}
	return html.UnescapeString(name)
}

// awaitsPerson is the address at which a person authorizes what was answered with 403.
func awaitsPerson(t *testing.T, a servertest.Answer) string {
	t.Helper()
	body := a.Want(t, 403).Members(t)
	address, _ := body["approvalUrl"].(string)
	if body["code"] != "forbidden" || !strings.Contains(address, "/authorizations/") ||
		!strings.Contains(body["detail"].(string), address) {
		t.Fatalf("refused with %v", body)
	}
	return address
}

// authorizing is a company in which persons authorize destructive commands, at any age.
func authorizing(t *testing.T, env *servertest.Env) (*servertest.Tenant, *servertest.Replica) {
	t.Helper()
	tenant, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
	env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--destructive-approval", "on")
	return tenant, replica
}

// An assistant that can open pages is asked to, but not for a call that waits for no decision: it has
// the refusal.
func TestAuthorization_OverMCPWhereNothingCanBeDecided(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := authorizing(t, env)
	devices := tenant.Devices(replica, servertest.FullyManaged(), approval.MaxWaiting+1)
	client := tenant.Client(replica, access.All)
	opens := servertest.WithKey(t, replica.PublicURL(), client.Key).
		Saying("io.modelcontextprotocol/clientCapabilities", args{"elicitation": args{"url": args{}}})
	for n, d := range devices {
		reply := opens.Request("tools/call", args{"name": "wipe_device", "arguments": args{"assetId": d.AssetID}})
		var result struct {
			IsError       bool
			InputRequests map[string]any
			Content       []struct{ Text string }
		}
		if err := json.Unmarshal(reply.Result, &result); err != nil {
			t.Fatalf("%v: %s", err, reply.Body)
		}
		last := n == approval.MaxWaiting
		if asked := result.InputRequests != nil; asked == last || result.IsError != last {
			t.Errorf("call %d: %s", n+1, reply.Result)
		}
		if last && !strings.Contains(result.Content[0].Text, `"forbidden"`) {
			t.Errorf("the refusal: %s", result.Content[0].Text)
		}
	}
}

// A person authorizes a destructive command with a passkey; it is then sent once. The
// refusal is not kept under the Idempotency-Key, and nothing shows the new password.
func TestAuthorization_OfDestructiveCommands(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := authorizing(t, env)
		whole, profile := tenant.Devices(replica, servertest.FullyManaged(), 3), tenant.Devices(replica, servertest.WorkProfile(), 1)[0]
		client, ada := tenant.Client(replica, access.All), newDecider(t, env, replica, tenant.Company, account.Manager)
		path := func(d servertest.Device, command string) string {
			return "/assets/" + d.AssetID + "/commands/" + command
		}
		password := map[string]string{"newPassword": screenLockMarker}

		send := func() servertest.Answer {
			return client.Post(path(whole[0], "change-screen-lock-password"), password, "Idempotency-Key", "k1",
				"X-Muster-Reason", "<b>lost</b>")
		}
		calls := env.Calls("devices.issueCommand")
		first := awaitsPerson(t, send())
		if again := awaitsPerson(t, send()); again != first {
			t.Errorf("the same call names %s, then %s", first, again)
		}
		if other := awaitsPerson(t, client.Post(path(whole[0], "change-screen-lock-password"),
			map[string]string{"newPassword": "another one 42"})); other == first {
			t.Error("another password names the same authorization")
		}
		shown := ada.Get(strings.TrimPrefix(first, replica.PublicURL()))
		for _, want := range []string{"&lt;b&gt;lost&lt;/b&gt;", "What the caller says", "Can be undone", "Authorize with a passkey",
			"Decline with a passkey"} {
			if !strings.Contains(shown.Body, want) {
				t.Errorf("the page does not show %s", want)
			}
		}
		if strings.Contains(shown.Body, screenLockMarker) {
			t.Error("the page shows the password")
		}
		ada.decide(t, first, false)
		if now := env.Calls("devices.issueCommand"); now != calls {
			t.Errorf("%d calls to the platform before the command was sent again", now-calls)
		}
		send().Want(t, 200)
		if send().Want(t, 200).Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the answer was not kept")
		}
		awaitsPerson(t, client.Post(path(whole[0], "change-screen-lock-password"), password))
		if page := ada.Get(strings.TrimPrefix(first, replica.PublicURL())); !strings.Contains(page.Body, "cannot be used again") ||
			strings.Contains(page.Body, "Authorize with") {
			t.Errorf("after its use: %.400s", page.Body)
		}

		// The same over MCP; a decline is final.
		client = tenant.Client(replica, access.All)
		assistant := servertest.WithKey(t, replica.PublicURL(), client.Key)
		for tool, d := range map[string]servertest.Device{"wipe_device": whole[1], "relinquish_ownership": profile} {
			over := func() string { return toolNeeds(t, assistant, tool, d.AssetID) }
			ada.decide(t, over(), false)
			assistant.Call(tool, map[string]any{"assetId": d.AssetID}).OK(t, nil)
		}
		address := toolNeeds(t, assistant, "reset_screen_lock", whole[2].AssetID)
		ada.decide(t, address, true)
		if again := awaitsPerson(t, client.Post(path(whole[2], "reset-screen-lock"), nil)); again != address {
			t.Errorf("after a decline: %s, want %s", again, address)
		}
		if list := ada.Get("/authorizations").Want(t, 200); !strings.Contains(list.Body, "Declined") ||
			!strings.Contains(list.Body, "Used") {
			t.Errorf("the list: %.600s", list.Body)
		}
		if strings.HasSuffix(t.Name(), "postgres") {
			return
		}
		files := map[string][]byte{"log": env.Log.Text()}
		if err := env.Admin().Backup(t.Context(), filepath.Join(env.Dir, "copy.db")); err != nil {
			t.Fatal(err)
		}
		readAll(t, env.Dir, files)
		for where, text := range files {
			if how := trace(text, screenLockMarker); how != "" {
				t.Errorf("%s holds the password (%s)", where, how)
			}
		}
	})
}

// toolNeeds is the address that a tool's error names.
func toolNeeds(t *testing.T, a servertest.Assistant, tool, assetID string) string {
	t.Helper()
	result := a.Call(tool, map[string]any{"assetId": assetID})
	var e struct{ Code, Message, ApprovalURL string }
	if !result.IsError || len(result.Content) == 0 {
		t.Fatalf("%s: no error: %+v", tool, result.Content)
	}
	if err := json.Unmarshal([]byte(result.Content[0].Text), &e); err != nil || e.Code != "forbidden" {
		t.Fatalf("%s: code %q, want forbidden: %+v, %v", tool, e.Code, result.Content, err)
	}
	if !strings.Contains(e.ApprovalURL, "/authorizations/") {
		t.Fatalf("%s: approvalUrl %q, want one of an authorization", tool, e.ApprovalURL)
	}
	return e.ApprovalURL
}

// Every destructive command asks the company's stop, its limit and its authorizations.
func TestDestructiveCommands_AskEveryControl(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	set := func(flags ...string) {
		env.CLI(new(any), append([]string{"company", "set", "--company", "acme"}, flags...)...)
	}
	whole, profile := tenant.Devices(replica, servertest.FullyManaged(), 2), tenant.Devices(replica, servertest.WorkProfile(), 1)
	for _, c := range spec.Commands {
		if !c.Destructive() {
			continue
		}
		client, device := tenant.Client(replica, access.All), whole[0]
		if !c.Takes(spec.Device{CompanyOwned: true, FullyManaged: true}) {
			device = profile[0]
		}
		path, body := "/assets/"+device.AssetID+"/commands/"+c.Segment, c.Request()
		set("--destructive-approval", "on")
		awaitsPerson(t, client.Post(path, body))
		set("--destructive-approval", "off", "--destructive-limit", "1/60m")
		tenant.Client(replica, access.All).Post("/assets/"+whole[1].AssetID+"/commands/reset-screen-lock", nil).Want(t, 200)
		client.Post(path, body).Want(t, 429)
		set("--destructive-limit", "off")
		env.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a test")
		if a := client.Post(path, body).Want(t, 403).Members(t); !strings.Contains(a["detail"].(string), "a test") ||
			a["approvalUrl"] != nil {
			t.Errorf("%s: stopped with %v", c.Type, a)
		}
		env.CLI(new(any), "company", "resume", "--company", "acme")
	}
}

// Each reason why a person cannot decide has its words, and nothing is decided.
func TestAuthorization_PageSaysWhy(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := authorizing(t, env)
		device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		ada := newDecider(t, env, replica, tenant.Company, account.Admin)
		client := tenant.Client(replica, access.All)
		address := awaitsPerson(t, client.Post("/assets/"+device.AssetID+"/commands/wipe", nil))
		path := strings.TrimPrefix(address, replica.PublicURL())
		shows := func(who *servertest.PortalClient, want string) {
			t.Helper()
			page := who.Get(path)
			if page.Status != http.StatusOK || !strings.Contains(page.Body, want) ||
				strings.Contains(page.Body, "Authorize with a passkey") {
				t.Errorf("want %q: %d %.300s", want, page.Status, page.Body)
			}
		}
		before := ada.Get(path).Want(t, 200)
		answer := ada.key.Get(before.Options(t))

		shows(newDecider(t, env, replica, tenant.Company, account.Operator).PortalClient, "DEVICES_COMMAND_DESTRUCTIVE")
		shows(replica.PortalClient(t, env.Browser(tenant.Company, account.Admin).User), "Add a passkey")
		newDecider(t, env, replica, tenant.Company, account.Manager, env.Policy(tenant.Company, "Other", policy.Platform).ID).Get(path).
			Want(t, 404)
		newDecider(t, env, replica, env.Company("other", servertest.Everything()), account.Admin).Get(path).Want(t, 404)
		if page := replica.SignedOut(t).Post(path, "token", before.Field(t, "token"), "answer", answer); page.Path != "/signin" {
			t.Errorf("signed out: %s %d", page.Path, page.Status)
		}
		env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "24h")
		shows(ada.PortalClient, "older than 24h")
		env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--second-person", "on")
		if page := ada.Get("/access/controls").Want(t, 200); !strings.Contains(page.Body, "Approval") {
			t.Error("the page of controls has no approval")
		}
		env.Advance(61 * time.Minute)
		shows(ada.PortalClient, "It has expired")
		ada.Post(path, "token", before.Field(t, "token"), "answer", answer)
		client.Post("/assets/"+device.AssetID+"/commands/wipe", nil).Want(t, 403)
	})
}

// A key moves no device to a policy that differs in what approvals cover, unless a person
// who may edit both policies authorizes it.
func TestAuthorization_OfPolicyMoves(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
		device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		from := tenant.Policy
		named := func(name string, settings ...string) policy.Policy {
			p := env.Policy(tenant.Company, name, policy.Platform)
			if len(settings) > 0 {
				arguments := []string{"policy", "set", p.PathName(), "--company", "acme"}
				for _, s := range settings {
					arguments = append(arguments, "--set", s)
				}
				env.CLI(new(any), arguments...)
			}
			return p
		}
		renamed, other, risky := named("Renamed"), named("Other", "NETWORK_RESET=BLOCK"),
			named("Risky", "ENCRYPTION_POLICY=ENABLED_WITH_PASSWORD")
		warned := named("Warned", "CONFIGURE_WIFI=BLOCK")
		move := func(c servertest.Client, to policy.Policy) servertest.Answer {
			return c.Post("/assets/"+device.AssetID+"/commands/change-policy", map[string]string{"policyId": to.PathName()})
		}
		set := func(rule string) {
			env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--apply-approval", rule)
		}
		set("risky")
		client := tenant.Client(replica, access.All)
		awaitsPerson(t, move(client, risky))
		awaitsPerson(t, move(client, warned))
		move(client, other).Want(t, 200)
		move(client, from).Want(t, 200)
		set("all")
		client = tenant.Client(replica, access.All)
		awaitsPerson(t, move(client, other))
		move(client, renamed).Want(t, 200)
		move(client, from).Want(t, 200)

		address := awaitsPerson(t, move(client, risky))
		path := strings.TrimPrefix(address, replica.PublicURL())
		limited := newDecider(t, env, replica, tenant.Company, account.Manager, from.ID)
		if page := limited.Get(path).Want(t, 200); !strings.Contains(page.Body, "may not see") || strings.Contains(page.Body, risky.Name) {
			t.Errorf("limited to one policy, the page does not say so, or shows the other policy: %.300s", page.Body)
		}
		if page := newDecider(t, env, replica, tenant.Company, account.Operator).Get(path).Want(t, 200); !strings.Contains(page.Body,
			"POLICIES_WRITE") {
			t.Errorf("without the right: %.300s", page.Body)
		}
		ada := newDecider(t, env, replica, tenant.Company, account.Manager)
		ada.decide(t, address, false)
		env.CLI(new(any), "policy", "set", risky.PathName(), "--company", "acme", "--set", "CAMERA=BLOCK")
		again := awaitsPerson(t, move(client, risky)) // it is no longer what was authorized
		if again == address {
			t.Error("the policy changed, and the authorization holds")
		}
		ada.decide(t, again, false)
		move(client, risky).Want(t, 200)
		if over := tenant.Client(replica, access.All); awaitsPerson(t, move(over, from)) == again {
			t.Error("the way back has the same authorization")
		}
	})
}
