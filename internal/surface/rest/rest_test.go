package rest_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
)

// The fixture: one small operation of each dialect. What the handler does is
// said by a field of the test.

type assetArgs struct {
	AssetID string `path:"assetId" doc:"The asset."`
}

type textArgs struct {
	AssetID string `path:"assetId" doc:"The asset."`
	Text    string `json:"text" rule:"required notblank maxchars=5" doc:"Some text."`
}

type policyArgs struct {
	PolicyID string `path:"policyId" doc:"The policy."`
	Note     string `json:"note" rule:"maxchars=5" doc:"A note."`
}

type listArgs struct {
	operation.PageRequest
	Status string `query:"status" rule:"enum=ACTIVE|INACTIVE" doc:"Only of this status."`
}

type result struct {
	ID      string `json:"id" doc:"What was asked for." example:"8k2v"`
	Text    string `json:"text,omitempty" doc:"The text." example:"Hello"`
	unknown bool
}

func (r result) Unconfirmed() bool { return r.unknown }

type service struct {
	*rest.Server
	// handle stands for every handler.
	handle func(context.Context, operation.Call, string) (result, error)
	budget budget
}

type budget struct {
	operation.BudgetStore
	left  operation.Allowance
	err   error
	spent int
}

func (b *budget) Spend(_ context.Context, _ string, limit int, _ time.Duration, now time.Time) (int, bool, time.Time, error) {
	b.spent++
	return limit - b.left.Remaining, b.left.Spent, now.Add(b.left.Reset), b.err
}

type keys map[string]access.Principal

func (k keys) Authenticate(_ context.Context, text string) (access.Principal, error) {
	if text == "broken" {
		panic("secret cause")
	}
	if p, ok := k[text]; ok {
		return p, nil
	}
	return access.Principal{}, fault.New(fault.Unauthorized, "API key missing, invalid, expired or revoked")
}

func principal(id string, p access.Permission) access.Principal {
	return access.Principal{Kind: access.APIKey, ID: id, CompanySlug: "acme", Permissions: p,
		Settings: access.Settings{DeviceCommands: true, PolicyChanges: true}}
}

func newService(t testing.TB) *service {
	t.Helper()
	s := &service{
		handle: func(_ context.Context, _ operation.Call, id string) (result, error) { return result{ID: id}, nil },
		budget: budget{left: operation.Allowance{Spent: true, Limit: 10, Remaining: 9, Reset: 42 * time.Second, Window: time.Minute}},
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	s.Server = rest.New(rest.Config{
		Registry: s.registry(),
		Once: operation.Once{Kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: &s.budget, Now: now},
			Now: now})},
		Authenticator: keys{"good": principal("k1", access.All), "poor": principal("k2", 0),
			"commander": principal("k3", access.DevicesCommand)},
		Served: func(string, int, time.Duration) {}, Now: now, Log: slog.New(slog.DiscardHandler),
	})
	return s
}

var commandFaults = []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable}

func (s *service) registry() *operation.Registry {
	r := &operation.Registry{}
	commands := access.DevicesCommand | access.DevicesRead
	operation.Define(r, operation.Operation{Name: "lock_device", Title: "Lock", Description: "Locks the screen.", Method: "POST",
		Path: "/assets/{assetId}/commands/lock", Needs: commands, Gate: access.DeviceCommands, Budget: operation.BeforeValidation,
		Dialect: operation.FirstFour, Effect: operation.Writing, Faults: commandFaults, Unconfirmed: true},
		func(ctx context.Context, c operation.Call, a assetArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "launch_app", Title: "Launch", Description: "Opens an app.", Method: "POST",
		Path: "/assets/{assetId}/commands/launch-app", Needs: commands, Gate: access.DeviceCommands, Budget: operation.AfterValidation,
		Dialect: operation.Commands, Effect: operation.Writing, Faults: commandFaults, Unconfirmed: true},
		func(ctx context.Context, c operation.Call, a textArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "change_policy", Title: "Change", Description: "Proposes a change.", Method: "POST",
		Path: "/policies/{policyId}/changes", Created: true, Needs: access.PoliciesWrite, Gate: access.PolicyChanges,
		Budget:  operation.AfterValidation,
		Dialect: operation.Policies, Effect: operation.Writing,
		Faults: []fault.Code{fault.NotFound, fault.StaleProposal, fault.ConfirmationRequired}},
		func(ctx context.Context, c operation.Call, a policyArgs) (result, error) {
			return s.handle(ctx, c, a.PolicyID)
		})
	operation.Define(r, operation.Operation{Name: "create_qr", Title: "QR", Description: "Makes a QR code.", Method: "POST",
		Path: "/policies/{policyId}/provisioning-qr-codes", Created: true, Needs: access.Provisioning, Budget: operation.AfterValidation,
		Dialect: operation.Provisioning, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.Refused, fault.Provider}},
		func(ctx context.Context, c operation.Call, a policyArgs) (result, error) {
			return s.handle(ctx, c, a.PolicyID)
		})
	operation.Define(r, operation.Operation{Name: "get_asset", Title: "Asset", Description: "Returns an asset.", Method: "GET",
		Path: "/assets/{assetId}", Needs: access.DevicesRead, Dialect: operation.Reads, Faults: []fault.Code{fault.NotFound}},
		func(ctx context.Context, c operation.Call, a assetArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "count_assets", Title: "Count", Description: "Counts assets.", Method: "GET",
		Path: "/assets/count", Needs: access.DevicesRead, Dialect: operation.Reads},
		func(ctx context.Context, c operation.Call, a listArgs) (result, error) {
			return s.handle(ctx, c, "count")
		})
	return r
}

