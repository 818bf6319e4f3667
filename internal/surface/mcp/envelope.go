package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
)

// stateless is the first protocol revision whose clients know how to ask for
// more scopes when a call is refused.
const stateless = "2026-07-28"

// message is what the envelope check reads of a JSON-RPC request.
type message struct {
	ID     jsontext.Value // nil: a notification, or an answer
	Method string
	Tool   string
}

// What is no request that we take.
const (
	batchRefused = "a batch of requests is refused: send them one by one"
	memberTwice  = "a member is given twice, or in another case"
	notReadable  = "the body is not well-formed JSON in UTF-8"
)

func invalid(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}
}

// offered reports whether the protocol's method is one of ours.
func offered(method string) bool {
	ours := []string{"initialize", "server/discover", "ping", "tools/list", "tools/call", "subscriptions/listen"}
	return slices.Contains(ours, method) || isNotification(method)
}

func isNotification(method string) bool { return strings.HasPrefix(method, "notifications/") }

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
			refuse(w, http.StatusRequestEntityTooLarge, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
				Message: fmt.Sprintf("the body is longer than %d bytes", maxBody)})
			return
		}
		found, _ := r.Context().Value(callerContext{}).(caller)
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
			recordOf(r.Context()).operation = called.Name
		}
		if missing != 0 && modern {
			w.Header().Set("WWW-Authenticate", c.stepUp(found, missing))
			reply(w, http.StatusForbidden, "Forbidden", lacks(missing))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), messageContext{}, m)))
	})
}

type messageContext struct{}

// lacks says that a connection's person has not allowed what a call needs.
func lacks(missing access.Permission) string {
	return "the connection lacks the scope " + strings.Join(missing.Scopes(), " ")
}

// readMessage reads id, method and tool, strictly.
func readMessage(body []byte) (message, *jsonrpc.Error) {
	var m message
	switch kind := jsontext.Value(body).Kind(); {
	case kind == '[':
		return m, invalid(batchRefused)
	case !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)):
		return m, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: notReadable}
	case kind != '{':
		return m, invalid("the body must be one JSON-RPC request")
	case depth(body) > maxDepth:
		return m, invalid(fmt.Sprintf("the body is nested more than %d levels deep", maxDepth))
	}
	top, wrong := members(body, "jsonrpc", "id", "method", "params", "result", "error")
	if wrong != nil {
		return m, wrong
	}
	if string(top["jsonrpc"]) != `"2.0"` {
		return m, invalid(`jsonrpc must be "2.0"`)
	}
	if id, given := top["id"]; given && !isID(id) {
		return m, invalid("id must be a text, or an integer from -2^53 to 2^53")
	} else if given {
		m.ID = id
	}
	_ = json.Unmarshal(top["method"], &m.Method) // another type stays empty: the SDK refuses it
	params, wrong := members(top["params"], "name", "arguments", "_meta")
	if wrong != nil {
		return m, wrong
	}
	_ = json.Unmarshal(params["name"], &m.Tool)
	if m.ID == nil && m.Method != "" && !isNotification(m.Method) {
		return m, invalid("id is missing: it must be a text or an integer")
	}
	if _, wrong := members(params["arguments"]); wrong != nil {
		return m, wrong
	}
	if _, wrong = members(params["_meta"]); wrong != nil {
		return m, wrong
	}
	return m, fits(m.Method, top["params"])
}

// members returns the members of a JSON object. It refuses members given twice
// and those that differ from a known one only in case; what is no object has none.
func members(object []byte, known ...string) (map[string]jsontext.Value, *jsonrpc.Error) {
	found := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return found, nil
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, invalid(memberTwice)
		}
		key := token.String()
		for _, name := range known {
			if key != name && strings.EqualFold(key, name) {
				return nil, invalid(memberTwice)
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, invalid(memberTwice)
		}
		found[key] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, invalid(memberTwice)
	}
	return found, nil
}

// called is the operation that a message calls; nil for none.
func (c Config) called(m message) *operation.Operation {
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
