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
	assistant := servertest.WithKey(t, r.PublicURL(), key)
	assistant.Protocol = "2025-06-18"
	got := assistant.Call(tool, args)
	if got.Status != http.StatusOK || got.Error != nil {
		t.Fatalf("%s: %d, %v", tool, got.Status, got.Error)
	}
	if !got.IsError {
		var result map[string]any
		got.OK(t, &result)
		return verdict{status: success(r, tool), result: result}
	}
	if len(got.Content) != 1 || got.StructuredContent != nil {
		t.Fatalf("%s: a tool error of %d blocks", tool, len(got.Content))
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(got.Content[0].Text), &m); err != nil {
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
