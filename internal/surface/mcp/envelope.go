package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/envelope"
)

// stateless is the first protocol revision whose clients know how to ask for
// more scopes when a call is refused.
const stateless = "2026-07-28"

// offered reports whether the protocol's method is one of ours.
func offered(method string) bool {
	ours := []string{"initialize", "server/discover", "ping", "tools/list", "tools/call", "subscriptions/listen"}
	return slices.Contains(ours, method) || envelope.IsNotification(method)
}

// refuse answers a request with an error of JSON-RPC's. The id is null where it
// cannot be trusted to be the request's.
func refuse(w http.ResponseWriter, status int, id jsontext.Value, e *jsonrpc.Error) {
	edge.JSON(w, status, edge.NoStore, map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "error": e})
}

// envelope checks a request's JSON before the SDK reads it: no batches, no
// member twice or in another case, at any depth of the envelope. A call for
// which a connection lacks the scope is answered with a challenge.
func (c Config) envelope(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r) // it is refused
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			status, message := http.StatusBadRequest, "the body could not be read to its end"
			if _, long := errors.AsType[*http.MaxBytesError](err); long {
				status, message = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", maxBody)
			}
			refuse(w, status, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message})
			return
		}
		noted := recordOf(r.Context())
		found := noted.caller
		m, wrong := readMessage(body)
		called := c.called(m)
		modern := r.Header.Get("Mcp-Protocol-Version") >= stateless
		missing := c.missingScopes(found, called)
		if wrong != nil || called == nil || missing != 0 && modern { // no operation is run
			if limited := c.Once.Kernel.Count(found.principal); limited != nil {
				slowDown(w, m.ID, limited)
				return
			}
		}
		switch {
		case wrong != nil && wrong.Code == jsonrpc.CodeInvalidParams: // the request itself was read
			refuse(w, http.StatusOK, m.ID, wrong)
			return
		case wrong != nil:
			refuse(w, http.StatusBadRequest, nil, wrong)
			return
		}
		if c.Customize == nil && m.Method != "" && !offered(m.Method) {
			answered := http.StatusOK
			if modern {
				answered = http.StatusNotFound
			}
			refuse(w, answered, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: "this method is not offered: see tools/list"})
			return
		}
		if called != nil {
			noted.operation = called.Name
		}
		if missing != 0 && modern {
			w.Header().Set("WWW-Authenticate", c.stepUp(found, missing))
			reply(w, http.StatusForbidden, "Forbidden", lacks(missing))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		noted.message = m
		next.ServeHTTP(w, r)
	})
}

// lacks says that a connection's person has not allowed what a call needs.
func lacks(missing access.Permission) string {
	return "the connection lacks the scope " + strings.Join(missing.Scopes(), " ")
}

// readMessage reads a request strictly, and checks its parameters.
func readMessage(body []byte) (envelope.Message, *jsonrpc.Error) {
	m, wrong := envelope.Read(body)
	if wrong == nil {
		wrong = fits(m.Method, m.Params)
	}
	return m, wrong
}

// called is the operation that a message calls; nil for none.
func (c Config) called(m envelope.Message) *operation.Operation {
	if m.Method != "tools/call" {
		return nil
	}
	return c.Registry.Find(m.Tool)
}

// missingScopes are the scopes that the call needs and the connection does not
// have: none, if the call would be refused with them all the same.
func (c Config) missingScopes(found caller, o *operation.Operation) access.Permission {
	if found.principal.Kind != access.Connection || o == nil || access.Grant(found.atMost(), o.Needs, o.Gate) != nil {
		return 0
	}
	return o.Needs &^ found.principal.Permissions
}

// stepUp is the challenge that asks for the scopes held and the missing ones.
func (c Config) stepUp(found caller, missing access.Permission) string {
	all := strings.Join((found.connection.Scopes | missing).Scopes(), " ")
	return `Bearer error="insufficient_scope", scope="` + all + `", resource_metadata="` + c.ResourceMetadata +
		`", error_description="the connection lacks a scope that this tool needs"`
}

// fits checks the parameters of a method against the types that the SDK reads
// them into. Its own error would be the words of its decoder.
func fits(method string, params jsontext.Value) *jsonrpc.Error {
	var into any
	needed := false
	switch method {
	case "initialize":
		into, needed = &sdk.InitializeParams{}, true
	case "tools/call":
		into, needed = &sdk.CallToolParamsRaw{}, true
	case "tools/list":
		into = &sdk.ListToolsParams{}
	case "subscriptions/listen":
		into, needed = &sdk.SubscriptionsListenParams{}, true
	case "notifications/cancelled":
		into = &sdk.CancelledParams{}
	case "notifications/progress":
		into, needed = &sdk.ProgressNotificationParams{}, true
	default:
		into = &sdk.PingParams{} // _meta alone
	}
	switch given := params.Kind(); {
	case given == 0 && !needed, given == 'n' && !needed:
		return nil
	case given != '{':
		return unfit(method, "params must be an object")
	}
	if err := json.Unmarshal(params, into); err != nil {
		what := "a member of params has the wrong type"
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			what = "params." + wrong.Field + " has the wrong type"
		}
		return unfit(method, what)
	}
	return nil
}

func unfit(method, what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + ": " + clean(what)}
}
