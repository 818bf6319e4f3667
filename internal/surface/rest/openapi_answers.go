package rest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// sampleOf is an instance of each fault, for examples and their words.
func sampleOf(code fault.Code) *fault.Error {
	e := fault.New(code, "%s", map[fault.Code]string{
		fault.InvalidArguments:     "message must not be blank",
		fault.Unauthorized:         "API key missing, invalid, expired or revoked",
		fault.Forbidden:            "missing permission: DEVICES_COMMAND",
		fault.NotFound:             "there is nothing with this id in your company",
		fault.Unsupported:          "this device cannot take the command",
		fault.NotPending:           "the proposal is no longer PENDING",
		fault.StaleProposal:        "the policy was saved after the proposal was made: read it again and propose again",
		fault.Refused:              "the request was evaluated and refused",
		fault.ConfirmationRequired: "type the policy's name to confirm",
		fault.CursorExpired:        "the cursor is older than what is kept, or of another history",
		fault.RateLimited:          "more than 10 calls in 60 s: retry in 42 s",
		fault.Internal:             "an unexpected error occurred; its id is 8k2v0r6m4q1x7t9c3w5y2n8b6d",
		fault.Provider:             "the platform did not carry it out for a reason that is not this device's",
		fault.Unavailable:          operation.NotSentDetail,
		fault.InFlight:             "a request with this Idempotency-Key is still under way: repeat it in a moment",
		fault.KeyReused:            "this Idempotency-Key was used for another request: use a new key for each request",
	}[code])
	if code == fault.InvalidArguments {
		e.Fields = []fault.Field{{Field: "message", Message: "must not be blank"}}
	}
	if code == fault.ConfirmationRequired {
		e.Review = &fault.Review{Impact: "HIGH", RequiresConfirmation: true,
			Summary: "In the policy \"Warehouse\", which 60 devices use, changes Camera from ALLOW to BLOCK."}
	}
	if code == fault.CursorExpired {
		e.Oldest = "q3mQ0tV8mVd4AQ"
	}
	e.RetryAfter = 42 * time.Second
	return e
}

// meanings says what each status means to a caller (contract 7.1, 7.3, 7.4).
func meanings() map[int]string {
	return map[int]string{
		http.StatusBadRequest:          "An argument is invalid; nothing was done. errors lists the members at fault.",
		http.StatusUnauthorized:        "The API key is missing, invalid, expired or revoked.",
		http.StatusForbidden:           "The key lacks a permission, or the company has not enabled this.",
		http.StatusNotFound:            "There is nothing with this id in the key's company.",
		http.StatusConflict:            "It cannot be done in the present state; the same request fails the same until that changes.",
		http.StatusGone:                "The cursor is older than what is kept, or of another history. oldest is where to go on.",
		http.StatusUnprocessableEntity: "It was evaluated and refused. Do not send the same again.",
		http.StatusTooManyRequests:     "The rate limit is exceeded. Wait as long as Retry-After says.",
		http.StatusInternalServerError: "An unexpected error; whether it had an effect is unknown. Look before you send it again.",
		http.StatusBadGateway: "The platform rejected it for a reason that is not this device's. retryable says whether " +
			"to try again.",
		http.StatusServiceUnavailable: "It failed inside the service before anything was sent. It is safe to retry.",
	}
}

// codesOf lists every code that a call of the operation may end in.
func codesOf(o *operation.Operation) []fault.Code {
	codes := []fault.Code{fault.InvalidArguments, fault.Unauthorized, fault.Forbidden}
	codes = append(codes, o.Faults...)
	if o.Effect != operation.Reading {
		codes = append(codes, fault.InFlight, fault.KeyReused)
	}
	return append(codes, fault.RateLimited, fault.Internal)
}

// refusals describes every error of an operation in its dialect. Operations
// that answer alike share the description.
func (d *document) refusals(o *operation.Operation) map[string]*response {
	all := map[string]*response{}
	for _, code := range codesOf(o) {
		d.refusal(all, o, string(code), sampleOf(code))
	}
	if shapeOf(o.Dialect, fault.InvalidArguments, true) != shapeOf(o.Dialect, fault.InvalidArguments, false) {
		d.refusal(all, o, "malformed", malformed("the body is not valid JSON in UTF-8 (at byte 17)"))
	}
	for status, r := range all {
		all[status] = d.share(shapeName(r)+status, r)
	}
	return all
}

