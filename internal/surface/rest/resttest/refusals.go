// Package resttest compares a registry with the contract: how its operations are described, and every refusal of every endpoint as it
// goes over the wire. Tests call it with the small registry of a package, or with that of the whole service.
package resttest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/test/spec"
)

// Refusals makes every operation of the registry end in every code that its
// family knows and that it declares, over HTTP, and compares the answers with
// spec.Answers. The handlers of the registry are not called.
func Refusals(t *testing.T, registry *operation.Registry) {
	t.Helper()
	for _, o := range registry.All() {
		table := spec.Answers[FamilyOf(o)]
		for _, code := range slices.Sorted(maps.Keys(table)) {
			if !endsIn(o, code) {
				continue
			}
			t.Run(o.Name+"/"+code, func(t *testing.T) {
				t.Parallel()
				check(t, o, code, table[code])
			})
		}
		for _, code := range o.Faults {
			if _, known := table[string(code)]; !known {
				t.Errorf("%s declares %s, which its family does not know", o.Name, code)
			}
		}
	}
}

// endsIn reports whether the operation can end in the code at all.
func endsIn(o *operation.Operation, code string) bool {
	switch code {
	case "malformed": // a read has a query, and no body
		return o.Method != "GET"
	case "invalid_arguments":
		return o.HasBody() || slices.ContainsFunc(o.Parameters(), func(p operation.Parameter) bool { return !p.InPath })
	case "unauthorized", "forbidden", "rate_limited", "internal_error":
		return true
	}
	return slices.Contains(o.Faults, fault.Code(code))
}

// surface is a REST surface whose handlers, budget and caller are made to fail.
type surface struct {
	operation.BudgetStore
	result  error // of every handler
	panics  bool  // every handler, instead of failing with result
	spent   bool  // the budget is
	nothing bool  // the caller has no permission
}

func (s surface) Spend(_ context.Context, _ string, _ int, _ time.Duration, now time.Time) (int, bool, time.Time, error) {
	return 6, !s.spent, now.Add(41500 * time.Millisecond), nil
}

func (s surface) Authenticate(_ context.Context, key string) (access.Principal, error) {
	if key != "good" {
		return access.Principal{}, fault.New(fault.Unauthorized, "no such key")
	}
	p := access.Principal{Kind: access.APIKey, ID: "k", CompanySlug: "acme", Permissions: access.All,
		Settings: access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true}}
	if s.nothing {
		p.Permissions = 0
	}
	return p, nil
}

func (s surface) handle(context.Context, *operation.Operation, operation.Call) (any, error) {
	if s.panics {
		panic(s.result)
	}
	return nil, s.result
}

func (s surface) serve(registry *operation.Registry, requests ...*http.Request) *httptest.ResponseRecorder {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	server := rest.New(rest.Config{
		Registry: registry.Rehearsal(s.handle),
		Once: operation.Once{Kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: s, Now: now},
			ReadsPerMinute: 1, Now: now})},
		Authenticator: s, Served: func(string, int, time.Duration) {}, Now: now, Log: slog.New(slog.DiscardHandler),
	})
	var w *httptest.ResponseRecorder
	for _, r := range requests {
		w = httptest.NewRecorder()
		server.ServeHTTP(w, r)
	}
	return w
}

// Request is a valid call of the operation, by its example, with the key "good".
func Request(o *operation.Operation) *http.Request {
	path, body := o.Example()
	target := rest.Prefix + o.Path
	for i, name := range o.PathArgs() {
		target = strings.Replace(target, "{"+name+"}", path[i], 1)
	}
	r := httptest.NewRequest(o.Method, target, strings.NewReader(string(body)))
	r.Header.Set("X-API-Key", "good")
	return r
}

// cause is an unexpected error's text, which no answer repeats.
const cause = "a cause that no caller is told"

// provoke makes the operation end in the code.
func provoke(o *operation.Operation, code string) *httptest.ResponseRecorder {
	var registry operation.Registry
	registry.Add(o)
	request := Request(o)
	s := surface{result: &fault.Error{Code: fault.Code(code), Detail: "provoked"}}
	switch code {
	case "unauthorized":
		request.Header.Del("X-API-Key")
		request.Header.Set("Authorization", "Bearer good")
	case "forbidden":
		s.nothing = true
		if o.Budget == operation.BeforeValidation {
			s.spent = true // callers without DEVICES_COMMAND do not spend
		}
	case "malformed":
		request = httptest.NewRequest(o.Method, request.URL.Path, strings.NewReader("{"))
		request.Header.Set("X-API-Key", "good")
	case "invalid_arguments":
		return s.serve(&registry, invalid(o, request))
	case "rate_limited":
		s.spent = true
		return s.serve(&registry, Request(o), request) // the second read is beyond the ceiling
	case "internal_error":
		s.result = errors.New(cause)
		s.panics = retryableRead(o)
	case "unavailable":
		if retryableRead(o) {
			s.result = errors.New(cause)
		}
	}
	return s.serve(&registry, request)
}

