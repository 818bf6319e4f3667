package drill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/bridge"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// caller calls operations with one credential, on one surface. once, if not
// empty, is the call's idempotency key. Without an answer the script ends.
type caller interface {
	call(ctx context.Context, operation string, args map[string]any, once string) answer
}

// answer is what came back for a call.
type answer struct {
	code        string // empty: success
	detail      string
	status      int
	approvalURL string
	retryAfter  time.Duration
	text        string // all of it
	result      map[string]any
}

// control names what refused the call; empty: it was not refused.
func (a answer) control() string {
	switch {
	case a.code == "":
		return ""
	case strings.Contains(a.detail, "company's limit"):
		return "company limit"
	case strings.Contains(a.detail, stopReason):
		return "stop"
	case a.code == string(fault.RateLimited):
		return "budget"
	case a.approvalURL != "" && a.code == string(fault.ConfirmationRequired):
		return "approval"
	// without an address: too many wait
	case a.approvalURL != "", a.code == string(fault.Forbidden) && strings.Contains(a.detail, "authoriz"):
		return "authorization"
	}
	return a.code
}

// restCaller calls REST with an API key.
type restCaller struct {
	client.Client
	registry       *operation.Registry
	reason, ticket string // of each call; may be empty
}

func (d *drill) rest(key string, via http.RoundTripper) *restCaller {
	return &restCaller{Client: client.Client{Address: d.Service.PublicURL(), Key: key, HTTP: &http.Client{Transport: via}},
		registry: d.Service.Registry()}
}

func (c *restCaller) call(ctx context.Context, name string, args map[string]any, once string) answer {
	o := c.registry.Find(name)
	path, body, query := client.Base+o.Path, map[string]any{}, url.Values{}
	for member, value := range args {
		text, isText := value.(string)
		switch {
		case isText && strings.Contains(path, "{"+member+"}"):
			path = strings.ReplaceAll(path, "{"+member+"}", url.PathEscape(text))
		case o.Method == http.MethodGet:
			query.Set(member, fmt.Sprint(value))
		default:
			body[member] = value
		}
	}
	r := client.Request{Method: cmp.Or(o.Method, http.MethodPost), Path: path, Query: query, IdempotencyKey: once,
		Reason: c.reason, Ticket: c.ticket}
	if len(body) > 0 {
		r.Body, _ = json.Marshal(body) // texts and lists always encode
	}
	return ofREST(script.Must(c.Exchange(ctx, r)))
}

// ofREST reads an answer of REST.
func ofREST(a *client.Answer) answer {
	got := answer{text: string(a.Body), status: a.Status}
	_ = json.Unmarshal(a.Body, &got.result) // an answer that is no object has no members
	if a.Status >= http.StatusBadRequest {
		got.refused(got.result, a.Header.Get("Retry-After"))
	}
	return got
}

// refused reads the members of an error.
func (a *answer) refused(members map[string]any, retryAfter string) {
	a.code, _ = members["code"].(string)
	a.detail, _ = members["detail"].(string)
	if a.detail == "" {
		a.detail, _ = members["message"].(string)
	}
	a.approvalURL, _ = members["approvalUrl"].(string)
	switch {
	case a.code != "":
	case strings.Contains(a.detail, "still under way"): // the older dialect of REST has no codes
		a.code = string(fault.InFlight)
	default:
		a.code = strings.ToLower(http.StatusText(a.status))
	}
	if seconds, ok := members["retryAfter"].(float64); ok {
		a.retryAfter = time.Duration(seconds) * time.Second
	} else if wait, err := time.ParseDuration(retryAfter + "s"); err == nil {
		a.retryAfter = wait
	}
}

// toolCaller calls tools over MCP.
type toolCaller struct{ session *sdk.ClientSession }

// carrier adds a credential to each request.
type carrier struct {
	header, value string
	via           http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(c.header, c.value)
	return cmp.Or(c.via, http.DefaultTransport).RoundTrip(r)
}

// tools connects to MCP over HTTP with a header as credential.
func (d *drill) tools(ctx context.Context, header, value string, via http.RoundTripper) *toolCaller {
	return connect(ctx, &sdk.StreamableClientTransport{Endpoint: d.Service.PublicURL() + mcp.Path, MaxRetries: -1,
		DisableStandaloneSSE: true,
		HTTPClient:           &http.Client{Transport: carrier{header, value, via}}})
}

// bridged calls use with a connection to MCP through `muster mcp`, whose code runs in this process.
func (d *drill) bridged(ctx context.Context, key string, via http.RoundTripper, use func(caller)) {
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	b := &bridge.Bridge{Endpoint: d.Service.PublicURL() + mcp.Path, Key: key, Warn: func(string) {}, Transport: via}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(b.Run(ctx, theirIn, theirOut), theirOut.Close()) }()
	err := script.Attempt(func() {
		c := connect(ctx, &sdk.IOTransport{Reader: out, Writer: in})
		defer func() { _ = c.session.Close() }() // its connection may have been cut
		use(c)
	})
	script.Need(errors.Join(err, in.Close(), <-ended))
}

func connect(ctx context.Context, transport sdk.Transport) *toolCaller {
	client := sdk.NewClient(&sdk.Implementation{Name: "drill", Version: "1"}, nil)
	return &toolCaller{script.Must(client.Connect(ctx, transport, nil))}
}

func (c *toolCaller) call(ctx context.Context, tool string, args map[string]any, once string) answer {
	params := &sdk.CallToolParams{Name: tool, Arguments: args}
	if once != "" {
		params.Meta = sdk.Meta{"muster/idempotencyKey": once}
	}
	return ofResult(script.Must(c.session.CallTool(ctx, params)))
}

// ofResult reads the result of a tool.
func ofResult(result *sdk.CallToolResult) (got answer) {
	for _, block := range result.Content {
		if text, ok := block.(*sdk.TextContent); ok {
			got.text += text.Text
		}
	}
	_ = json.Unmarshal([]byte(got.text), &got.result)
	if result.IsError {
		got.refused(got.result, "")
	}
	return got
}