// share keeps a response among the components and returns a reference to it,
// or to one like it but for the path in its examples.
func (d *document) share(name string, r *response) *response {
	for n, candidate := 1, name; ; n++ {
		if n > 1 {
			candidate = name + "Variant" + strconv.Itoa(n)
		}
		kept := d.Components.Responses[candidate]
		if kept == nil {
			d.Components.Responses[candidate] = r
			kept = r
		}
		if alike(kept, r) {
			return &response{Ref: "#/components/responses/" + candidate}
		}
	}
}

func alike(a, b *response) bool {
	if a.Description != b.Description || !maps.Equal(a.Headers, b.Headers) || len(a.Content) != len(b.Content) {
		return false
	}
	for mediaType, m := range a.Content {
		if m.Schema.Ref != b.Content[mediaType].Schema.Ref ||
			!slices.Equal(slices.Sorted(maps.Keys(m.Examples)), slices.Sorted(maps.Keys(b.Content[mediaType].Examples))) {
			return false
		}
	}
	return true
}

// shapeName names a response after what it carries.
func shapeName(r *response) string {
	for _, m := range r.Content {
		if m.Schema.Ref == "" {
			return "AnyProblem"
		}
		return m.Schema.Ref[strings.LastIndexByte(m.Schema.Ref, '/')+1:]
	}
	return "Empty"
}

// refusal adds one error to the answers, beside others of its status.
func (d *document) refusal(all map[string]*response, o *operation.Operation, name string, e *fault.Error) {
	written := refuse(o.Dialect, Prefix+samplePath(o), e)
	key := strconv.Itoa(written.status)
	r := all[key]
	if r == nil {
		r = &response{Description: meanings()[written.status], Headers: headersOf(o, written.status)}
		all[key] = r
	}
	if len(written.body) == 0 {
		r.Description += " The body is empty."
		return
	}
	if r.Content == nil {
		r.Content = map[string]media{}
	}
	schema := d.named.Refer(schemaName(shapeOf(o.Dialect, e.Code, e.Malformed)))
	m, known := r.Content[written.contentType]
	if !known {
		m = media{Schema: schema, Examples: map[string]example{}}
	} else if m.Schema.Ref != schema.Ref && m.Schema.AnyOf == nil {
		m.Schema = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{m.Schema, schema}}
	}
	m.Examples[name] = example{Summary: e.Detail, Value: written.body}
	r.Content[written.contentType] = m
}

func samplePath(o *operation.Operation) string {
	path, _ := o.Example()
	text := o.Path
	for i, name := range o.PathArgs() {
		text = strings.Replace(text, "{"+name+"}", path[i], 1)
	}
	return text
}

// schemaName names the component of a shape.
func schemaName(s shape) string {
	switch {
	case s.small:
		return "Error"
	case s.code && s.retryable:
		return "CodedRetryableProblem"
	case s.code:
		return "CodedProblem"
	case s.retryable:
		return "RetryableProblem"
	default:
		return "Problem"
	}
}

func problemSchemas() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{"Error": object(map[string]*jsonschema.Schema{
		"error":   {Type: "string", Description: "The status in words."},
		"message": {Type: "string", Description: "What is wrong and what to do."},
		"status":  {Type: "integer", Description: "The HTTP status."},
	}, "error", "message", "status")}
	for _, s := range []shape{{}, {code: true}, {retryable: true}, {code: true, retryable: true}} {
		all[schemaName(s)] = problemSchema(s)
	}
	return all
}

