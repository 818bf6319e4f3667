package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
	"github.com/musterhq/muster/test/spec"
)

// rehearsal is REST and MCP over one kernel whose handlers, budget and caller
// are made to fail.
type rehearsal struct {
	operation.BudgetStore
	result error // of every handler
	spent  bool  // the budget is
	key    apikey.Key
	may    access.Permission
}

func (r *rehearsal) Spend(_ context.Context, _ string, limit int, _ time.Duration, now time.Time) (int, bool, time.Time, error) {
	return limit, !r.spent, now.Add(41500 * time.Millisecond), nil
}

func (r *rehearsal) KeyByPrefix(context.Context, string) (apikey.Key, access.Principal, error) {
	return r.key, access.Principal{Kind: access.APIKey, ID: r.key.ID, CompanyID: "c", CompanySlug: "acme", Permissions: r.may,
		Settings: servertest.Everything()}, nil
}

func (r *rehearsal) TouchKey(context.Context, string) error { return nil }

// serve starts both surfaces and returns a client of each.
func (r *rehearsal) serve(t *testing.T, registry *operation.Registry) (servertest.Client, servertest.Assistant) {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	var text string
	r.key, text = apikey.New("c", "test", "operator", access.All, now(), time.Time{})
	rehearsed := registry.Rehearsal(func(context.Context, *operation.Operation, operation.Call) (any, error) { return nil, r.result })
	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: r, Now: now}, ReadsPerMinute: 1, Now: now})
	keys := apikey.Authenticator{Keys: r, Now: now}
	tools, err := mcp.New(mcp.Config{Registry: rehearsed, Once: operation.Once{Kernel: kernel}, Keys: keys, Now: now,
		Served: func(string, int, time.Duration) {}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mcp.Path, tools)
	server := httptest.NewServer(rest.New(rest.Config{Registry: rehearsed, Once: operation.Once{Kernel: kernel}, Authenticator: keys,
		Served: func(string, int, time.Duration) {}, Now: now, Log: slog.New(slog.DiscardHandler)}).Wrap(mux))
	t.Cleanup(server.Close)
	return servertest.Client{TB: t, URL: server.URL, Key: text}, servertest.WithKey(t, server.URL, text)
}

// surfaceError is what a surface reports about an error, as far as it does.
type surfaceError struct {
	Status  int
	Code    string // empty: this family does not tell it
	Message string // empty: an empty body
}

var anID = regexp.MustCompile(`its id is \S+`)

func errorByREST(t *testing.T, answer servertest.Answer) surfaceError {
	t.Helper()
	members := answer.Members(t)
	text := func(name string) string { s, _ := members[name].(string); return s }
	return surfaceError{answer.Status, text("code"), anID.ReplaceAllString(text("detail")+text("message"), "its id is X")}
}

func errorByMCP(t *testing.T, result servertest.ToolResult) surfaceError {
	t.Helper()
	if result.Status != http.StatusOK { // the transport's own: the shared object of 401
		return errorByREST(t, result.Answer)
	}
	e := result.Failed(t)
	return surfaceError{e.Status, e.Code, anID.ReplaceAllString(e.Message, "its id is X")}
}

// agree compares; what REST leaves out, MCP tells with the common codes.
func agree(t *testing.T, rest, tool surfaceError, code string) {
	t.Helper()
	if rest.Code == "" && tool.Code != "" {
		rest.Code = code
	}
	if rest.Message == "" && tool.Message != "" {
		rest.Message = tool.Message
	}
	if rest != tool {
		t.Errorf("REST tells %+v\n MCP tells %+v", rest, tool)
	}
}

// Every operation of the registry, made to end in every code that the
// contract's table has for it, tells the same status, code and message as a
// tool (contract 4.5).
func TestParity_EveryError(t *testing.T) {
	t.Parallel()
	registry := whole(t)
	tried := 0
	for _, o := range registry.All() {
		for _, code := range slices.Sorted(maps.Keys(spec.Answers[resttest.FamilyOf(o)])) {
			if !canEndIn(o, code) {
				continue
			}
			tried++
			t.Run(o.Name+"/"+code, func(t *testing.T) {
				t.Parallel()
				provokeBoth(t, registry, o, code)
			})
		}
	}
	if tried < 200 {
		t.Errorf("only %d cases were tried", tried)
	}
}

