package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// open is a request that can be held open.
type open struct {
	*http.Request
	client *http.Client
	read   func(*http.Response) answer
	finish func() (*http.Response, error)
}

func openREST(ctx context.Context, c *restCaller, name string, args map[string]any) open {
	return open{Request: c.request(ctx, name, args), client: http.DefaultClient, read: ofREST}
}

// openTool calls wipe_device over MCP.
func (d *drill) openTool(ctx context.Context, header, value string, args map[string]any) open {
	body := script.Must(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "wipe_device", "arguments": args}}))
	request := script.Must(http.NewRequestWithContext(ctx, http.MethodPost, d.Service.PublicURL()+mcp.Path, bytes.NewReader(body)))
	for name, value := range map[string]string{header: value, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"} {
		request.Header.Set(name, value)
	}
	return open{Request: request, client: http.DefaultClient, read: ofTool}
}

// ofTool reads the answer to a tool call; one that was refused before it was read is like REST's.
func ofTool(response *http.Response) answer {
	got := ofREST(response)
	if got.code != "" {
		return got
	}
	var result struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	script.Need(json.Unmarshal([]byte(got.text), &result))
	if result.Result.IsError && len(result.Result.Content) > 0 {
		members := map[string]any{}
		_ = json.Unmarshal([]byte(result.Result.Content[0].Text), &members) // without members it has no code
		got.refused(members, "")
	}
	return got
}

// openForm sends a form of the portal.
func openForm(ctx context.Context, v *portalclient.Client, path string, fields ...string) open {
	form := strings.NewReader(portalclient.FormOf(fields).Encode())
	request := script.Must(http.NewRequestWithContext(ctx, http.MethodPost, v.Base+path, form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return open{Request: request, client: v.HTTP, read: func(response *http.Response) answer {
		return outcome(script.Must(portalclient.ReadPage(response)))
	}}
}

// hold sends a request up to its body, which the service has begun to read when hold
// returns: the caller was let in. What it returns sends the body.
func hold(client *http.Client, request *http.Request) (finish func() (*http.Response, error)) {
	reading, answered, send := make(chan struct{}), make(chan struct{}), make(chan struct{})
	trace := &httptrace.ClientTrace{Got100Continue: sync.OnceFunc(func() { close(reading) })} // when the body is first read
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	request.Header.Set("Expect", "100-continue")
	request.Body, request.GetBody = io.NopCloser(gated{send, request.Body}), nil
	alone := *client
	alone.Transport = &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}
	var response *http.Response
	var failed error
	go func() {
		defer close(answered)
		response, failed = alone.Do(request)
	}()
	select {
	case <-reading:
	case <-answered: // refused before its body was read
	}
	return func() (*http.Response, error) {
		close(send)
		<-answered
		return response, failed
	}
}

// gated is a body that waits.
type gated struct {
	open <-chan struct{}
	io.Reader
}

// Read implements io.Reader.
func (g gated) Read(p []byte) (int, error) {
	<-g.open
	return g.Reader.Read(p)
}