// retryableRead reports whether an unexpected error of the operation is
// "unavailable", because a read is safe to repeat; a panic stays "internal_error".
func retryableRead(o *operation.Operation) bool {
	return o.Effect == operation.Reading && slices.Contains(o.Faults, fault.Unavailable)
}

// invalid is a request with one argument that is wrong in value.
func invalid(o *operation.Operation, r *http.Request) *http.Request {
	if !o.HasBody() {
		for _, p := range o.Parameters() {
			if !p.InPath && p.Schema.Type != "string" || len(p.Schema.Enum) > 0 {
				r.URL.RawQuery = p.Name + "=-7x"
			}
		}
		return r
	}
	name := o.BodySchema().PropertyOrder[0]
	broken := httptest.NewRequest(o.Method, r.URL.Path, strings.NewReader(`{"`+name+`":null}`))
	broken.Header = r.Header
	return broken
}

func check(t *testing.T, o *operation.Operation, code string, want spec.Answer) {
	t.Helper()
	w := provoke(o, code)
	if w.Code != want.Status {
		t.Fatalf("status %d, want %d: %s", w.Code, want.Status, w.Body)
	}
	if retry := w.Header().Get("Retry-After"); (code == "rate_limited") != (retry != "") {
		t.Errorf("Retry-After %q", retry)
	} else if seconds, err := strconv.Atoi(retry); retry != "" && (err != nil || seconds < 1) {
		t.Errorf("Retry-After %q", retry)
	}
	if w.Header().Get("X-Request-Id") == "" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", w.Header())
	}
	if want.Members == "" {
		if w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" {
			t.Errorf("the body is not empty: %s %s", w.Header().Get("Content-Type"), w.Body)
		}
		return
	}
	checkBody(t, w, code, want)
}

func checkBody(t *testing.T, w *httptest.ResponseRecorder, code string, want spec.Answer) {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	wanted := strings.Fields(want.Members)
	slices.Sort(wanted)
	if got := slices.Sorted(maps.Keys(body)); !slices.Equal(got, wanted) &&
		!(code == "malformed" && slices.Equal(got, withErrors(wanted))) {
		t.Errorf("members %v, want %v", got, wanted)
	}
	if body["status"] != float64(want.Status) {
		t.Errorf("status in the body: %v", body["status"])
	}
	contentType := "application/problem+json"
	if body["error"] != nil {
		contentType = "application/json"
	}
	if got := w.Header().Get("Content-Type"); got != contentType {
		t.Errorf("Content-Type %s, want %s", got, contentType)
	}
	if strings.Contains(w.Body.String(), cause) {
		t.Errorf("the cause is revealed: %s", w.Body)
	}
	checkProblem(t, body, code)
}

func withErrors(members []string) []string {
	return slices.Sorted(slices.Values(append(slices.Clone(members), "errors")))
}

func checkProblem(t *testing.T, body map[string]any, code string) {
	t.Helper()
	if got, has := body["code"]; has && got != code && code != "malformed" {
		t.Errorf("code %v, want %s", got, code)
	}
	if got, has := body["retryable"]; has && got != (code == "rate_limited" || code == "unavailable") {
		t.Errorf("retryable %v", got)
	}
	if body["type"] != nil {
		if body["type"] != "about:blank" || !strings.HasPrefix(body["instance"].(string), rest.Prefix+"/") {
			t.Errorf("problem of type %v at %v", body["type"], body["instance"])
		}
		if body["detail"] == "" || body["title"] == "" {
			t.Errorf("problem without a text: %v", body)
		}
	}
	if list, has := body["errors"].([]any); has {
		for _, entry := range list {
			if e := entry.(map[string]any); len(e) != 2 || e["field"] == "" || e["message"] == "" {
				t.Errorf("errors %v", list)
			}
		}
	}
}

// FamilyOf is the family whose errors an operation speaks.
func FamilyOf(o *operation.Operation) spec.Family {
	return map[operation.Dialect]spec.Family{
		operation.FirstFour: spec.FirstFour, operation.Commands: spec.OtherCommands, operation.Policies: spec.Policies,
		operation.Provisioning: spec.Provisioning, operation.Reads: spec.Reads,
	}[o.Dialect]
}
