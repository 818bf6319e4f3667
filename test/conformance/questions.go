package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// question is what a tool asks of its client before it answers, over several
// rounds of the same call.
type question struct {
	key string
	ask sdk.InputRequest
}

func form(key, message string, members map[string]string) question {
	return question{key, &sdk.ElicitParams{Message: message, RequestedSchema: object(members)}}
}

func sample(key, text string, tokens int64) question {
	return question{key, &sdk.CreateMessageParams{MaxTokens: tokens,
		Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}}
}

func roots() question { return question{"client_roots", &sdk.ListRootsParams{}} }

// addQuestions adds the tools that ask. The keys are the suite's.
func addQuestions(server *sdk.Server) {
	name, confirm := form("user_name", "What is your name?", map[string]string{"name": "string"}),
		form("confirm", "Go on?", map[string]string{"ok": "boolean"})
	for tool, round := range map[string]struct {
		stateful  bool
		questions []question
	}{
		"elicitation":     {false, []question{name}},
		"sampling":        {false, []question{sample("capital_question", "What is the capital of France?", 100)}},
		"list_roots":      {false, []question{roots()}},
		"request_state":   {true, []question{confirm}},
		"tampered_state":  {true, []question{confirm}},
		"multiple_inputs": {true, []question{name, sample("greeting", "Greet a person.", 50), roots()}},
	} {
		addTool(server, "test_input_required_result_"+tool, "Asks its client before it answers.",
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return asking(r.Params, round.stateful, round.questions...)
			})
	}
	addTool(server, "test_input_required_result_multi_round", "Asks twice.", rounds)
	addTool(server, "test_input_required_result_capabilities", "Asks what the client can answer.", able)
}

// asking answers once every question has been answered.
func asking(p *sdk.CallToolParamsRaw, stateful bool, questions ...question) (*sdk.CallToolResult, error) {
	if p.RequestState != "" {
		if _, err := opened(p.RequestState); err != nil {
			return nil, err
		}
	}
	answers, complete := gather(p.InputResponses, questions)
	if stateful && p.RequestState == "" {
		complete = false
	}
	if !complete {
		return ask(stateful, "asked", questions...), nil
	}
	if stateful {
		answers = "state-ok " + answers // the suite's word
	}
	return textResult("Hello: " + answers), nil
}

func ask(stateful bool, state string, questions ...question) *sdk.CallToolResult {
	result := &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}
	for _, q := range questions {
		result.InputRequests[q.key] = q.ask
	}
	if stateful {
		result.RequestState = sealed(state)
	}
	return result
}

// gather returns what a client answered, if it answered everything and well.
func gather(responses sdk.InputResponseMap, questions []question) (string, bool) {
	var all []string
	for _, q := range questions {
		text, ok := read(responses[q.key])
		if !ok {
			return "", false
		}
		all = append(all, text)
	}
	return strings.Join(all, ", "), true
}

func read(response sdk.InputResponse) (string, bool) {
	switch r := response.(type) {
	case *sdk.ElicitResult:
		return fmt.Sprint(r.Content), r.Action == "accept" && len(r.Content) > 0
	case *sdk.CreateMessageWithToolsResult:
		for _, c := range r.Content {
			if text, ok := c.(*sdk.TextContent); ok {
				return text.Text, true
			}
		}
	case *sdk.ListRootsResult:
		uris := make([]string, len(r.Roots))
		for i, root := range r.Roots {
			uris[i] = root.URI
		}
		return strings.Join(uris, " "), true
	}
	return "", false
}

// rounds asks for a name, then for a color; what it knows travels with the
// client, because any replica may get the next round.
func rounds(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	first := form("step1", "Step 1: What is your name?", map[string]string{"name": "string"})
	second := form("step2", "Step 2: What is your favorite color?", map[string]string{"color": "string"})
	if r.Params.RequestState == "" {
		return ask(true, "first", first), nil
	}
	state, err := opened(r.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if state == "first" {
		name, ok := gather(r.Params.InputResponses, []question{first})
		if !ok {
			return ask(true, "first", first), nil
		}
		return ask(true, "second "+name, second), nil
	}
	color, ok := gather(r.Params.InputResponses, []question{second})
	if !ok {
		return ask(true, state, second), nil
	}
	return textResult(strings.TrimPrefix(state, "second ") + " likes " + color), nil
}

// able asks only for what the client says it can answer.
func able(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return textResult("answered"), nil
	}
	can := r.ClientCapabilities()
	var questions []question
	if can != nil && can.Elicitation != nil {
		questions = append(questions, form("user_name", "What is your name?", map[string]string{"name": "string"}))
	}
	if can != nil && can.Sampling != nil {
		questions = append(questions, sample("greeting", "Greet a person.", 50))
	}
	if len(questions) == 0 {
		return textResult("the client can answer nothing"), nil
	}
	return ask(false, "", questions...), nil
}

// sealed and opened protect what travels with a client. The key is no secret:
// the suite's state guards nothing.
func sealed(state string) string {
	mac := hmac.New(sha256.New, []byte("conformance"))
	mac.Write([]byte(state))
	return hex.EncodeToString(mac.Sum(nil)) + "." + state
}

func opened(text string) (string, error) {
	_, state, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(sealed(state)), []byte(text)) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState has been changed"}
	}
	return state, nil
}
