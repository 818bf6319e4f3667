package contract_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/expect"
	"github.com/musterhq/muster/test/spec"
)

// usable are the tools whose permissions and setting a caller has, by the rows
// of the contract. A setting's name may bind connections alone.
func usable(may access.Permission, settings access.Settings, connection bool) []string {
	open := map[string]bool{"": true, "deviceCommands": settings.DeviceCommands,
		"destructiveCommands": settings.DeviceCommands && settings.DestructiveCommands,
		"policyChanges":       settings.PolicyChanges, "provisioning": settings.Provisioning || !connection}
	var names []string
	if !connection || settings.OAuthConnections {
		names = append(names, "explain_operation", "list_events") // for each caller
	}
	for _, e := range spec.Endpoints {
		needs := strings.Fields(e.Permissions)
		has := func(p string) bool { return slices.Contains(may.Names(), p) }
		if open[e.Gate] && !slices.ContainsFunc(needs, func(p string) bool { return !has(p) }) &&
			(!connection || settings.OAuthConnections) {
			names = append(names, e.Tool)
		}
	}
	slices.Sort(names)
	return names
}

func same(t *testing.T, who string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("tools that %s sees (-want +got):\n%s", who, diff)
	}
}

// refusedAll calls every tool that is not in visible: each is forbidden.
func refusedAll(t *testing.T, who string, assistant servertest.Assistant, visible []string) {
	t.Helper()
	for _, e := range spec.Endpoints {
		if slices.Contains(visible, e.Tool) {
			continue
		}
		if got := assistant.Call(e.Tool, map[string]any{}).Failed(t); got.Code != "forbidden" || got.Status != http.StatusForbidden {
			t.Errorf("%s calls %s, which is hidden: %+v", who, e.Tool, got)
		}
	}
}

// Tools that a caller could never use are hidden, and refused when they are
// called all the same: whatever the key may do and the company allows.
func TestTools_UnusableOnesAreHidden(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	all := servertest.Everything()
	for _, settings := range []access.Settings{all, {}, {DeviceCommands: true, OAuthConnections: true},
		{DeviceCommands: true, DestructiveCommands: true, OAuthConnections: true},
		{PolicyChanges: true, OAuthConnections: true}, {Provisioning: true, OAuthConnections: true}} {
		acme := s.Company(servertest.UniqueSlug(), settings)
		for _, may := range []access.Permission{access.All, access.DevicesRead, access.DevicesCommand,
			access.DevicesRead | access.DevicesCommand,
			access.DevicesRead | access.DevicesCommandDestructive, access.PoliciesRead, access.PoliciesRead | access.PoliciesWrite,
			access.PoliciesRead | access.Provisioning} {
			who := fmt.Sprintf("a key with %s under %+v", may, settings)
			assistant := servertest.WithKey(t, s.base, s.Key(acme, may))
			visible := usable(may, settings, false)
			same(t, who, assistant.Names(), visible)
			refusedAll(t, who, assistant, visible)
		}
		if !settings.OAuthConnections {
			continue
		}
		for _, role := range []account.Role{account.Admin, account.Manager, account.Operator, account.Viewer} {
			rights, _ := role.Rights()
			who := fmt.Sprintf("a connection of a %s under %+v", role, settings)
			// One scope only: the rest is a sign-in away, and therefore shown.
			assistant := servertest.WithToken(t, s.base, s.Browser(acme, role).Connect(s.base, "mcp:devices:read").Access)
			visible := usable(rights.Permissions(), settings, true)
			same(t, who, assistant.Names(), visible)
			same(t, who+" of an earlier revision", assistant.Legacy().Names(), visible)
			refusedAll(t, who, assistant, visible)
		}
	}
}