// problemSchema describes the problems of a shape. The members that only some of them have are optional.
func problemSchema(s shape) *jsonschema.Schema {
	schema := object(map[string]*jsonschema.Schema{})
	optional := func(name, kind, description string) *jsonschema.Schema {
		schema.Properties[name] = &jsonschema.Schema{Type: kind, Description: description}
		schema.PropertyOrder = append(schema.PropertyOrder, name)
		return schema.Properties[name]
	}
	required := func(name, kind, description string) {
		optional(name, kind, description)
		schema.Required = append(schema.Required, name)
	}
	required("type", "string", "Always about:blank.")
	required("title", "string", "The status in words.")
	required("status", "integer", "The HTTP status.")
	required("detail", "string", "What is wrong and what to do.")
	required("instance", "string", "The path of the request.")
	if s.code {
		required("code", "string", "Stable identifier of the kind of error.")
	}
	if s.retryable {
		required("retryable", "boolean", "Whether the same request may be sent again.")
	}
	optional("errors", "array", "With 400: every argument at fault.").Items = object(map[string]*jsonschema.Schema{
		"field":   {Type: "string", Description: "The argument, such as changes[1].setting."},
		"message": {Type: "string", Description: "What is wrong with it."},
	}, "field", "message")
	if s.code {
		optional("oldest", "string", "With cursor_expired: the cursor of the oldest event that is kept.")
		optional("approvalRequired", "boolean", "With confirmation_required: a person must approve the change first.")
		optional("approvalUrl", "string", "Where a person can allow the call: send the same again after that.").Format = "uri"
	}
	if s.code && s.retryable {
		optional("impact", "string", "With confirmation_required: the impact of the change now.").Enum = []any{"NORMAL", "HIGH"}
		optional("requiresConfirmation", "boolean", "With confirmation_required: whether the policy's name has to be typed.")
		optional("summary", "string", "With confirmation_required: the change and its devices now, for the person who approves it.")
	}
	return schema
}

func object(members map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: members, Required: required, PropertyOrder: required}
}

func sharedParameters() map[string]parameter {
	return map[string]parameter{
		"IdempotencyKey": {Name: "Idempotency-Key", In: "header",
			Schema: &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: new(operation.MaxKeyLength), Pattern: "^[!-~]+$"},
			Description: "Makes the request safe to repeat: within 24 hours the same key and body give the same answer, and nothing is " +
				"done again."},
		"Reason": {Name: noteFields.Reason, In: "header", Schema: &jsonschema.Schema{Type: "string", MaxLength: new(access.MaxReason),
			Pattern: operation.NotePattern(false)},
			Description: "Why the call is made, in the caller's words: kept with what it does. A company may require it."},
		"Ticket": {Name: noteFields.Ticket, In: "header", Schema: &jsonschema.Schema{Type: "string", MaxLength: new(access.MaxTicket),
			Pattern: operation.NotePattern(false)},
			Description: "The ticket that the call belongs to: kept like the reason."},
		"IfNoneMatch": {Name: "If-None-Match", In: "header", Schema: &jsonschema.Schema{Type: "string"},
			Description: "The ETag of an earlier answer: 304 if nothing has changed."},
	}
}

func sharedHeaders() map[string]parameter {
	text, number := &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "integer", Minimum: new(1.0)}
	return map[string]parameter{
		"X-Request-Id": {Description: "The id of the request in the service's logs: the caller's own if it is 1 to 64 letters, " +
			"digits and any of - _ . :", Schema: text},
		"Retry-After": {Description: "Seconds to wait.", Schema: number},
		"RateLimit": {Description: `What is left of the budget: "commands";r=<calls>;t=<seconds until it is whole again>.`,
			Schema: text},
		"RateLimit-Policy": {Description: `The budget: "commands";q=<calls>;w=<seconds>.`, Schema: text},
		"Idempotency-Replayed": {Description: "true: this is the stored answer of an earlier request with the same Idempotency-Key.",
			Schema: text},
		"ETag": {Description: "Validator of this answer, for If-None-Match.", Schema: text},
	}
}

// headersOf lists the headers that a program may want of an answer. Those of
// every answer are in the introduction: listed with each status, they would be
// most of a generated client.
func headersOf(o *operation.Operation, status int) map[string]parameter {
	var names []string
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusConflict && o.Effect != operation.Reading:
		names = append(names, "Retry-After")
	case status == http.StatusInternalServerError:
		names = append(names, "X-Request-Id")
	case status < http.StatusBadRequest && o.Method == http.MethodGet:
		names = append(names, "ETag")
	case status < http.StatusBadRequest && o.Effect != operation.Reading:
		names = append(names, "Idempotency-Replayed")
	}
	if o.Budget != operation.Free && (status < http.StatusBadRequest || status == http.StatusTooManyRequests) {
		names = append(names, "RateLimit", "RateLimit-Policy")
	}
	headers := map[string]parameter{}
	for _, name := range names {
		headers[name] = parameter{Ref: "#/components/headers/" + name}
	}
	return headers
}
