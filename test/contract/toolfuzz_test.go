package contract_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// Whatever a model sends as arguments: the answer is a tool's error in the one
// shape, or a refusal of the envelope; and a handler is reached only by members
// that the tool's closed schema names.
func FuzzToolArguments(f *testing.F) {
	registry := servertest.New(f).Start().Registry()
	names := make([]string, 0, len(registry.All()))
	for i, o := range registry.All() {
		names = append(names, o.Name)
		f.Add(uint8(i), string(o.FlatExample()))
	}
	f.Add(uint8(0), `{"assetid":"x","assetId":null}`)
	f.Add(uint8(24), `{"policyId":"p","changes":[{"setting":"CAMERA","value":"BLOCK","Value":"ALLOW"}]}`)
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	r := &rehearsal{may: access.All, result: fault.New(fault.Refused, "reached")}
	var text string
	r.key, text = apikey.New("c", "test", "operator", access.All, now(), time.Time{})
	rehearsed := registry.Rehearsal(func(context.Context, *operation.Operation, operation.Call) (any, error) { return nil, r.result })
	tools, err := mcp.New(mcp.Config{Registry: rehearsed,
		Once: operation.Once{Kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: r, Now: now}, Now: now})},
		Keys: apikey.Authenticator{Keys: r, Now: now}, Now: now, Served: func(string, int, time.Duration) {},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tool uint8, arguments string) {
		o := registry.Find(names[int(tool)%len(names)])
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + o.Name + `","arguments":` + arguments + `}}`
		request := httptest.NewRequest(http.MethodPost, mcp.Path, strings.NewReader(body))
		request.Header.Set("X-API-Key", text)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		tools.ServeHTTP(w, request)
		if w.Code != http.StatusOK {
			if w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return
		}
		var result servertest.ToolResult
		if err := json.Unmarshal(w.Body.Bytes(), &result.Reply); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if result.Error != nil {
			return // the protocol's own error, such as for arguments that are no object
		}
		if err := json.Unmarshal(result.Result, &result); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		e := result.Failed(t)
		if e.Code != "refused" && e.Code != "invalid_arguments" {
			t.Fatalf("%+v", e)
		}
		if e.Code == "refused" {
			onlyKnown(t, o.InputSchema(), arguments)
		}
	})
}

func onlyKnown(t *testing.T, schema *jsonschema.Schema, arguments string) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &members); err != nil && strings.TrimSpace(arguments) != "" {
		t.Fatalf("reached by %q: %v", arguments, err)
	}
	for name := range members {
		if schema.Properties[name] == nil {
			t.Fatalf("reached by %q, where %q is not known", arguments, name)
		}
	}
	for _, name := range schema.Required {
		if members[name] == nil {
			t.Fatalf("reached by %q, without %q", arguments, name)
		}
	}
}