func canEndIn(o *operation.Operation, code string) bool {
	switch code {
	case "malformed":
		return o.HasBody()
	case "invalid_arguments":
		return o.HasBody() || slices.ContainsFunc(o.Parameters(), func(p operation.Parameter) bool { return p.Schema.Type == "integer" })
	case "unauthorized", "forbidden", "rate_limited", "internal_error":
		return true
	}
	return slices.Contains(o.Faults, fault.Code(code))
}

func provokeBoth(t *testing.T, registry *operation.Registry, o *operation.Operation, code string) {
	t.Helper()
	r := &rehearsal{may: access.All, result: &fault.Error{Code: fault.Code(code), Detail: "provoked – in so many words",
		Retryable: code == "provider_error"}}
	client, assistant := r.serve(t, registry)
	path, body := examplePath(o), payload(o, exampleBody(o))
	arguments := string(o.FlatExample())
	want := spec.Answers[resttest.FamilyOf(o)][code]
	switch code {
	case "unauthorized":
		client.Key = "mk_wrong"
		assistant.Header.Set("X-Api-Key", client.Key)
	case "forbidden":
		r.may = 0
		r.spent = o.Budget == operation.BeforeValidation // callers without DEVICES_COMMAND do not spend
	case "malformed":
		body, arguments = withMember(body.(string), `"noSuchMember":1`), withMember(arguments, `"noSuchMember":1`)
		code = "invalid_arguments"
	case "invalid_arguments":
		path, body, arguments = wrongValue(o, path, body, arguments)
	case "rate_limited":
		r.spent = true
		client.Do(o.Method, path, body) // the second read is beyond the ceiling, which a caller has in common
	case "internal_error":
		r.result = errors.New("a cause that stays hidden")
		if o.Effect == operation.Reading { // where that is "unavailable"
			r.result = fault.New(fault.Internal, "an error").Because(r.result)
		}
	}
	answer := client.Do(o.Method, path, body)
	if code != "rate_limited" && code != "unauthorized" {
		_, assistant = r.serve(t, registry) // with the ceiling of reads and refusals, one a minute here, to itself
	}
	result := assistant.Call(o.Name, arguments)
	if answer.Status != want.Status {
		t.Errorf("REST answers %d, want %d: %s", answer.Status, want.Status, answer.Body)
	}
	agree(t, errorByREST(t, answer), errorByMCP(t, result), code)
	if code == "rate_limited" && answer.Header.Get("Retry-After") != fmt.Sprint(result.Failed(t).RetryAfter) {
		t.Errorf("REST waits %s, MCP %d", answer.Header.Get("Retry-After"), result.Failed(t).RetryAfter)
	}
	if retryable, says := answer.Members(t)["retryable"]; says && retryable != result.Failed(t).Retryable {
		t.Errorf("retryable on REST %v, on MCP %v", retryable, result.Failed(t).Retryable)
	}
	if strings.Contains(string(result.Body), "stays hidden") {
		t.Errorf("the cause is revealed: %s", result.Body)
	}
}

func examplePath(o *operation.Operation) string {
	values, _ := o.Example()
	path := o.Path
	for i, name := range o.PathArgs() {
		path = strings.Replace(path, "{"+name+"}", values[i], 1)
	}
	return path
}

func exampleBody(o *operation.Operation) []byte { _, body := o.Example(); return body }

// withMember adds a member to the text of a JSON object.
func withMember(object, member string) string {
	if object == "{}" {
		return "{" + member + "}"
	}
	return "{" + member + "," + object[1:]
}

