package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
)

// stateless is the first protocol revision whose clients know how to ask for
// more scopes when a call is refused.
const stateless = "2026-07-28"

// message is what the envelope check reads of a JSON-RPC request.
type message struct {
	Method string
	Tool   string
}

var (
	errBatch = errors.New("a batch of requests is refused: send them one by one")
	errMixed = errors.New("a member is given twice, or in another case")
)

// envelope checks a request's JSON before the SDK reads it: no batches, no
// member twice or in another case, at any depth of the envelope. A call for
// which a connection lacks the scope is answered with a challenge.
func (c Config) envelope(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			reply(w, http.StatusRequestEntityTooLarge, "Content Too Large", fmt.Sprintf("the body is longer than %d bytes", maxBody))
			return
		}
		m, err := readMessage(body)
		if err != nil {
			reply(w, http.StatusBadRequest, "Bad Request", err.Error())
			return
		}
		found, _ := r.Context().Value(callerContext{}).(caller)
		if missing := c.missingScopes(found, c.called(m)); missing != 0 && r.Header.Get("Mcp-Protocol-Version") >= stateless {
			w.Header().Set("WWW-Authenticate", c.stepUp(found, missing))
			reply(w, http.StatusForbidden, "Forbidden", "the connection lacks the scope "+strings.Join(missing.Scopes(), " "))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// readMessage reads method and tool, strictly. A body that is not JSON is left
// to the SDK, which answers it in its own protocol.
func readMessage(body []byte) (message, error) {
	var m message
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return m, errBatch
	}
	top, err := members(body, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return m, err
	}
	_ = json.Unmarshal(top["method"], &m.Method) // another type stays empty: the SDK refuses it
	params, err := members(top["params"], "name", "arguments", "_meta")
	if err != nil {
		return m, err
	}
	_ = json.Unmarshal(params["name"], &m.Tool)
	if _, err := members(params["arguments"]); err != nil {
		return m, err
	}
	_, err = members(params["_meta"])
	return m, err
}

// members returns the members of a JSON object. It refuses members given twice
// and those that differ from a known one only in case; what is no object has none.
func members(object []byte, known ...string) (map[string]jsontext.Value, error) {
	found := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return found, nil
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, duplicateOr(err)
		}
		key := token.String()
		for _, name := range known {
			if key != name && strings.EqualFold(key, name) {
				return nil, errMixed
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, duplicateOr(err)
		}
		found[key] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, duplicateOr(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the request")
	}
	return found, nil
}

func duplicateOr(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return errMixed
	}
	return errors.New("the body is not well-formed JSON in UTF-8")
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
