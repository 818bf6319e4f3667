package mcp

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxDepth is how deep the JSON of a request may be nested. No tool's arguments
// have more than a few levels.
const maxDepth = 100

// depth is the number of levels of a well-formed JSON value.
func depth(value []byte) int {
	deepest, now, inText := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
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