// Scopes are cut by the person's rights and the company's settings at each
// call: a change binds the next one.
func TestTools_RightsApplyToTheNextCall(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	acme := s.Company(servertest.UniqueSlug(), servertest.Everything())
	p := s.Policy(acme, "Policy", policy.Platform)
	other := s.Policy(acme, "Other", policy.Platform)
	ada := s.Browser(acme, account.Admin)
	assistant := servertest.WithToken(t, s.base, ada.Connect(s.base, "mcp:policies:write", "mcp:devices:command").Access)
	change := map[string]any{"policyId": p.ID, "changes": []any{map[string]any{"setting": "CAMERA", "value": "BLOCK"}}}
	assistant.Call("update_policy_settings", change).OK(t, nil)
	refused := func(what, tool string, args map[string]any, code string) {
		t.Helper()
		if e := assistant.Call(tool, args).Failed(t); e.Code != code {
			t.Errorf("%s: %+v", what, e)
		}
	}
	ada.Change(func(u *account.User) { u.Rights &^= account.EditPolicies })
	refused("the right is taken", "update_policy_settings", change, "forbidden")
	ada.Change(func(u *account.User) { u.Rights |= account.EditPolicies })
	assistant.Call("update_policy_settings", change).OK(t, nil)

	ada.Change(func(u *account.User) { u.Policies = []string{p.ID} })
	assistant.Call("get_policy_settings", map[string]any{"policyId": p.ID}).OK(t, nil)
	refused("a policy beyond the person's", "get_policy_settings", map[string]any{"policyId": other.ID}, "not_found")
	refused("a policy that the person would not see", "create_policy", map[string]any{"fromPolicyId": p.ID, "displayName": "Copy"},
		"forbidden")
	var page struct{ TotalElements int }
	if assistant.Call("list_policies", nil).OK(t, &page); page.TotalElements != 1 {
		t.Errorf("%d policies are listed for a person of one", page.TotalElements)
	}
	ada.Change(func(u *account.User) { u.Policies = nil })

	off := servertest.Everything()
	off.PolicyChanges = false
	setCompany(t, s.Env, acme.ID, off)
	refused("the setting policyChanges is off", "update_policy_settings", change, "forbidden")
	assistant.Call("get_policy_settings", map[string]any{"policyId": p.ID}).OK(t, nil)
	off.OAuthConnections = false
	setCompany(t, s.Env, acme.ID, off)
	refused("connections are off", "get_policy_settings", map[string]any{"policyId": p.ID}, "forbidden")
	if names := assistant.Names(); len(names) != 0 {
		t.Errorf("connections are off, and these tools are shown: %v", names)
	}
	setCompany(t, s.Env, acme.ID, servertest.Everything())
	assistant.Call("update_policy_settings", change).OK(t, nil)

	// More scopes on a live connection count at once, without the client's help.
	if got := assistant.Call("create_provisioning_qr_code", map[string]any{"policyId": p.ID}); got.Status != http.StatusForbidden {
		t.Errorf("a scope that was not granted: %d", got.Status)
	}
	connection := s.ConnectionOf(assistant.Header.Get("Authorization")[len("Bearer "):])
	if _, err := s.Admin().Connections.UpdateConnection(t.Context(), acme.ID, connection.ID, func(o *oauth.Connection) error {
		o.Scopes |= access.Provisioning
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// not connected to the vendor
	refused("granted on the live connection", "create_provisioning_qr_code", map[string]any{"policyId": p.ID}, "unsupported")
	ada.Change(func(u *account.User) { u.Disabled = true })
	if got := assistant.Call("list_policies", nil); got.Status != http.StatusUnauthorized {
		t.Errorf("the person is shut out: %d", got.Status)
	}
}

// One budget of ten over REST and MCP for a key; one for each connection,
// whatever its tokens; reads spend nothing.
func TestBudget_SharedByRESTAndMCP(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	acme := s.Company(servertest.UniqueSlug(), servertest.Everything())
	spare := newSpare(t, s.Env, acme)
	key := s.Key(acme, access.All)
	client, assistant := s.replica.As(key), servertest.WithKey(t, s.base, key)
	target := map[string]any{"assetId": spare}
	for range 5 {
		client.Post("/assets/"+spare+"/commands/reboot", nil).Want(t, http.StatusConflict)
		if e := assistant.Call("lock_device", target).Failed(t); e.Code != "unsupported" {
			t.Fatalf("%+v", e)
		}
		assistant.Call("get_asset", target).OK(t, nil)
	}
	client.Post("/assets/"+spare+"/commands/lock", nil).Want(t, http.StatusTooManyRequests)
	for _, e := range spec.Endpoints {
		o := s.replica.Registry().Find(e.Tool)
		if o.Budget == operation.Free {
			continue
		}
		got := assistant.Call(e.Tool, string(o.FlatExample())).Failed(t)
		expect.Equal(t, "the eleventh call by "+e.Tool,
			expect.Values{"code": {got.Code, "rate_limited"}, "retryable": {got.Retryable, true},
				"status": {got.Status, http.StatusTooManyRequests}})
		if got.RetryAfter < 1 || got.RetryAfter > 60 {
			t.Errorf("the eleventh call by %s: retryAfter is %d, want 1 to 60", e.Tool, got.RetryAfter)
		}
	}
	assistant.Call("get_asset", target).OK(t, nil)

	ada := s.Browser(acme, account.Admin)
	first := ada.Connect(s.base, "mcp:devices:command")
	tokens := []string{first.Access, ada.Swap(s.base, first).Access}
	for i := range 10 {
		if e := servertest.WithToken(t, s.base, tokens[i%2]).Call("lock_device", target).Failed(t); e.Code != "unsupported" {
			t.Fatalf("call %d of the connection: %+v", i+1, e)
		}
	}
	for _, token := range tokens {
		if e := servertest.WithToken(t, s.base, token).Call("lock_device", target).Failed(t); e.Code != "rate_limited" {
			t.Errorf("the connection's eleventh: %+v", e)
		}
	}
	second := servertest.WithToken(t, s.base, ada.Connect(s.base, "mcp:devices:command").Access)
	if e := second.Call("lock_device", target).Failed(t); e.Code != "unsupported" {
		t.Errorf("another connection of the same person: %+v", e)
	}
	s.Advance(time.Minute)
	if e := assistant.Call("lock_device", target).Failed(t); e.Code != "unsupported" {
		t.Errorf("a minute later: %+v", e)
	}
}

// The QR code is an image block; the text beside it has everything else, and
// nothing of the Wi-Fi password.
func TestTools_QRCodeIsAnImageBlock(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	tenant := s.NewTenant(servertest.UniqueSlug())
	token := s.Browser(tenant.Company, account.Manager).Connect(s.base, "mcp:provisioning")
	for who, assistant := range map[string]servertest.Assistant{
		"key":        servertest.WithKey(t, s.base, s.Key(tenant.Company, access.PoliciesRead|access.Provisioning)),
		"connection": servertest.WithToken(t, s.base, token.Access),
	} {
		t.Run(who, func(t *testing.T) {
			for _, a := range []servertest.Assistant{assistant, assistant.Legacy()} {
				result := a.Call("create_provisioning_qr_code", map[string]any{"policyId": tenant.Policy.ID, "wifiSsid": "Depot",
					"wifiPassword": wifiMarker})
				result.OK(t, nil)
				if len(result.Content) != 2 || result.Content[0].Type != "text" || result.Content[1].Type != "image" ||
					result.Content[1].MimeType != "image/png" {
					t.Fatalf("%s: blocks %+v", who, result.Content)
				}
				picture, err := base64.StdEncoding.DecodeString(result.Content[1].Data)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
					t.Errorf("%s: %v", who, err)
				}
				if result.Content[0].Text != string(result.StructuredContent) || strings.Contains(result.Content[0].Text, wifiMarker) ||
					strings.Contains(result.Content[0].Text, `"image"`) {
					t.Errorf("%s: text %s", who, result.Content[0].Text)
				}
			}
		})
	}
}

// What could slip past a check of the envelope is refused before it is read:
// batches, members twice or in another case, and text after the request.
func TestTools_AmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	acme := s.Company(servertest.UniqueSlug(), servertest.Everything())
	spare := newSpare(t, s.Env, acme)
	assistant := servertest.WithKey(t, s.base, s.Key(acme, access.All)).Legacy()
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	good := call(`{"name":"get_asset","arguments":{"assetId":"` + spare + `"}}`)
	assistant.Send(good).Want(t, http.StatusOK)
	for what, body := range map[string]string{
		"a batch":               "[" + good + "]",
		"an empty batch":        "[]",
		"a batch after blanks":  " \n[" + good + "," + good + "]",
		"the method twice":      `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{}}`,
		"another case's name":   call(`{"name":"get_asset","Name":"wipe_device","arguments":{"assetId":"` + spare + `"}}`),
		"the name twice":        call(`{"name":"get_asset","name":"wipe_device","arguments":{"assetId":"` + spare + `"}}`),
		"another case's PARAMS": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_asset","arguments":{}},"PARAMS":{"name":"wipe_device"}}`,
		"an argument twice":     call(`{"name":"get_asset","arguments":{"assetId":"` + spare + `","assetId":"x"}}`),
		"arguments twice":       call(`{"name":"get_asset","arguments":{},"arguments":{"assetId":"` + spare + `"}}`),
		"two requests":          good + good,
		"not UTF-8":             call(`{"name":"get_asset","arguments":{"assetId":"` + "\xff" + `"}}`),
		"nothing":               "",
		"no object":             "null",
		"half an object":        good[:len(good)-1],
		"another version":       strings.Replace(good, `"2.0"`, `"1.0"`, 1),
	} {
		t.Run(what, func(t *testing.T) {
			got := assistant.Send(body)
			var answer struct {
				JSONRPC string
				ID      any
				Error   struct{ Code int }
			}
			got.JSON(t, &answer)
			if got.Status != http.StatusBadRequest || answer.JSONRPC != "2.0" || answer.ID != nil {
				t.Errorf("%s: %d %s", what, got.Status, got.Body)
			}
			if answer.Error.Code != -32600 && answer.Error.Code != -32700 {
				t.Errorf("%s: error %d", what, answer.Error.Code)
			}
		})
	}
	// An argument in another case is no argument: REST's own words for it.
	if e := assistant.Call("get_asset", map[string]any{"assetid": spare}).Failed(t); e.Code != "invalid_arguments" ||
		!strings.Contains(e.Message, "assetid") {
		t.Errorf("an argument in another case: %+v", e)
	}
	assistant.Send(strings.Repeat(" ", 300<<10)).Want(t, http.StatusRequestEntityTooLarge)
	// What asks for nothing is taken and not answered.
	for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		assistant.Send(body).Want(t, http.StatusAccepted)
	}
	for _, method := range []string{"prompts/list", "resources/list", "completion/complete", "nonsense"} {
		if reply := assistant.Request(method, nil); reply.Error == nil || reply.Error.Code != -32601 {
			t.Errorf("%s: %d %s", method, reply.Status, reply.Body)
		}
	}
}

