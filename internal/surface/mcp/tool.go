package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/edge"
)

// pictureMember is the member of provisioning.Result that becomes an image block; its
// text form stays out of what a model reads.
const pictureMember = "image"

// describe derives the tool of an operation.
func describe(o *operation.Operation) (*sdk.Tool, error) {
	input, err := json.Marshal(o.InputSchema())
	if err != nil {
		return nil, fmt.Errorf("cannot describe %s: %w", o.Name, err)
	}
	schema := o.OutputSchema()
	marked := markUntrusted(schema)
	if isPictured(o) {
		delete(schema.Properties, pictureMember)
		schema.Required = without(schema.Required, pictureMember)
		schema.PropertyOrder = without(schema.PropertyOrder, pictureMember)
	}
	output, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("cannot describe %s: %w", o.Name, err)
	}
	description := o.Description
	if marked || o.Effect == operation.Reading {
		description += " " + untrustedResult
	}
	// Hosts call without asking what is not destructive, and send again what is
	// idempotent: no command is, because its device may have to do it twice.
	reads := o.Effect == operation.Reading
	destructive, closedWorld := o.Disruptive || o.Effect == operation.Destroying, false
	return &sdk.Tool{Name: o.Name, Title: o.Title, Description: description,
		InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
		Annotations: &sdk.ToolAnnotations{Title: o.Title, ReadOnlyHint: reads,
			IdempotentHint: reads || o.Repeatable, DestructiveHint: &destructive, OpenWorldHint: &closedWorld},
	}, nil
}

func isPictured(o *operation.Operation) bool {
	return o.Result() == reflect.TypeFor[provisioning.Result]()
}

// call runs an operation through the kernel for the caller of the tool. A panic outside its
// handler, and a result that cannot be written, become the tool's internal error.
func (c Config) call(o *operation.Operation) sdk.ToolHandler {
	return func(ctx context.Context, request *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
		found := principalOf(request.Extra)
		broke := func(err error) (*sdk.CallToolResult, error) {
			found.record.fail(fault.Internal)
			return c.failed(found, o, operation.Outcome{
				Fault: c.Once.Kernel.Explain(ctx, o, found.principal, operation.Meta{RequestID: found.record.id}, err)})
		}
		defer fault.Rescue(func(panicked error) { result, err = broke(panicked) })
		key, meta, arguments := readCall(o, found.principal, request.Params)
		meta.RequestID, meta.Since, meta.Again = found.record.id, found.since, found.again
		outcome := c.Once.Run(ctx, o, found.principal, meta, arguments, key)
		if outcome.Fault != nil {
			found.record.fail(outcome.Fault.Code)
			if question := elicit(request.Params, outcome.Fault); question != nil {
				return question, nil
			}
			return c.failed(found, o, outcome)
		}
		answer, err := succeeded(o, outcome.Result)
		if err != nil {
			return broke(err)
		}
		if outcome.Replayed {
			answer.Meta = sdk.Meta{metaReplayed: true}
		}
		return answer, nil
	}
}

// elicit asks a client that can open addresses to bring its user to where a person
// decides; nil: there is nothing to decide, or the client cannot, or has done so. It
// sends the call again then, and what was decided is read from the database alone.
func elicit(params *sdk.CallToolParamsRaw, f *fault.Error) *sdk.CallToolResult {
	able, _ := params.Meta[sdk.MetaKeyClientCapabilities].(map[string]any)
	modes, _ := able["elicitation"].(map[string]any)
	revision, _ := params.Meta[sdk.MetaKeyProtocolVersion].(string)
	decides := f.Approval != nil && f.Approval.URL != "" && f.Approval.Declined == nil // else there is nothing to decide
	if _, opens := modes["url"]; !opens || revision < stateless || !decides || len(params.InputResponses) > 0 {
		return nil
	}
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{
		"approval": &sdk.ElicitParams{Mode: "url", Message: clean(f.Detail), URL: f.Approval.URL}}}
}

func succeeded(o *operation.Operation, result any) (*sdk.CallToolResult, error) {
	if before, ok := result.(operation.Repeated); ok && isPictured(o) {
		var code provisioning.Result // to have the picture
		if err := json.Unmarshal(before.JSON, &code); err != nil {
			return nil, err
		}
		result = code
	}
	body, err := operation.EncodeResult(result)
	if err != nil {
		return nil, err
	}
	picture, pictured := result.(provisioning.Result)
	body, err = cleanJSON(body, pictured)
	if err != nil {
		return nil, err
	}
	answer := &sdk.CallToolResult{StructuredContent: json.RawMessage(body), Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}}
	if pictured {
		answer.Content = append(answer.Content, &sdk.ImageContent{Data: picture.Image.Data, MIMEType: "image/png"})
	}
	return answer, nil
}

// toolError is the error of REST as a tool returns it (contract 4.5).
type toolError struct {
	Code       fault.Code `json:"code"`
	Message    string     `json:"message"`
	Status     int        `json:"status"`
	Retryable  bool       `json:"retryable"`
	RetryAfter int        `json:"retryAfter,omitempty"`
	Oldest     string     `json:"oldest,omitempty"`
	*fault.Review
	*fault.Approval
}

func (c Config) failed(found caller, o *operation.Operation, outcome operation.Outcome) (*sdk.CallToolResult, error) {
	f := outcome.Fault
	e := toolError{Code: f.Code, Message: clean(f.Detail), Status: edge.Status(f.Code), Retryable: f.MayRetry(),
		Approval: f.Approval, Oldest: f.Oldest}
	if f.Review != nil {
		review := *f.Review
		review.Summary = clean(review.Summary)
		e.Review = &review
	}
	if f.Code == fault.RateLimited {
		e.RetryAfter = operation.Seconds(f.RetryAfter)
	}
	if missing := c.missingScopes(found, o); f.Code == fault.Forbidden && missing != 0 {
		e.Message = lacks(missing)
		if c.ConnectionsPage != "" {
			e.Message += "; a person can change what this connection may do at " + c.ConnectionsPage
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	answer := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
	if outcome.Replayed {
		answer.Meta = sdk.Meta{metaReplayed: true}
	}
	return answer, nil
}
