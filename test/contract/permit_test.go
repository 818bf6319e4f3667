package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// held is a request whose caller was let in and whose body has not arrived.
type held struct {
	what   string
	finish func() verdict
	again  func() verdict // the same call, made again
}

// holdREST sends a call up to its body.
func holdREST(t *testing.T, r *servertest.Replica, header http.Header, tool string, args map[string]any) func() servertest.Answer {
	t.Helper()
	o := r.Registry().Find(tool)
	path, body := o.Path, map[string]any{}
	for name, value := range args {
		if slices.Contains(o.PathArgs(), name) {
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)), 1)
		} else {
			body[name] = value
		}
	}
	return hold(t, o.Method, r.PublicURL()+"/api/v1"+path, header, body)
}

func holdMCP(t *testing.T, r *servertest.Replica, header http.Header, tool string, args map[string]any) func() servertest.Answer {
	t.Helper()
	header = header.Clone()
	header.Set("Accept", "application/json, text/event-stream")
	header.Set("MCP-Protocol-Version", "2025-06-18")
	return hold(t, http.MethodPost, r.PublicURL()+"/mcp", header, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
}

func hold(t *testing.T, method, address string, header http.Header, body any) func() servertest.Answer {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	browser := client.NewBrowser("")
	browser.Header = header
	return servertest.Hold(t, browser, method, address, string(text), "Content-Type", "application/json")
}

// ofREST and ofMCP are the answers to a caller.
func ofREST(t *testing.T, a servertest.Answer) verdict {
	m := a.Members(t)
	code, _ := m["code"].(string)
	return verdict{status: a.Status, code: code}
}

func ofMCP(t *testing.T, a servertest.Answer) verdict {
	t.Helper()
	var answer struct {
		Error  any
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	a.Want(t, 200).JSON(t, &answer)
	if answer.Error != nil || !answer.Result.IsError || len(answer.Result.Content) != 1 {
		return verdict{status: 200}
	}
	var m struct {
		Status int
		Code   string
	}
	if err := json.Unmarshal([]byte(answer.Result.Content[0].Text), &m); err != nil {
		t.Fatal(err)
	}
	return verdict{status: m.Status, code: m.Code}
}

// recorded counts what callers left behind.
func recorded(t *testing.T, env *servertest.Env) map[string]int {
	t.Helper()
	counts := map[string]int{"tokens": env.Calls("androidmanagement.enterprises.enrollmentTokens.create")}
	for table, rows := range pgtest.Dump(t, env.Database) {
		switch table {
		case "commands", "proposals", "agent_tokens", "agent_deliveries", "authorizations":
			counts[table] = len(rows)
		case "activity":
			for _, row := range rows {
				if strings.Contains(row, "command.") || strings.Contains(row, "proposal.") || strings.Contains(row, "provisioning.") {
					counts[table]++
				}
			}
		}
	}
	return counts
}

// moving is a tenant whose callers have requests under way.
type moving struct {
	*servertest.Tenant
	replica *servertest.Replica
	other   policy.Policy
	phone   servertest.Device
	without access.Gate
	keys    []apikey.Key
	person  *servertest.Browser
	tokens  []string
}

func (m *moving) settings(change func(*access.Settings)) {
	_, err := m.DB().UpdateCompany(m.TB.Context(), m.Company.ID, company.Change(func(c *company.Company) { change(&c.Settings) }))
	m.check(err)
}

func (m *moving) check(err error) {
	m.TB.Helper()
	if err != nil {
		m.TB.Fatal(err)
	}
}

// Every operation that changes something, on REST and MCP, is held between authentication
// and its body while a control moves. Nothing is recorded, and the answer is that of a new
// call. An operation that is added is in the table by itself.
func TestPermit_EveryOperation(t *testing.T) {
	t.Parallel()
	byKeys := map[string]func(*moving){
		"stop": func(m *moving) {
			m.CLI(new(any), "company", "stop", "--company", m.Company.Slug, "--reason", "because")
		},
		"stop all": func(m *moving) {
			m.CLI(new(any), "company", "stop", "--company", m.Company.Slug, "--reason", "because", "--all")
		},
		"revoke": func(m *moving) {
			for _, k := range m.keys {
				_, err := m.Admin().Keys.RevokeKey(m.TB.Context(), m.Company.ID, k.ID, m.Now())
				m.check(err)
			}
		},
		"expiry": func(m *moving) { m.Advance(2 * time.Hour) },
		"gates": func(m *moving) {
			m.settings(func(s *access.Settings) { *s = access.Settings{Controls: s.Controls, KeepActivity: s.KeepActivity} })
		},
		"reason": func(m *moving) { m.settings(func(s *access.Settings) { s.Controls.RequireReason = access.ReasonAll }) },
	}
	byConnections := map[string]func(*moving){
		"rights": func(m *moving) {
			m.person.Change(func(u *account.User) { u.Role, u.Rights = account.Viewer, account.ViewActivity })
		},
		"policies": func(m *moving) { m.person.Change(func(u *account.User) { u.Policies = []string{"another"} }) },
		"disable":  func(m *moving) { m.person.Change(func(u *account.User) { u.Disabled = true }) },
		"freeze": func(m *moving) {
			for _, token := range m.tokens {
				_, err := m.DB().UpdateConnection(m.TB.Context(), m.Company.ID, m.ConnectionOf(token).ID, freeze)
				m.check(err)
			}
		},
		"gates": func(m *moving) {
			m.settings(func(s *access.Settings) {
				*s = access.Settings{Controls: s.Controls, KeepActivity: s.KeepActivity, OAuthConnections: true}
			})
		},
		"oauth": func(m *moving) { m.settings(func(s *access.Settings) { s.OAuthConnections = false }) },
	}
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start(func(c *config.Service, _ *service.Options) { c.ReadsPerMinute = 10_000 })
		for name, move := range byKeys {
			m := newMoving(t, env, replica, "k"+strings.ReplaceAll(name, " ", "-"))
			if name == "gates" {
				m.without = access.ProvisioningGate // binds connections only
			}
			m.compare(t, name, m.holdByKeys(t), move)
		}
		for name, move := range byConnections {
			m := newMoving(t, env, replica, "c"+name)
			m.compare(t, name, m.holdByConnections(t), move)
		}
	})
}

