package mcp

import (
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
