package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/envelope"
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
func readCall(o *operation.Operation, p access.Principal,
	params *sdk.CallToolParamsRaw) (key string, meta operation.Meta, arguments operation.Flat) {
	meta.ReasonField, arguments = reasonArgument, operation.Flat(params.Arguments)
	if value, ok := params.Meta[metaKey]; ok {
		key, _ = value.(string) // of another type: it is empty, which is refused
		meta.Wrong = operation.CheckKey(metaKey, key)
	}
	if o.Budget == operation.Free {
		return key, meta, arguments
	}
	fields := operation.NoteFields{Reason: metaReason, Ticket: metaTicket}
	noted := map[string]string{}
	for _, member := range []string{metaReason, metaTicket} {
		text, isText := params.Meta[member].(string)
		if params.Meta[member] != nil && !isText && meta.Wrong == nil {
			meta.Wrong = operation.WrongType(member)
		}
		noted[member] = text
	}
	if o.WantsReason(p) {
		var text string
		var wrong *fault.Error
		if arguments, text, wrong = operation.TakeReason(arguments, reasonArgument); wrong != nil {
			meta.Wrong = wrong
		} else if text != "" {
			fields.Reason, noted[metaReason] = reasonArgument, text
		}
	}
	if meta.Wrong == nil {
		meta.Note, meta.Wrong = fields.Read(noted[metaReason], noted[metaTicket])
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
		schema.Properties[reasonArgument] = &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: new(access.MaxReason),
			Pattern:     operation.NotePattern(true),
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

// record is what is known of a request, for the access log and for what serves it. The message is zero until it is read.
type record struct {
	id        string
	operation string // the tool's; Protocol: a call of no tool
	caller    caller // zero until known
	message   envelope.Message
	failed    atomic.Int32 // the status that REST would have answered a failed tool with; 0: none
}

// Protocol stands, as the operation, for what is no call of a tool.
const Protocol = "mcp"

type recordContext struct{}

// noted writes the access log and the metrics. A failed tool is noted with
// REST's status, although the protocol answers it 200.
func (c Config) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := c.Now()
		noted := &record{id: resource.RequestID(r.Header.Get("X-Request-Id")), operation: Protocol}
		w.Header().Set("X-Request-Id", noted.id)
		answer := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), recordContext{}, noted)))
		code, took := answer.status, c.Now().Sub(start)
		if failed := noted.failed.Load(); failed != 0 {
			code = int(failed)
		}
		c.Served(noted.operation, code, took)
		p := noted.caller.principal
		c.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("request_id", noted.id), slog.String("method", r.Method),
			slog.String("path", Path), slog.String("operation", noted.operation), slog.Int("status", code),
			slog.Duration("took", took), slog.String("caller", p.ID), slog.String("key", p.Prefix),
			slog.String("client", access.OriginOf(r.Context()).Address))
	})
}

// recordOf is the record of a request that noted has begun.
func recordOf(ctx context.Context) *record { return ctx.Value(recordContext{}).(*record) }

func (r *record) fail(code fault.Code) { r.failed.Store(int32(edge.Status(code))) }

// answer notes the status that is answered.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController what is beneath.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far, as streams need it.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() } // the client has gone away: nothing to do
