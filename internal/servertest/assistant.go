package servertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// The protocol revisions that a raw assistant speaks.
const (
	ModernProtocol = "2026-07-28"
	LegacyProtocol = "2025-11-25"
)

// Assistant speaks MCP to a service by hand, one request at a time, so that a
// test sees exactly what goes over the wire. Its header carries the credential.
type Assistant struct {
	TB       testing.TB
	URL      string // the public URL
	Header   http.Header
	Protocol string
	Meta     map[string]any // added to the _meta of each request
}

// WithKey is an assistant with an API key.
func WithKey(tb testing.TB, base, key string) Assistant {
	return Assistant{TB: tb, URL: base, Header: http.Header{"X-Api-Key": {key}}, Protocol: ModernProtocol}
}

// Saying is the same assistant with a member of _meta.
func (a Assistant) Saying(member string, value any) Assistant {
	a.Meta = maps.Clone(a.Meta)
	if a.Meta == nil {
		a.Meta = map[string]any{}
	}
	a.Meta[member] = value
	return a
}

// WithToken is an assistant with an access token.
func WithToken(tb testing.TB, base, token string) Assistant {
	return Assistant{TB: tb, URL: base, Header: http.Header{"Authorization": {"Bearer " + token}}, Protocol: ModernProtocol}
}

// Legacy is the same assistant, speaking an earlier revision.
func (a Assistant) Legacy() Assistant {
	a.Protocol = LegacyProtocol
	return a
}

// Reply is what came back for one request.
type Reply struct {
	Answer
	// Error is the protocol's own error, if it is one.
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Result json.RawMessage `json:"result"`
}

// Block is a part of a tool's content.
type Block struct{ Type, Text, Data, MimeType string }

// ToolResult is how a tool call ended.
type ToolResult struct {
	Reply
	IsError           bool
	Content           []Block
	StructuredContent json.RawMessage
	Meta              map[string]any `json:"_meta"`
}

// ToolError is the error of a tool (contract 4.5).
type ToolError struct {
	Code       string
	Message    string
	Status     int
	Retryable  bool
	RetryAfter int
}

// Tool is an entry of the tool list.
type Tool struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               map[string]any
}

// Send posts a body to the MCP endpoint; headers are names and values in turn.
func (a Assistant) Send(body string, headers ...string) Answer {
	a.TB.Helper()
	b := client.NewBrowser(a.URL)
	b.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {a.Protocol}}
	maps.Copy(b.Header, a.Header)
	return answered(a.TB, func() client.Page {
		return b.Send(a.TB.Context(), http.MethodPost, mcp.Path, strings.NewReader(body), headers...)
	})
}

// Request calls a method of the protocol.
func (a Assistant) Request(method string, params map[string]any, headers ...string) Reply {
	a.TB.Helper()
	if params == nil {
		params = map[string]any{}
	}
	if a.Protocol == ModernProtocol {
		headers = append(headers, "Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			headers = append(headers, "Mcp-Name", name)
		}
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": a.Protocol,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	}
	if a.Meta != nil {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			params["_meta"] = meta
		}
		maps.Copy(meta, a.Meta)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	need(a.TB, err)
	reply := Reply{Answer: a.Send(string(body), headers...)}
	if strings.HasPrefix(reply.Header.Get("Content-Type"), "application/json") && reply.Status == http.StatusOK {
		reply.JSON(a.TB, &reply)
	}
	return reply
}

// Call calls a tool; args is a JSON text or a value.
func (a Assistant) Call(tool string, args any) ToolResult {
	a.TB.Helper()
	params := map[string]any{"name": tool, "arguments": args}
	switch text := args.(type) {
	case nil:
		params["arguments"] = map[string]any{}
	case string:
		params["arguments"] = json.RawMessage(text)
	}
	result := ToolResult{Reply: a.Request("tools/call", params)}
	if result.Result != nil {
		if err := json.Unmarshal(result.Result, &result); err != nil {
			a.TB.Fatalf("%s: %v: %s", tool, err, result.Body)
		}
	}
	return result
}

// Tools lists the tools that the caller sees.
func (a Assistant) Tools() []Tool {
	a.TB.Helper()
	var list struct{ Tools []Tool }
	reply := a.Request("tools/list", nil)
	reply.Want(a.TB, http.StatusOK)
	if err := json.Unmarshal(reply.Result, &list); err != nil {
		a.TB.Fatalf("tools/list: %v: %s", err, reply.Body)
	}
	return list.Tools
}

// Names lists the names of the tools that the caller sees.
func (a Assistant) Names() []string {
	a.TB.Helper()
	var names []string
	for _, tool := range a.Tools() {
		names = append(names, tool.Name)
	}
	return names
}

// Failed returns the call's error, which must be one, reported in the one way that
// there is: a single text block and nothing structured.
func (r ToolResult) Failed(tb testing.TB) ToolError {
	tb.Helper()
	var e ToolError
	if !r.IsError || len(r.Content) != 1 || r.Content[0].Type != "text" || r.StructuredContent != nil {
		tb.Fatalf("this is no tool error: %d %s", r.Status, r.Body)
	}
	if err := json.Unmarshal([]byte(r.Content[0].Text), &e); err != nil {
		tb.Fatalf("%v: %s", err, r.Content[0].Text)
	}
	return e
}

// OK fails the test unless the call succeeded, and decodes its result into v.
func (r ToolResult) OK(tb testing.TB, v any) ToolResult {
	tb.Helper()
	if r.Status != http.StatusOK || r.IsError || r.StructuredContent == nil {
		tb.Fatalf("the call failed: %d %s", r.Status, r.Body)
	}
	if v != nil {
		if err := json.Unmarshal(r.StructuredContent, v); err != nil {
			tb.Fatalf("%v: %s", err, r.StructuredContent)
		}
	}
	return r
}