// wrongValue makes one argument wrong: the body's first is null, or a number
// of the query is out of range.
func wrongValue(o *operation.Operation, path string, body any, arguments string) (string, any, string) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal([]byte(arguments), &members) // the registry's own
	text := func() string { all, _ := json.Marshal(members); return string(all) }
	if !o.HasBody() {
		all := o.Parameters()
		p := all[slices.IndexFunc(all, func(p operation.Parameter) bool { return p.Schema.Type == "integer" })]
		members[p.Name] = json.RawMessage("-7")
		return path + "?" + p.Name + "=-7", body, text()
	}
	members[o.BodySchema().PropertyOrder[0]] = json.RawMessage("null")
	flat := text()
	for _, p := range o.PathArgs() {
		delete(members, p)
	}
	return path, text(), flat
}

// world is a state of things in which every operation is tried on both surfaces.
type world struct {
	name     string
	settings access.Settings
	may      access.Permission
	// What the path arguments are.
	asset, policy, proposal string
}

// The same, with nothing made up: every operation on both surfaces of a running
// service, in states that most of them refuse.
func TestParity_RefusalsOfARunningService(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	spare := newSpare(t, env, acme)
	own := env.Policy(acme, "Own", policy.Agent)
	const nothing = "8k2v0r6m4q1x7t9c3w5y2n8b6d"
	for _, w := range []world{
		{"nothing of that name", servertest.Everything(), access.All, nothing, nothing, "prp_" + nothing},
		{"not enrolled, and the agent's policy", servertest.Everything(), access.All, spare, own.ID, "prp_" + nothing},
		{"every setting off", access.Settings{}, access.All, spare, own.ID, "prp_" + nothing},
		{"a key that may nothing", servertest.Everything(), 0, spare, own.ID, "prp_" + nothing},
		{"a key that may look", servertest.Everything(), access.DevicesRead | access.PoliciesRead, spare, own.ID, "prp_" + nothing},
		{"destructive commands without commands", access.Settings{DestructiveCommands: true}, access.All, spare, own.ID, "prp_" + nothing},
	} {
		setCompany(t, env, acme.ID, w.settings)
		for _, o := range replica.Registry().All() {
			path, arguments := inWorld(o, w)
			// A key for each: none has spent anything yet.
			answer := replica.As(keyThatMay(t, env, acme, w.may)).Do(o.Method, path, payload(o, exampleBody(o)))
			result := servertest.WithKey(t, replica.PublicURL(), keyThatMay(t, env, acme, w.may)).Call(o.Name, arguments)
			t.Run(w.name+"/"+o.Name, func(t *testing.T) {
				if answer.Status < 400 {
					result.OK(t, nil)
					return
				}
				agree(t, errorByREST(t, answer), errorByMCP(t, result), errorByMCP(t, result).Code)
			})
		}
	}
}

// inWorld is the operation's example with the ids of the world.
func inWorld(o *operation.Operation, w world) (path string, arguments map[string]any) {
	arguments = map[string]any{}
	_ = json.Unmarshal(o.FlatExample(), &arguments) // the registry's own
	path = o.Path
	for name, id := range map[string]string{"assetId": w.asset, "policyId": w.policy, "proposalId": w.proposal} {
		if slices.Contains(o.PathArgs(), name) {
			arguments[name] = id
			path = strings.Replace(path, "{"+name+"}", id, 1)
		}
	}
	return path, arguments
}

func setCompany(t *testing.T, env *servertest.Env, id string, settings access.Settings) {
	t.Helper()
	_, err := env.Admin().Companies.UpdateCompany(t.Context(), id, func(c *company.Company) error {
		c.Settings = settings
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// keyThatMay makes a key; one that may nothing is made past the rules for keys,
// as a key whose permissions were all withdrawn.
func keyThatMay(t *testing.T, env *servertest.Env, c company.Company, may access.Permission) string {
	t.Helper()
	if may != 0 {
		return env.Key(c, may)
	}
	key, text := apikey.New(c.ID, "nothing", "operator", 0, env.Now(), time.Time{})
	if err := env.Admin().Keys.CreateKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return text
}