func newMoving(t *testing.T, env *servertest.Env, replica *servertest.Replica, slug string) *moving {
	t.Helper()
	m := &moving{Tenant: env.NewTenant(slug), replica: replica}
	m.other = env.Policy(m.Company, "Other of "+slug, m.Policy.Type)
	m.phone = m.Devices(replica, servertest.FullyManaged(), 1)[0]
	servertest.AwaitStatus(t, m.Tenant, m.Client(replica, access.All), m.phone.AssetID, "ACTIVE")
	return m
}

// writing are the operations that change something.
func (m *moving) writing() (all []*operation.Operation) {
	for _, o := range m.replica.Registry().All() {
		if o.Effect != operation.Reading && (m.without == "" || o.Gate != m.without) {
			all = append(all, o)
		}
	}
	return all
}

// calls are valid arguments of the operations, with a proposal of the caller.
func (m *moving) calls(t *testing.T, propose func(args map[string]any) string, o *operation.Operation) map[string]any {
	t.Helper()
	proposal := "prp_" + strings.Repeat("a", 26)
	if o.Name == "apply_policy_proposal" {
		proposal = propose(map[string]any{"changes": []any{map[string]string{"setting": "CAMERA", "value": "BLOCK"}}})
	}
	args, known := exampleCalls(m.phone.AssetID, m.Policy.ID, m.other.ID, proposal)[o.Name]
	if !known {
		t.Fatalf("there are no arguments for %s in exampleCalls", o.Name)
	}
	return args
}

// holdByKeys holds every operation on both surfaces, each by a key of its own.
func (m *moving) holdByKeys(t *testing.T) (all []held) {
	t.Helper()
	for _, o := range m.writing() {
		k, text := m.shortKey(t)
		client := m.replica.As(text)
		args := m.calls(t, func(change map[string]any) string {
			return client.Post("/policies/"+m.Policy.ID+"/changes", change).Want(t, 201).Members(t)["proposalId"].(string)
		}, o)
		m.keys = append(m.keys, k)
		header := http.Header{"X-Api-Key": {text}}
		again := func() verdict { return ofREST(t, holdREST(t, m.replica, header, o.Name, args)()) }
		rest, mcp := holdREST(t, m.replica, header, o.Name, args), holdMCP(t, m.replica, header, o.Name, args)
		all = append(all, held{o.Name + " on REST", func() verdict { return ofREST(t, rest()) }, again},
			held{o.Name + " on MCP", func() verdict { return ofMCP(t, mcp()) }, again})
	}
	return all
}

// shortKey is a key that ends in an hour.
func (m *moving) shortKey(t *testing.T) (apikey.Key, string) {
	t.Helper()
	k, text, err := apikey.Keys{Store: m.Admin().Keys, Now: m.Now}.CreateForOperator(t.Context(),
		apikey.Request{CompanyID: m.Company.ID, Name: "test", Permissions: access.All, ExpiresIn: time.Hour})
	m.check(err)
	return k, text
}

// perConnection is how many operations one connection's budget is enough for.
const perConnection = 4

// holdByConnections holds every operation by a person's connections.
func (m *moving) holdByConnections(t *testing.T) (all []held) {
	t.Helper()
	m.person = m.Browser(m.Company, account.Admin)
	for n, o := range m.writing() {
		if n%perConnection == 0 {
			m.tokens = append(m.tokens, m.person.Connect(m.replica.PublicURL(), access.All.Scopes()...).Access)
		}
		token := m.tokens[len(m.tokens)-1]
		client := servertest.WithToken(t, m.replica.PublicURL(), token)
		args := m.calls(t, func(change map[string]any) string {
			var made struct{ ProposalID string }
			change["policyId"] = m.Policy.ID
			client.Call("update_policy_settings", change).OK(t, &made)
			return made.ProposalID
		}, o)
		mcp := holdMCP(t, m.replica, http.Header{"Authorization": {"Bearer " + token}}, o.Name, args)
		all = append(all, held{o.Name + " by a connection", func() verdict { return ofMCP(t, mcp()) }, func() verdict {
			answer := client.Legacy().Call(o.Name, args)
			if answer.Status != 200 {
				return verdict{status: answer.Status, code: "unauthorized"}
			}
			return ofMCP(t, answer.Answer)
		}})
	}
	return all
}

// compare moves the control while requests are held.
func (m *moving) compare(t *testing.T, name string, requests []held, move func(*moving)) {
	t.Helper()
	before := recorded(t, m.Env)
	move(m)
	for _, h := range requests {
		got, want := h.finish(), h.again()
		same := got.code == want.code || got.code == "" || want.code == "" // the four older commands have none on REST
		if got.status != want.status || !same || got.status < 400 {
			t.Errorf("%s: %s is answered %d %s, a new call %d %s", name, h.what, got.status, got.code, want.status, want.code)
		}
	}
	if after := recorded(t, m.Env); !maps.Equal(before, after) {
		t.Errorf("%s: recorded %v, before %v", name, after, before)
	}
}

func freeze(o *oauth.Connection) error { o.Frozen = true; return nil }
