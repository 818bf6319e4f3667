// Package envelope reads messages of MCP: the service and the bridge (muster mcp) take the
// same ones, and read them alike.
package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Message is what is read of a message of JSON-RPC.
type Message struct {
	ID     jsontext.Value // nil: a notification, or an answer
	Method string
	Tool   string
	Params jsontext.Value
}

// What is no message that we take.
const (
	batchRefused = "a batch of requests is refused: send them one by one"
	memberTwice  = "a member is given twice, or in another case"
	notReadable  = "the body is not well-formed JSON in UTF-8"
)

// Invalid is the error of a message that is none.
func Invalid(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}
}

// IsNotification reports whether a method is one that is not answered.
func IsNotification(method string) bool { return strings.HasPrefix(method, "notifications/") }

// Read reads a message strictly: no batches, no member twice or in another case, at any
// depth. The error is what the caller is told.
func Read(body []byte) (Message, *jsonrpc.Error) {
	var m Message
	switch kind := jsontext.Value(body).Kind(); {
	case kind == '[':
		return m, Invalid(batchRefused)
	case !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)):
		return m, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: notReadable}
	case kind != '{':
		return m, Invalid("the body must be one JSON-RPC request")
	case depth(body) > maxDepth:
		return m, Invalid(fmt.Sprintf("the body is nested more than %d levels deep", maxDepth))
	}
	top, wrong := members(body, "jsonrpc", "id", "method", "params", "result", "error")
	if wrong != nil {
		return m, wrong
	}
	if string(top["jsonrpc"]) != `"2.0"` {
		return m, Invalid(`jsonrpc must be "2.0"`)
	}
	if id, given := top["id"]; given && !isID(id) {
		return m, Invalid("id must be a text, or an integer from -2^53 to 2^53")
	} else if given {
		m.ID = id
	}
	_ = json.Unmarshal(top["method"], &m.Method) // another type stays empty
	if m.Method == "" && top["result"] == nil && top["error"] == nil {
		return m, Invalid("method is missing: it must be a text") // the SDK would take it for an answer
	}
	params, wrong := members(top["params"], "name", "arguments", "_meta")
	if wrong != nil {
		return m, wrong
	}
	_ = json.Unmarshal(params["name"], &m.Tool)
	if m.ID == nil && m.Method != "" && !IsNotification(m.Method) {
		return m, Invalid("id is missing: it must be a text or an integer")
	}
	for _, inner := range []string{"arguments", "_meta"} {
		if _, wrong := members(params[inner]); wrong != nil {
			return m, wrong
		}
	}
	m.Params = top["params"]
	return m, nil
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
			return nil, Invalid(memberTwice)
		}
		key := token.String()
		for _, name := range known {
			if key != name && strings.EqualFold(key, name) {
				return nil, Invalid(memberTwice)
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, Invalid(memberTwice)
		}
		found[key] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, Invalid(memberTwice)
	}
	return found, nil
}

// maxDepth is how deep the JSON of a request may be nested. No tool's arguments
// have more than a few levels.
const maxDepth = 100

// depth is the number of levels of a well-formed JSON value.
func depth(value []byte) (deepest int) {
	for d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true)); ; {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}

// maxID is the largest integer up to which all are exact as numbers of JSON.
const maxID = 1 << 53

// isID reports whether a JSON value is the id of a request that comes back as it
// was: the SDK keeps numbers as 64-bit integers, having read them as floats.
func isID(id jsontext.Value) bool {
	if id.Kind() == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n >= -maxID && n <= maxID
}
