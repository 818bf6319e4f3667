// Package bridge carries MCP between a client that speaks over standard input
// and output and a service that speaks HTTP with an API key (contract 1.5,
// 4.5): `muster mcp`.
//
// Messages pass unread: tools, images, errors, instructions and the protocol's
// revision are whatever the service says, so a bridge of another version than
// the service's is as good. What the bridge does read is what HTTP wants to
// know besides the message: its revision, its method, which request a
// cancellation means. The framing and the headers are the official SDK's.
package bridge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of a bridge.
const (
	inFlight = 16              // requests at a time; the next waits to be read
	patience = 2 * time.Minute // for one answer
)

// Bridge connects one client to one service.
type Bridge struct {
	Endpoint string // the service's MCP address
	Key      string // an API key
	// Warn informs the operator, on standard error, what a client may swallow.
	Warn func(text string)
	// Transport carries the requests; nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// errRefusedKey says what to do about a 401.
var errRefusedKey error = &refusal{&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the service refuses the API key: it is " +
	"missing, invalid, expired or revoked; set MUSTER_API_KEY to one that `muster key create` has shown"}}

// Run carries messages until the client closes in or ctx ends; requests under
// way are answered first. A line that is not a JSON-RPC message is answered with
// an error. Run returns an error if in cannot be read or out cannot be written.
func (b *Bridge) Run(given context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(given)
	defer cancel(nil)
	output := &lineWriter{to: out}
	client, err := (&sdk.IOTransport{Reader: io.NopCloser(&lineReader{from: bufio.NewReaderSize(in, maxLine), refused: output}),
		Writer: output}).Connect(ctx)
	if err != nil {
		return err
	}
	r := &run{bridge: b, client: client, stop: cancel, slots: make(chan struct{}, inFlight), calls: map[jsonrpc.ID]context.CancelFunc{}}
	r.http = &http.Client{Transport: r, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is for this address alone
	}}
	err = r.read(ctx)
	r.work.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Cause(given)) {
		err = errors.Join(err, cause)
	}
	return errors.Join(err, client.Close())
}

// run is the state of one Run.
type run struct {
	bridge *Bridge
	client sdk.Connection
	http   *http.Client
	stop   context.CancelCauseFunc // with what ends the bridge
	work   sync.WaitGroup
	slots  chan struct{}

	mu       sync.Mutex
	calls    map[jsonrpc.ID]context.CancelFunc // requests under way
	revision string                            // agreed at initialize; later revisions tell theirs in each request
}

// read takes messages from the client until there are no more.
func (r *run) read(ctx context.Context) error {
	for {
		message, err := r.client.Read(ctx)
		switch {
		case errors.Is(err, io.EOF) || ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("cannot read standard input: %w", err)
		}
		if r.cancels(message) {
			continue
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		calling, done := r.track(ctx, message)
		r.work.Go(func() {
			defer func() { done(); <-r.slots }()
			r.carry(calling, message)
		})
	}
}

// track makes a request's own context, which its cancellation ends.
func (r *run) track(ctx context.Context, message jsonrpc.Message) (context.Context, func()) {
	request, ok := message.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[request.ID] = cancel
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, request.ID)
		cancel()
	}
}

// cancels carries out a cancellation: over HTTP, that is to hang up.
func (r *run) cancels(message jsonrpc.Message) bool {
	request, ok := message.(*jsonrpc.Request)
	if !ok || request.Method != "notifications/cancelled" {
		return false
	}
	var params struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return true // it names nothing: nothing to cancel
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	if err != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.calls[id]; cancel != nil {
		cancel()
	}
	return true
}

// carry sends one message and hands back its answer. Each has a connection of
// its own: the service keeps no sessions, and a failure ends with its request.
func (r *run) carry(ctx context.Context, message jsonrpc.Message) {
	request, isRequest := message.(*jsonrpc.Request)
	answer, err := r.exchange(ctx, message)
	switch {
	case ctx.Err() != nil:
		return // canceled: no caller waits for an answer
	case err != nil:
		r.bridge.Warn(err.Error())
		if !isRequest || !request.IsCall() {
			return
		}
		answer = &jsonrpc.Response{ID: request.ID, Error: wireError(err)}
	case answer == nil:
		return
	}
	if isRequest && request.Method == "initialize" {
		r.agree(answer)
	}
	if err := r.client.Write(ctx, answer); err != nil {
		r.stop(fmt.Errorf("cannot write to standard output: %w", err))
	}
}

// exchange returns the response to a request, nil for other messages. Notifications that come
// before it are handed back at once.
func (r *run) exchange(ctx context.Context, message jsonrpc.Message) (jsonrpc.Message, error) {
	connection, err := (&sdk.StreamableClientTransport{Endpoint: r.bridge.Endpoint, HTTPClient: r.http, MaxRetries: -1,
		DisableStandaloneSSE: true}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }() // it holds no session: there is nothing to end
	request, isRequest := message.(*jsonrpc.Request)
	if err := connection.Write(ctx, message); err != nil || !isRequest || !request.IsCall() {
		return nil, err
	}
	for {
		answer, err := connection.Read(ctx)
		if _, isResponse := answer.(*jsonrpc.Response); isResponse || err != nil {
			return answer, err
		}
		if err := r.client.Write(ctx, answer); err != nil {
			return nil, err
		}
	}
}

// wireError is what the client is told: the service's own error if it gave one.
func wireError(err error) *jsonrpc.Error {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused.error
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code != rejectedByTransport {
		return wire
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the bridge got no answer from the service: " + err.Error()}
}

// rejectedByTransport is the code with which the SDK marks failures of its own.
const rejectedByTransport = -32005

// agree remembers the revision that client and service agreed on: HTTP wants
// it beside every later message.
func (r *run) agree(answer jsonrpc.Message) {
	response, ok := answer.(*jsonrpc.Response)
	if !ok || response.Error != nil {
		return
	}
	var result struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(response.Result, &result) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = result.ProtocolVersion
}

// RoundTrip adds the key and the agreed revision.
func (r *run) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-API-Key", r.bridge.Key)
	r.mu.Lock()
	if request.Header.Get("Mcp-Protocol-Version") == "" && r.revision != "" {
		request.Header.Set("Mcp-Protocol-Version", r.revision)
	}
	r.mu.Unlock()
	response, err := cmp.Or(r.bridge.Transport, http.DefaultTransport).RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		_ = response.Body.Close() // its text says less than ours
		return nil, errRefusedKey
	}
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		return r.refused(response)
	}
	return response, err
}

// refusal is the service's own error in an answer with an HTTP status of failure, which the
// SDK would throw away.
type refusal struct{ error *jsonrpc.Error }

// Error implements error.
func (r *refusal) Error() string { return r.error.Message }

// maxRefusal bounds the answer in which an error is looked for, in bytes.
const maxRefusal = 64 << 10

// refused returns the error in an answer: that of JSON-RPC, or the message of the shape that
// REST has, too. An answer without one is returned as it is. The key is never shown.
func (r *run) refused(response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	if r.bridge.Key != "" {
		body = bytes.ReplaceAll(body, []byte(r.bridge.Key), []byte("…"))
	}
	var rpc struct{ Error *jsonrpc.Error }
	if json.Unmarshal(body, &rpc) == nil && rpc.Error != nil && rpc.Error.Message != "" {
		return nil, &refusal{rpc.Error}
	}
	var plain struct{ Message string }
	if json.Unmarshal(body, &plain) == nil && plain.Message != "" {
		return nil, &refusal{&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: plain.Message}}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