// send makes a request with the good key unless header says otherwise.
func (s *service) send(method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-API-Key", "good")
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const lock = "/commands/lock"
	tests := []struct {
		path   string
		status int
		id     string // what the handler is given
	}{
		{"/assets/a1" + lock, 200, "a1"},
		{"/assets/enterprises%2Facme%2Fassets%2Fa1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises%2facme%2fassets%2fa1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises/acme/assets/a1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises/other/assets/a1" + lock, 200, "enterprises/other/assets/a1"},
		{"/assets/enterprises/acme/policies/a1" + lock, 200, "enterprises/acme/policies/a1"},
		{"/assets/enterprises" + lock, 200, "enterprises"},
		{"/assets/%00%ff" + lock, 200, "\x00\xff"},
		{"/policies/enterprises/acme/policies/p1/changes", 201, "enterprises/acme/policies/p1"},
		{"/policies/enterprises%2Facme%2Fpolicies%2Fp1/changes", 201, "enterprises/acme/policies/p1"},

		{"/assets/enterprises/acme%2Fassets%2Fa1" + lock, 404, ""},
		{"/assets/enterprises/acme/assets" + lock, 404, ""},
		{"/assets//a1" + lock, 404, ""},
		{"//assets/a1" + lock, 404, ""},
		{"/assets/a1//commands/lock", 404, ""},
		{"/assets/a1/commands/lock/", 404, ""},
		{"/assets/x/../a1" + lock, 404, ""},
		{"/assets/.." + lock, 404, ""},
		{"/assets/%2e%2e" + lock, 404, ""},
		{"/assets/a1/commands/LOCK", 404, ""},
		{"/assets/a1/commands/explode", 404, ""},
		{"/nothing", 404, ""},
		{"/", 404, ""},
		{"", 404, ""},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			got := ""
			s.handle = func(_ context.Context, _ operation.Call, id string) (result, error) {
				got = id
				return result{ID: "x"}, nil
			}
			body := ""
			if strings.HasSuffix(test.path, "/changes") {
				body = "{}"
			}
			w := s.send("POST", "/api/v1"+test.path, body)
			if w.Code != test.status || got != test.id {
				t.Errorf("status %d, id %q; want %d, %q", w.Code, got, test.status, test.id)
			}
			if test.status == 404 && w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("an unknown address answers %s %s", w.Header().Get("Content-Type"), w.Body)
			}
		})
	}
}

func TestErrors_EveryDialect(t *testing.T) {
	t.Parallel()
	resttest.Refusals(t, newService(t).registry())
}

func TestDescription(t *testing.T) {
	t.Parallel()
	s := newService(t)
	resttest.Described(t, s.registry())
	// What TestBudgetHeaders and the tests of repetitions find.
	for _, rule := range []string{"the answers to calls that were counted carry `RateLimit` and `RateLimit-Policy`",
		"Any POST or PATCH that changes something may carry one"} {
		if w := s.send("GET", "/openapi.json", ""); !strings.Contains(w.Body.String(), rule) {
			t.Errorf("the description does not say that %s", rule)
		}
	}
	for _, address := range []string{"/api/v1/openapi.json", "/openapi.json", "/api/openapi.json"} {
		w := s.send("GET", address, "", "X-API-Key", "")
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("ETag") == "" {
			t.Errorf("%s: %d %v", address, w.Code, w.Header())
		}
		if w := s.send("POST", address, ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", address, w.Code)
		}
	}
}