// Clients that can read JSON are answered, although clients ought to name streams too:
// our answers are JSON alone.
func TestTools_ClientsWithoutStreams(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	key := s.Key(s.Company(servertest.UniqueSlug(), servertest.Everything()), access.DevicesRead)
	for accept, want := range map[string]int{"": 200, "*/*": 200, "application/json": 200, "application/json;q=0.9, text/plain": 200,
		"text/html": 400} {
		t.Run(accept, func(t *testing.T) {
			assistant := servertest.WithKey(t, s.base, key)
			if assistant.Header["Accept"] = []string{accept}; accept == "" {
				assistant.Header["Accept"] = nil
			}
			if got := assistant.Send(
				`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
					`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
				"Mcp-Method", "tools/list"); got.Status != want {
				t.Errorf("Accept %q: %d %s", accept, got.Status, got.Body)
			}
		})
	}
}

// A tool call has a request id, a line in the log and a place in the metrics,
// as a call of REST has.
func TestTools_CallsAreLogged(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	assistant := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.DevicesRead))
	assistant.Header["X-Request-Id"] = []string{"mine-1"}
	if done := assistant.Call("count_assets", nil).OK(t, nil); done.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("the answer carries the id %q", done.Header.Get("X-Request-Id"))
	}
	delete(assistant.Header, "X-Request-Id")
	if refused := assistant.Call("wipe_device", nil); refused.Failed(t).Code != "forbidden" || refused.Header.Get("X-Request-Id") == "" {
		t.Errorf("refused: %d %s", refused.Status, refused.Body)
	}
	_, metrics := servertest.Fetch(t, replica.PublicURL()+"/metrics")
	for _, want := range []string{`_count{operation="count_assets",status="200"} 1`, `_count{operation="wipe_device",status="403"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	for _, want := range []string{"request_id=mine-1 method=POST path=/mcp operation=count_assets status=200",
		"operation=wipe_device status=403"} {
		if text := string(env.Log.Text()); !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
}
