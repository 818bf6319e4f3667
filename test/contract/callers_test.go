package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

// verdict is how a call ended, whichever door it came in by.
type verdict struct {
	status    int
	code      string // empty: it succeeded
	message   string
	retryable any // nil: not said
	result    map[string]any
}

// door calls an operation by its tool's name with flat arguments.
type caller struct {
	name string
	call func(t *testing.T, r *servertest.Replica, key, tool string, args map[string]any) verdict
}

// doors are the two surfaces on which contract 4 is offered.
func callers() []caller {
	return []caller{{"REST", callREST}, {"MCP", callMCP}}
}

func callREST(t *testing.T, r *servertest.Replica, key, tool string, args map[string]any) verdict {
	t.Helper()
	o := r.Registry().Find(tool)
	path, body, query := o.Path, map[string]any{}, url.Values{}
	for name, value := range args {
		switch {
		case slices.Contains(o.PathArgs(), name):
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)), 1)
		case o.Method == http.MethodGet:
			query.Set(name, fmt.Sprint(value))
		default:
			body[name] = value
		}
	}
	var answer servertest.Answer
	if o.Method == http.MethodGet {
		answer = r.As(key).Get(path + "?" + query.Encode())
	} else {
		answer = r.As(key).Post(path, body)
	}
	m := answer.Members(t)
	if answer.Status < 300 {
		return verdict{status: answer.Status, result: m}
	}
	code, _ := m["code"].(string)
	detail, _ := m["detail"].(string)
	if got := answer.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s answers %d as %s", tool, answer.Status, got)
	}
	if (answer.Header.Get("Retry-After") != "") != (answer.Status == 429) {
		t.Errorf("%s answers %d with Retry-After %q", tool, answer.Status, answer.Header.Get("Retry-After"))
	}
	return verdict{answer.Status, code, detail, m["retryable"], m}
}

func callMCP(t *testing.T, r *servertest.Replica, key, tool string, args map[string]any) verdict {
	t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.PublicURL()+"/mcp", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-API-Key": key, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Error  any
		Result struct {
			IsError           bool
			StructuredContent map[string]any
			Content           []struct{ Type, Text string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error != nil {
		t.Fatalf("%s: %d, %v, %v", tool, response.StatusCode, err, answer.Error)
	}
	if !answer.Result.IsError {
		return verdict{status: success(r, tool), result: answer.Result.StructuredContent}
	}
	if len(answer.Result.Content) != 1 || answer.Result.StructuredContent != nil {
		t.Fatalf("%s: a tool error of %d blocks", tool, len(answer.Result.Content))
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(answer.Result.Content[0].Text), &m); err != nil {
		t.Fatal(err)
	}
	status, _ := m["status"].(float64)
	code, _ := m["code"].(string)
	message, _ := m["message"].(string)
	return verdict{int(status), code, message, m["retryable"], m}
}

// success is the status of a call that succeeds, which MCP does not say.
func success(r *servertest.Replica, tool string) int {
	if r.Registry().Find(tool).Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