func TestDescription_ReferencePage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	page := s.send("GET", "/api/docs", "", "X-API-Key", "")
	policy := page.Header().Get("Content-Security-Policy")
	if page.Code != 200 || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	html := page.Body.String()
	for _, o := range s.registry().All() {
		if !strings.Contains(html, `id="`+o.Name+`"`) || !strings.Contains(html, o.Description) {
			t.Errorf("%s is not on the page", o.Name)
		}
	}
	for _, foreign := range []string{"http://", "https://", "<style", "style=", "onclick", "<script>", "ZgotmplZ"} {
		if strings.Contains(html, foreign) {
			t.Errorf("the page holds %s", foreign)
		}
	}
	for _, file := range []string{"reference.css", "reference.js"} {
		if w := s.send("GET", "/api/docs/"+file, ""); w.Code != 200 || w.Body.Len() == 0 || !strings.Contains(html, "/api/docs/"+file) {
			t.Errorf("%s: %d", file, w.Code)
		}
		if strings.Contains(s.send("GET", "/api/docs/"+file, "").Body.String(), "http") {
			t.Errorf("%s speaks to others", file)
		}
	}
	if w := s.send("GET", "/api/docs/other", ""); w.Code != 404 {
		t.Errorf("another file: %d", w.Code)
	}
	if w := s.send("GET", "/api/docsandmore", ""); w.Code != 404 {
		t.Errorf("another address: %d", w.Code)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/assets/a1", 200, ""},
		{"HEAD", "/assets/a1", 200, ""},
		{"POST", "/assets/a1", 405, "GET, HEAD"},
		{"DELETE", "/assets/a1", 405, "GET, HEAD"},
		{"OPTIONS", "/assets/a1", 405, "GET, HEAD"},
		{"BREW", "/assets/a1", 405, "GET, HEAD"},
		{"GET", "/assets/a1/commands/lock", 405, "POST"},
		{"GET", "/assets/count", 200, ""},
	} {
		t.Run(test.method, func(t *testing.T) {
			w := s.send(test.method, "/api/v1"+test.path, "")
			if w.Code != test.status || w.Header().Get("Allow") != test.allow {
				t.Errorf("%s %s: %d, Allow %q", test.method, test.path, w.Code, w.Header().Get("Allow"))
			}
			if test.status == 405 && (!strings.Contains(w.Body.String(), `"code":"method_not_allowed"`) ||
				w.Header().Get("Content-Type") != "application/problem+json") {
				t.Errorf("%s %s: %s", test.method, test.path, w.Body)
			}
		})
	}
	head, get := s.send("HEAD", "/api/v1/assets/a1", ""), s.send("GET", "/api/v1/assets/a1", "")
	if head.Body.Len() != 0 || head.Header().Get("Content-Length") != get.Header().Get("Content-Length") ||
		head.Header().Get("ETag") != get.Header().Get("ETag") {
		t.Errorf("HEAD %v, GET %v", head.Header(), get.Header())
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for name, header := range map[string][]string{
		"none":               {"X-API-Key", ""},
		"bearer alone":       {"X-API-Key", "", "Authorization", "Bearer good"},
		"unknown":            {"X-API-Key", "bad"},
		"unknown and bearer": {"X-API-Key", "bad", "Authorization", "Bearer good"},
	} {
		t.Run(name, func(t *testing.T) {
			w := s.send("GET", "/api/v1/assets/a1", "", header...)
			if w.Code != 401 || !strings.HasPrefix(w.Body.String(), `{"error":"Unauthorized","message":"`) ||
				!strings.HasSuffix(w.Body.String(), `","status":401}`) {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		})
	}
	if w := s.send("GET", "/api/v1/assets/a1", "", "Authorization", "Bearer nonsense"); w.Code != 200 {
		t.Errorf("with a key and a bearer token: %d", w.Code)
	}
	r := httptest.NewRequest("GET", "/api/v1/assets/a1", nil)
	r.Header["X-Api-Key"] = []string{"good", "good"}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("two keys: %d", w.Code)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const launch, lock = "/api/v1/assets/a1/commands/launch-app", "/api/v1/assets/a1/commands/lock"
	for _, test := range []struct {
		name, path, body, contentType string
		status                        int
		contains                      string
	}{
		{"good", launch, `{"text":"a"}`, "application/json", 200, `{"id":"a1"}`},
		{"charset", launch, `{"text":"a"}`, "application/json; charset=UTF-8", 200, ""},
		{"no content type", launch, `{"text":"a"}`, "", 200, ""},
		{"form", launch, `{"text":"a"}`, "application/x-www-form-urlencoded", 400, "Content-Type must be application/json"},
		{"Latin-1", launch, `{"text":"a"}`, "application/json; charset=iso-8859-1", 400, "Content-Type"},
		{"nonsense type", launch, `{"text":"a"}`, ";;", 400, "Content-Type"},
		{"no body, any type", lock, ``, "text/plain", 200, ""},
		{"empty object", lock, `{}`, "application/json", 200, ""},
		{"member", lock, `{"a":1}`, "application/json", 400, `"errors":[{"field":"a","message":"is not known here"}]`},
		{"not JSON", launch, `{"text":`, "application/json", 400,
			`"errors":[{"field":"body","message":"is not valid JSON in UTF-8 (at byte 8)"}]`},
		{"a wrong value, then no JSON", launch, `{"text":1,`, "application/json", 400,
			`"errors":[{"field":"body","message":"is not valid JSON in UTF-8 (at byte 10)"}]`},
		{"nothing", launch, ``, "application/json", 400, `"errors":[{"field":"text","message":"is required"}]`},
		{"not an object", lock, `[]`, "application/json", 400, `"errors":[{"field":"body","message":"must be one JSON object"}]`},
		{"not a query", launch + "?a;b", `{"text":"a"}`, "application/json", 400,
			`"errors":[{"field":"query","message":"is not well-formed"}]`},
		{"path argument", launch, `{"text":"a","assetid":"VICTIM"}`, "application/json", 400, `"field":"assetid"`},
		{"too large", launch, `{"text":"` + strings.Repeat("a", 256<<10) + `"}`, "application/json", 400, "larger than 262144 bytes"},
		{"a query", launch + "?assetId=VICTIM", `{"text":"a"}`, "application/json", 400, `"field":"assetId"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := s.send("POST", test.path, test.body, "Content-Type", test.contentType)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.contains) {
				t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
			}
		})
	}
}

// A change that is to be made only if nothing else has changed is not made whatever the version is.
func TestConditionalChanges(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const lock = "/api/v1/assets/a1/commands/lock"
	for header, value := range map[string]string{"If-Match": `"x"`, "If-Unmodified-Since": "Wed, 21 Oct 2026 07:28:00 GMT"} {
		if w := s.send("POST", lock, "", header, value); w.Code != 400 || !strings.Contains(w.Body.String(), `"field":"`+header+`"`) {
			t.Errorf("%s: %d %s", header, w.Code, w.Body)
		}
		if w := s.send("GET", "/api/v1/assets/a1", "", header, value); w.Code != 200 {
			t.Errorf("%s of a read: %d", header, w.Code)
		}
	}
	if w := s.send("POST", lock, "", "If-Match", "*"); w.Code != 200 {
		t.Errorf("whatever is there: %d %s", w.Code, w.Body)
	}
}

func TestSuccess_Status(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if w := s.send("POST", "/api/v1/policies/p1/changes", "{}"); w.Code != 201 {
		t.Errorf("created: %d", w.Code)
	}
	s.handle = func(context.Context, operation.Call, string) (result, error) {
		return result{ID: "x", unknown: true}, nil
	}
	w := s.send("POST", "/api/v1/assets/a1/commands/lock", "")
	if w.Code != 202 || w.Body.String() != `{"id":"x"}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("unconfirmed: %d %s", w.Code, w.Body)
	}
}

func TestBudgetHeaders(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := s.send("POST", "/api/v1/assets/a1/commands/lock", "")
	if got := w.Header().Get("RateLimit-Policy"); got != `"commands";q=10;w=60` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := w.Header().Get("RateLimit"); got != `"commands";r=9;t=42` {
		t.Errorf("RateLimit %s", got)
	}
	if w := s.send("GET", "/api/v1/assets/a1", ""); w.Header().Get("RateLimit") != "" {
		t.Error("a read tells a budget")
	}
	if w := s.send("POST", "/api/v1/assets/a1/commands/launch-app", "{}"); w.Code != 400 || w.Header().Get("RateLimit") != "" {
		t.Error("a call that ended before the budget has one")
	}
	s.budget.left = operation.Allowance{Limit: 10, Reset: 1100 * time.Millisecond, Window: time.Minute}
	for _, path := range []string{"/assets/a1/commands/lock", "/policies/p1/changes"} {
		w := s.send("POST", "/api/v1"+path, "{}")
		if w.Code != 429 || w.Header().Get("Retry-After") != "2" || !strings.Contains(w.Body.String(), "2 s") {
			t.Errorf("%s: %d, Retry-After %s, %s", path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}

func TestErrors_BeforeDispatch(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.budget.err = errors.New("the disk is full")
	w := s.send("POST", "/api/v1/assets/a1/commands/lock", "")
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"retryable":true`) || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("command: %d %s", w.Code, w.Body)
	}
	w = s.send("POST", "/api/v1/policies/p1/changes", "{}")
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal_error"`) || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("policy: %d %s", w.Code, w.Body)
	}
}

func TestFaults_HaveTheirMembers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for want, err := range map[string]error{
		`"impact":"HIGH","requiresConfirmation":true,"summary":"S"`: &fault.Error{Code: fault.ConfirmationRequired,
			Review: &fault.Review{Impact: "HIGH", RequiresConfirmation: true, Summary: "S"}},
		`"approvalRequired":true,"approvalUrl":"https://m.test/a"`: &fault.Error{Code: fault.ConfirmationRequired,
			Approval: &fault.Approval{Required: true, URL: "https://m.test/a"}},
		`"code":"forbidden","retryable":false,"approvalUrl":"https://m.test/b"}`: &fault.Error{Code: fault.Forbidden,
			Approval: &fault.Approval{URL: "https://m.test/b"}},
	} {
		t.Run(want, func(t *testing.T) {
			s.handle = func(context.Context, operation.Call, string) (result, error) { return result{}, err }
			if w := s.send("POST", "/api/v1/policies/p1/changes", "{}"); !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", want, w.Code, w.Body)
			}
		})
	}
}

func TestValidators(t *testing.T) {
	t.Parallel()
	s := newService(t)
	first := s.send("GET", "/api/v1/assets/a1", "")
	tag := first.Header().Get("ETag")
	if tag == "" || first.Header().Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("headers %v", first.Header())
	}
	for given, status := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
		t.Run(given, func(t *testing.T) {
			w := s.send("GET", "/api/v1/assets/a1", "", "If-None-Match", given)
			if w.Code != status || (status == 304) != (w.Body.Len() == 0) || w.Header().Get("ETag") != tag {
				t.Errorf("If-None-Match %s: %d, %d bytes", given, w.Code, w.Body.Len())
			}
		})
	}
	if other := s.send("GET", "/api/v1/assets/a2", ""); other.Header().Get("ETag") == tag {
		t.Error("another answer has the same ETag")
	}
	if w := s.send("POST", "/api/v1/assets/a1/commands/lock", "", "If-None-Match", "*"); w.Code != 200 ||
		w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("ETag") != "" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
	if w := s.send("GET", "/api/v1/assets/a1", "", "X-API-Key", "bad"); w.Header().Get("Cache-Control") != "no-store" {
		t.Error("an error may be kept")
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for given, kept := range map[string]bool{"req-1_a.b:C": true, strings.Repeat("a", 64): true, "": false, strings.Repeat("a", 65): false,
		"a b": false, "a\x00": false, "a\"b": false, "é": false} {
		t.Run(given, func(t *testing.T) {
			got := s.send("GET", "/api/v1/assets/a1", "", "X-Request-Id", given).Header().Get("X-Request-Id")
			if kept != (got == given) || got == "" {
				t.Errorf("%q became %q", given, got)
			}
		})
	}
}

func TestErrors_PanicIsAnswered(t *testing.T) {
	t.Parallel()
	for where, key := range map[string]string{"in the handler": "good", "beside the kernel": "broken"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.handle = func(context.Context, operation.Call, string) (result, error) { panic("secret cause") }
			w := s.send("POST", "/api/v1/assets/a1/commands/launch-app", `{"text":"a"}`, "X-Request-Id", "req-7", "X-API-Key", key)
			if w.Code != 500 || !strings.Contains(w.Body.String(), "req-7") || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
