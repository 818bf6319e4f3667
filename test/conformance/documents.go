package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addDocuments adds resources, prompts and completion.
func addDocuments(server *sdk.Server) {
	for _, d := range []sdk.ResourceContents{
		{URI: "test://static-text", MIMEType: "text/plain", Text: "a text"},
		{URI: "test://static-binary", MIMEType: "image/png", Blob: png()},
		{URI: "test://watched-resource", MIMEType: "text/plain", Text: "watched"},
	} {
		name := strings.TrimPrefix(d.URI, "test://")
		server.AddResource(&sdk.Resource{URI: d.URI, Name: name, Description: "A resource, " + name + ".", MIMEType: d.MIMEType},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&d}}, nil
			})
	}
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "Data by id.",
		MIMEType: "application/json"}, byID)

	addPrompt(server, &sdk.Prompt{Name: "test_simple_prompt", Description: "One text."}, says("a prompt"))
	addPrompt(server, &sdk.Prompt{Name: "test_prompt_with_image", Description: "A picture and a text."},
		says("look at it", &sdk.ImageContent{Data: png(), MIMEType: "image/png"}))
	addPrompt(server, &sdk.Prompt{Name: "test_prompt_with_arguments", Description: "A text of two arguments.",
		Arguments: required("arg1", "arg2")},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return spoken(fmt.Sprintf("arg1 is %s, arg2 is %s", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])), nil
		})
	addPrompt(server, &sdk.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A resource and a text.",
		Arguments: required("resourceUri")},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return spoken("read it", &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
				URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "a resource in a prompt"}}), nil
		})
	addPrompt(server, &sdk.Prompt{Name: "test_input_required_result_prompt", Description: "Asks before it speaks."}, askingPrompt)
	server.AddReceivingMiddleware(complete)
}

func byID(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
	text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json",
		Text: string(text)}}}, nil
}

func addPrompt(server *sdk.Server, p *sdk.Prompt, handler sdk.PromptHandler) {
	server.AddPrompt(p, handler)
}

func required(names ...string) []*sdk.PromptArgument {
	arguments := make([]*sdk.PromptArgument, len(names))
	for i, name := range names {
		arguments[i] = &sdk.PromptArgument{Name: name, Description: "The argument " + name + ".", Required: true}
	}
	return arguments
}

// says is a prompt that never changes.
func says(text string, before ...sdk.Content) sdk.PromptHandler {
	return func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return spoken(text, before...), nil
	}
}

func spoken(text string, before ...sdk.Content) *sdk.GetPromptResult {
	var messages []*sdk.PromptMessage
	for _, content := range append(before, &sdk.TextContent{Text: text}) {
		messages = append(messages, &sdk.PromptMessage{Role: "user", Content: content})
	}
	return &sdk.GetPromptResult{Messages: messages}
}

func askingPrompt(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	q := form("user_context", "What is it about?", map[string]string{"context": "string"})
	answer, ok := gather(r.Params.InputResponses, []question{q})
	if !ok {
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{q.key: q.ask}}, nil
	}
	return spoken(answer), nil
}

// complete answers completions, which the SDK takes as an option of a server
// that is made already.
func complete(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		if method == "completion/complete" {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"paris", "park"}, Total: 2}}, nil
		}
		return next(ctx, method, request)
	}
}
