package conformance

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/test/poll"
)

// pause is how long the suite wants between two notifications.
const pause = 50 * time.Millisecond

// addStreams adds the tools that speak before they answer, or change what
// there is to subscribe to.
func addStreams(server *sdk.Server) {
	addTool(server, "test_tool_with_progress", "Tells its progress in three steps.", progress)
	addTool(server, "test_tool_with_logging", "Logs three messages.",
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return log(ctx, r, "started", "at work", "done")
		})
	addTool(server, "test_logging_tool", "Logs one message.",
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return log(ctx, r, "called")
		})
	addTool(server, "test_streaming_elicitation", "Answers without asking.",
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return textResult("nothing had to be asked"), nil
		})
	addTool(server, "test_missing_capability", "Needs a client that can sample.", needSampling)
	addTool(server, "test_trigger_tool_change", "Changes the list of tools.",
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			addTool(server, "test_fleeting_tool", "Comes while a client watches.",
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					return textResult("here"), nil
				})
			return textResult("changed"), nil
		})
	addTool(server, "test_trigger_prompt_change", "Changes the list of prompts.",
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			addPrompt(server, &sdk.Prompt{Name: "test_fleeting_prompt", Description: "Comes while a client watches."}, says("here"))
			return textResult("changed"), nil
		})
}

func progress(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, done := range []float64{0, 50, 100} {
		if token != nil {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100})
			if err != nil {
				return nil, err
			}
		}
		poll.Pause(pause)
	}
	return textResult("done"), nil
}

func log(ctx context.Context, r *sdk.CallToolRequest, messages ...string) (*sdk.CallToolResult, error) {
	for _, message := range messages {
		if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: message}); err != nil {
			return nil, err
		}
		poll.Pause(pause)
	}
	return textResult("logged"), nil
}

// needSampling refuses clients that cannot sample, as the protocol wants it.
func needSampling(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if can := r.ClientCapabilities(); can != nil && can.Sampling != nil {
		return textResult("the client can sample"), nil
	}
	data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "this tool needs a client that can sample",
		Data: data}
}
