package contract_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
	"github.com/musterhq/muster/test/spec"
)

// rulebookCaller is a key over REST, or a connection over MCP.
type rulebookCaller struct {
	key        servertest.Client
	connection *servertest.Assistant
	person     *servertest.Browser // of the connection
	keyID      string
	token      string // of the connection
}

// caller is a new key, or a new connection of an administrator; the company has the
// settings of the world from then on.
func (b *book) caller(r *rapid.T, w *rulebook.World, rights access.Permission) (by rulebookCaller) {
	if rarely(r, 3, "connects") {
		w.PerDay = 0
		by.person = b.tenant.Browser(b.tenant.Company, account.Admin)
		by.connection, by.token = b.connect(r, w, by.person, rights)
		rights = ofScopes(rights)
	} else {
		key := apikey.Request{CompanyID: b.tenant.Company.ID, Name: "random", Permissions: rights, DevicesPerDay: w.PerDay}
		w.Provisioning = true // the setting binds connections alone
		if w.Elsewhere = rarely(r, 12, "elsewhere"); w.Elsewhere {
			key.Networks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		}
		made, text, err := apikey.Keys{Store: b.tenant.Admin().Keys, Now: b.tenant.Now}.CreateForOperator(b.t.Context(), key)
		if err != nil {
			b.t.Fatal(err)
		}
		by.key, by.keyID = b.replica.As(text), made.ID
		b.set(*w)
	}
	for _, name := range rights.Names() {
		w.Rights[name] = true
	}
	return by
}

// ofScopes are the rights of a connection with such scopes.
func ofScopes(rights access.Permission) access.Permission {
	if rights&(access.DevicesCommand|access.DevicesCommandDestructive) != 0 {
		rights |= access.DevicesRead
	}
	if rights&(access.PoliciesWrite|access.Provisioning) != 0 {
		rights |= access.PoliciesRead
	}
	return rights
}

// connect makes a connection with the scopes of rights; it may be frozen then, or all of
// the company's may be switched off.
func (b *book) connect(r *rapid.T, w *rulebook.World, person *servertest.Browser,
	rights access.Permission) (assistant *servertest.Assistant, token string) {
	var scopes []string
	for right, scope := range map[access.Permission]string{access.DevicesRead: "mcp:devices:read", access.PoliciesRead: "mcp:policies:read",
		access.PoliciesWrite:  "mcp:policies:write",
		access.DevicesCommand: "mcp:devices:command", access.DevicesCommandDestructive: "mcp:devices:destructive",
		access.Provisioning: "mcp:provisioning"} {
		if rights&right != 0 {
			scopes = append(scopes, scope)
		}
	}
	// consent gives no scope that is switched off
	b.set(rulebook.World{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, RequireReason: "OFF",
		ApplyApproval: "OFF"})
	url := b.replica.PublicURL()
	token = person.Connect(url, scopes...).Access
	b.set(*w)
	frozen, off := rarely(r, 8, "frozen"), rarely(r, 8, "connections off")
	w.Barred = frozen || off
	if frozen {
		_, err := b.tenant.DB().UpdateConnection(b.t.Context(), b.tenant.Company.ID, b.tenant.ConnectionOf(token).ID,
			func(c *oauth.Connection) error {
				c.Frozen = true
				return nil
			})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if off {
		b.tenant.CLI(new(any), "company", "set", "acme", "--disable", "oauth-connections")
	}
	made := servertest.WithToken(b.t, url, token)
	return &made, token
}

// asks is the assistant, which gives the call's reason with each tool call.
func (by rulebookCaller) asks(c rulebook.Call) servertest.Assistant {
	if c.Reason {
		return by.connection.Saying("muster/reason", "a test")
	}
	return *by.connection
}

// headers give the call's reason over REST.
func (by rulebookCaller) headers(c rulebook.Call) []string {
	if c.Reason {
		return []string{"X-Muster-Reason", "a test"}
	}
	return nil
}

// explain has a call explained; refused is the status if that is not answered.
func (by rulebookCaller) explain(t *testing.T, c rulebook.Call, arguments map[string]any) (explanation explained, refused int) {
	question := map[string]any{"operation": c.Tool, "arguments": arguments}
	if by.connection == nil {
		answer := by.key.Post("/explain", question, by.headers(c)...)
		if answer.Status != 200 {
			return explanation, answer.Status
		}
		answer.JSON(t, &explanation)
		return explanation, 0
	}
	result := by.asks(c).Call("explain_operation", question)
	if result.IsError {
		return explanation, result.Failed(t).Status
	}
	result.OK(t, &explanation)
	return explanation, 0
}

// received is how a call was answered. The four older commands have no code over REST.
type received struct {
	status                  int
	code, address, proposal string
}

// send makes the call: to its address with a key, to its tool with a connection.
func (by rulebookCaller) send(t *testing.T, c rulebook.Call, arguments map[string]any) received {
	if by.connection == nil {
		return by.post(t, c, arguments)
	}
	result := by.asks(c).Call(c.Tool, arguments)
	if result.Status == 403 { // a scope is missing
		return received{status: 403}
	}
	return ofToolCall(t, c, result)
}

// ofToolCall is how a tool call was answered.
func ofToolCall(t *testing.T, c rulebook.Call, result servertest.ToolResult) received {
	if !result.IsError {
		var made struct{ ProposalID string }
		result.OK(t, &made)
		switch c.Tool {
		case "create_provisioning_qr_code":
			return received{status: 201}
		case "update_policy_settings", "create_policy", "rollback_policy":
			return received{status: 201, proposal: made.ProposalID}
		}
		return received{status: 200}
	}
	failed := result.Failed(t)
	var m struct{ ApprovalURL string }
	if err := json.Unmarshal([]byte(result.Content[0].Text), &m); err != nil {
		t.Fatal(err)
	}
	return received{status: failed.Status, code: failed.Code, address: m.ApprovalURL}
}

// post makes the call over REST.
func (by rulebookCaller) post(t *testing.T, c rulebook.Call, arguments map[string]any) received {
	method, path, body := rulebookRequest(c, arguments)
	var sent any
	if method == "GET" {
		if _, odd := body["nonsense"]; odd {
			path += "?nonsense=1"
		}
	} else if len(body) > 0 {
		sent = body
	}
	return ofPost(t, method, by.key.Do(method, path, sent, by.headers(c)...))
}

// rulebookRequest is a call as a request of REST.
func rulebookRequest(c rulebook.Call, arguments map[string]any) (method, path string, body map[string]any) {
	e := spec.Find(c.Tool)
	method, path = e.Method, e.Path
	body = maps.Clone(arguments)
	for _, name := range []string{"assetId", "logId", "policyId", "proposalId"} {
		if in := "{" + name + "}"; strings.Contains(path, in) {
			path = strings.Replace(path, in, body[name].(string), 1)
			delete(body, name)
		}
	}
	return method, path, body
}

// ofPost is how a request of REST was answered.
func ofPost(t *testing.T, method string, answer servertest.Answer) received {
	var m struct{ Code, ApprovalURL, ProposalID string }
	if len(answer.Body) > 0 && (method != "GET" || answer.Status >= 400) {
		answer.JSON(t, &m)
	}
	if answer.Status != 201 {
		m.ProposalID = ""
	}
	return received{answer.Status, m.Code, m.ApprovalURL, m.ProposalID}
}
