package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// What a client may say of a call beside its arguments, in the members of _meta. Each
// means what a header of REST does.
const (
	metaKey    = "muster/idempotencyKey"
	metaReason = "muster/reason"
	metaTicket = "muster/ticket"
	// metaReplayed is of answers: the call ran before, and this is its answer of then.
	metaReplayed = "muster/idempotencyReplayed"
)

// reasonArgument is an argument of each tool for which the caller's company requires a
// reason, because models cannot set _meta.
const reasonArgument = "reason"

// readCall returns what a client says of a call, and the arguments of the operation.
func readCall(o *operation.Operation, p access.Principal, params *sdk.CallToolParamsRaw) (key string, meta operation.Meta, arguments operation.Flat) {
	meta.ReasonField, arguments = reasonArgument, operation.Flat(params.Arguments)
	if value, ok := params.Meta[metaKey]; ok {
		key, _ = value.(string) // of another type: it is empty, which is refused
		meta.Wrong = operation.CheckKey(metaKey, key)
	}
	if o.Budget == operation.Free {
		return key, meta, arguments
	}
	fields := operation.NoteFields{Reason: metaReason, Ticket: metaTicket}
	said := map[string]string{}
	for _, member := range []string{metaReason, metaTicket} {
		text, isText := params.Meta[member].(string)
		if _, given := params.Meta[member]; given && !isText && meta.Wrong == nil {
			meta.Wrong = operation.WrongType(member)
		}
		said[member] = text
	}
	if o.WantsReason(p) {
		var text string
		var wrong *fault.Error
		if arguments, text, wrong = operation.TakeReason(arguments, reasonArgument); wrong != nil {
			meta.Wrong = wrong
		} else if text != "" {
			fields.Reason, said[metaReason] = reasonArgument, text
		}
	}
	if meta.Wrong == nil {
		meta.Note, meta.Wrong = fields.Read(said[metaReason], said[metaTicket])
	}
	return key, meta, arguments
}

// askReasons adds the argument to the tools for which the caller's company requires it.
func (c Config) askReasons(list *sdk.ListToolsResult, p access.Principal) error {
	for i, tool := range list.Tools {
		o := c.Registry.Find(tool.Name)
		if o == nil || !o.WantsReason(p) {
			continue
		}
		schema := o.InputSchema()
		if schema.Properties == nil {
			schema.Properties = map[string]*jsonschema.Schema{}
		}
		schema.Properties[reasonArgument] = &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: new(access.MaxReason), Pattern: operation.NotePattern(true),
			Description: "Why this is done, for the people who review it. The company requires it."}
		schema.PropertyOrder = append(schema.PropertyOrder, reasonArgument)
		schema.Required = append(schema.Required, reasonArgument)
		input, err := json.Marshal(schema)
		if err != nil {
			return fmt.Errorf("cannot describe %s: %w", tool.Name, err)
		}
		asking := *tool // the registry's own belongs to all callers
		asking.InputSchema = json.RawMessage(input)
		list.Tools[i] = &asking
	}
	return nil
}
