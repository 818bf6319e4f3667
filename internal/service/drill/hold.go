package drill

import (
	"context"
	"encoding/json"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// open sends a request over a transport that can hold it open.
type open func(over http.RoundTripper) answer

// openREST calls an operation with a key.
func (d *drill) openREST(ctx context.Context, key, name string, args map[string]any) open {
	return func(over http.RoundTripper) answer { return d.rest(key, over).call(ctx, name, args, "") }
}

// openTool calls wipe_device over MCP.
func (d *drill) openTool(ctx context.Context, header, value string, args map[string]any) open {
	body := script.Must(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "wipe_device", "arguments": args}}))
	return func(over http.RoundTripper) answer {
		c := client.Client{Address: d.Service.PublicURL(), HTTP: &http.Client{Transport: over}}
		return ofTool(script.Must(c.Exchange(ctx, client.Request{Method: http.MethodPost, Path: mcp.Path, Body: body,
			Headers: []string{header, value, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18"}})))
	}
}

// ofTool reads the answer to a tool call; one that was refused before it was read is like REST's.
func ofTool(a *client.Answer) answer {
	got := ofREST(a)
	if got.code != "" {
		return got
	}
	var reply struct{ Result sdk.CallToolResult }
	script.Need(json.Unmarshal(a.Body, &reply))
	return ofResult(&reply.Result)
}

// openForm sends a form of the portal.
func openForm(ctx context.Context, v *client.Person, path string, fields ...string) open {
	return func(over http.RoundTripper) answer { return outcome(v.Via(over).Post(ctx, path, fields...)) }
}
