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

// The tools of this file ask their client before they answer: a call returns questions (input
// requests of MCP), and the client calls again with the answers and with the request state, if there is one.
// The suite is the MCP conformance suite, which fixes the names of tools, keys and texts.

// question is one input request.
type question struct {
	key string
	ask sdk.InputRequest
}

// form asks for members by their types, from a person.
func form(key, message string, members map[string]string) question {
	return question{key, &sdk.ElicitParams{Message: message, RequestedSchema: object(members)}}
}

// sample asks for a text of the client's model.
func sample(key, text string, tokens int64) question {
	return question{key, &sdk.CreateMessageParams{MaxTokens: tokens,
		Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}}
}

// roots asks for the client's root folders.
func roots() question { return question{"client_roots", &sdk.ListRootsParams{}} }

// addQuestions adds the tools of this file.
func addQuestions(server *sdk.Server) {
	name := form("user_name", "What is your name?", map[string]string{"name": "string"})
	confirm := form("confirm", "Go on?", map[string]string{"ok": "boolean"})
	for tool, asks := range map[string]struct {
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
				return answerOrAsk(r.Params, asks.stateful, asks.questions)
			})
	}
	addTool(server, "test_input_required_result_multi_round", "Asks twice.", askTwice)
	addTool(server, "test_input_required_result_capabilities", "Asks what the client can answer.", askCapable)
}

// answerOrAsk answers once the client has answered every question. A stateful call has to return the
// request state as well.
func answerOrAsk(p *sdk.CallToolParamsRaw, stateful bool, questions []question) (*sdk.CallToolResult, error) {
	if p.RequestState != "" {
		if _, err := verify(p.RequestState); err != nil {
			return nil, err
		}
	}
	answers, complete := gather(p.InputResponses, questions)
	switch {
	case !stateful && !complete:
		return ask("", questions...), nil
	case stateful && (!complete || p.RequestState == ""):
		return ask("asked", questions...), nil
	case stateful:
		answers = "state-ok " + answers // the suite looks for it
	}
	return textResult("Hello: " + answers), nil
}

// ask returns the questions with a request state; empty: without one.
func ask(state string, questions ...question) *sdk.CallToolResult {
	result := &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}
	for _, q := range questions {
		result.InputRequests[q.key] = q.ask
	}
	if state != "" {
		result.RequestState = sign(state)
	}
	return result
}

// gather joins the client's answers to the questions. It returns false if one is missing or was declined.
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

// read returns the text of an answer; false: there is none, or it was declined.
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

// askTwice asks for a name, then for a color. The request state has the name, because another replica may
// get the next call.
func askTwice(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	first := form("step1", "Step 1: What is your name?", map[string]string{"name": "string"})
	second := form("step2", "Step 2: What is your favorite color?", map[string]string{"color": "string"})
	if r.Params.RequestState == "" {
		return ask("first", first), nil
	}
	state, err := verify(r.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if state == "first" {
		name, ok := gather(r.Params.InputResponses, []question{first})
		if !ok {
			return ask("first", first), nil
		}
		return ask("second "+name, second), nil
	}
	color, ok := gather(r.Params.InputResponses, []question{second})
	if !ok {
		return ask(state, second), nil
	}
	return textResult(strings.TrimPrefix(state, "second ") + " likes " + color), nil
}

// askCapable asks only what the client's capabilities let it answer.
func askCapable(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return textResult("answered"), nil
	}
	capabilities := r.ClientCapabilities()
	var questions []question
	if capabilities != nil && capabilities.Elicitation != nil {
		questions = append(questions, form("user_name", "What is your name?", map[string]string{"name": "string"}))
	}
	if capabilities != nil && capabilities.Sampling != nil {
		questions = append(questions, sample("greeting", "Greet a person.", 50))
	}
	if len(questions) == 0 {
		return textResult("the client can answer nothing"), nil
	}
	return ask("", questions...), nil
}

// sign adds a signature to a request state, so that verify can refuse a state that the client has
// changed. The key need not be a secret in a test.
func sign(state string) string {
	mac := hmac.New(sha256.New, []byte("conformance"))
	mac.Write([]byte(state))
	return hex.EncodeToString(mac.Sum(nil)) + "." + state
}

// verify returns the state that was signed.
func verify(text string) (string, error) {
	_, state, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(sign(state)), []byte(text)) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState has been changed"}
	}
	return state, nil
}
