package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
)

// OpenAPI describes the registry as an OpenAPI 3.1 document, from the same
// declarations that serve it. publicURL is the service's address, without
// Prefix; empty for a document whose server is relative.
func OpenAPI(registry *operation.Registry, publicURL string) []byte {
	text, err := json.MarshalIndent(describe(registry, publicURL), "", "  ")
	if err != nil {
		panic("the registry cannot be described: " + err.Error()) // at start, and in the golden's test
	}
	return append(text, '\n')
}

// The parts of an OpenAPI document that we use.
type (
	document struct {
		OpenAPI    string                           `json:"openapi"`
		Info       info                             `json:"info"`
		Servers    []server                         `json:"servers"`
		Security   []map[string][]string            `json:"security"`
		Tags       []tag                            `json:"tags"`
		Paths      map[string]map[string]*described `json:"paths"`
		Webhooks   map[string]map[string]*webhook   `json:"webhooks"`
		Components components                       `json:"components"`

		named  *operation.Components // the schemas of named types
		common map[string]int        // how many operations take a parameter, by its JSON
	}
	info struct {
		Title       string            `json:"title"`
		Version     string            `json:"version"`
		Summary     string            `json:"summary"`
		Description string            `json:"description"`
		License     map[string]string `json:"license"`
	}
	server struct {
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	tag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	described struct {
		OperationID string               `json:"operationId"`
		Tags        []string             `json:"tags"`
		Summary     string               `json:"summary"`
		Description string               `json:"description"`
		Parameters  []parameter          `json:"parameters,omitempty"`
		Body        *body                `json:"requestBody,omitempty"`
		Responses   map[string]*response `json:"responses"`
		Permissions []string             `json:"x-permissions"`
		Setting     string               `json:"x-company-setting,omitempty"`
		Effect      string               `json:"x-effect"`
		Budget      string               `json:"x-budget,omitempty"`

		operation *operation.Operation
	}
	parameter struct {
		Ref         string             `json:"$ref,omitempty"`
		Name        string             `json:"name,omitempty"`
		In          string             `json:"in,omitempty"`
		Required    bool               `json:"required,omitempty"`
		Description string             `json:"description,omitempty"`
		Schema      *jsonschema.Schema `json:"schema,omitempty"`
	}
	body struct {
		Required bool             `json:"required"`
		Content  map[string]media `json:"content"`
	}
	media struct {
		Schema   *jsonschema.Schema `json:"schema"`
		Example  json.RawMessage    `json:"example,omitempty"`
		Examples map[string]example `json:"examples,omitempty"`
	}
	example struct {
		Summary string          `json:"summary,omitempty"`
		Value   json.RawMessage `json:"value"`
	}
	response struct {
		Ref         string               `json:"$ref,omitempty"`
		Description string               `json:"description,omitempty"`
		Headers     map[string]parameter `json:"headers,omitempty"`
		Content     map[string]media     `json:"content,omitempty"`
	}
	components struct {
		Schemas         map[string]*jsonschema.Schema `json:"schemas"`
		Responses       map[string]*response          `json:"responses"`
		Parameters      map[string]parameter          `json:"parameters"`
		Headers         map[string]parameter          `json:"headers"`
		SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
	}
)

const keyScheme = "apiKey"

// describe makes the document: first it counts which parameters operations share, then it
// describes each operation under its path and method.
func describe(registry *operation.Registry, publicURL string) *document {
	named := operation.NewComponents("#/components/schemas/")
	maps.Copy(named.Schemas, problemSchemas())
	d := &document{
		named: named, common: map[string]int{},
		OpenAPI: "3.1.0",
		Info: info{
			Title: "Muster", Version: "1", Summary: "Manage Android devices: inventory, commands, policies, enrollment.",
			Description: introduction + termText(), License: map[string]string{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
		},
		Servers:  []server{{URL: publicURL + Prefix, Description: "This service"}},
		Security: []map[string][]string{{keyScheme: {}}},
		Tags:     tags(),
		Paths:    map[string]map[string]*described{},
		Components: components{
			Schemas: named.Schemas, Responses: map[string]*response{}, Parameters: sharedParameters(), Headers: sharedHeaders(),
			SecuritySchemes: map[string]map[string]string{keyScheme: {
				"type": "apiKey", "in": "header", "name": "X-API-Key",
				"description": "An API key of the company, mk_…; made by an administrator. An Authorization header is ignored.",
			}},
		},
	}
	for _, o := range registry.All() {
		for _, p := range o.Parameters() {
			d.common[identity(asParameter(p))]++
		}
	}
	for _, o := range registry.All() {
		if d.Paths[o.Path] == nil {
			d.Paths[o.Path] = map[string]*described{}
		}
		d.Paths[o.Path][strings.ToLower(o.Method)] = d.operation(o)
	}
	d.Webhooks = d.webhooks()
	return d
}

// operation describes one operation with its parameters, body and answers.
func (d *document) operation(o *operation.Operation) *described {
	x := &described{
		OperationID: o.Name, Tags: []string{tagOf(o)}, Summary: o.Title, Description: o.Description,
		Responses: d.refusals(o), Permissions: o.Needs.Names(), Setting: string(o.Gate),
		Effect: effects()[o.Effect], Budget: budgets()[o.Budget], operation: o,
	}
	for _, p := range o.Parameters() {
		x.Parameters = append(x.Parameters, d.parameter(asParameter(p)))
	}
	shared := []string{"IfNoneMatch"}
	switch {
	case o.Budget == operation.Apart:
		shared = []string{"Reason", "Ticket"} // of the call that is explained
	case o.Effect != operation.Reading:
		shared = []string{"IdempotencyKey", "Reason", "Ticket"}
	}
	for _, name := range shared {
		x.Parameters = append(x.Parameters, parameter{Ref: "#/components/parameters/" + name})
	}
	if o.HasBody() {
		_, sample := o.Example()
		x.Body = &body{Required: !o.BodyOptional, Content: map[string]media{jsonType: {Schema: d.named.Body(o), Example: sample}}}
	}
	d.successes(o, x.Responses)
	return x
}

func asParameter(p operation.Parameter) parameter {
	in := "query"
	if p.InPath {
		in = "path"
	}
	return parameter{Name: p.Name, In: in, Required: p.Required, Description: p.Doc, Schema: p.Schema}
}

// identity is the JSON of a parameter: equal parameters have the same.
func identity(p parameter) string {
	return string(encoded(p, "the parameter "+p.Name+" cannot be described"))
}

// encoded is a value as JSON. It panics with the text if there is none: at start, and in the golden's test.
func encoded(value any, text string) json.RawMessage {
	written, err := json.Marshal(value)
	if err != nil {
		panic(text + ": " + err.Error())
	}
	return written
}

// parameter describes once what several operations take alike, unless another
// parameter has that name.
func (d *document) parameter(p parameter) parameter {
	name := strings.ToUpper(p.Name[:1]) + p.Name[1:]
	kept, known := d.Components.Parameters[name]
	switch {
	case d.common[identity(p)] == 1, known && identity(kept) != identity(p):
		return p
	case !known:
		d.Components.Parameters[name] = p
	}
	return parameter{Ref: "#/components/parameters/" + name}
}

// plainSample is an example of an answer in plain text, as JSON.
const plainSample = `"2026-11-21T09:30:00Z INFO command ended: REBOOT DONE\n"`

// successes adds the answers of a call that went well.
func (d *document) successes(o *operation.Operation, to map[string]*response) {
	content := func(which int) map[string]media {
		if o.Plain() {
			return map[string]media{plainType: {Schema: &jsonschema.Schema{Type: "string"}, Example: json.RawMessage(plainSample)}}
		}
		return map[string]media{jsonType: {Schema: o.ResultSchema(d.named), Example: sampleResult(o, which)}}
	}
	code, text := edge.Success(o.Created), "Done or accepted: see the result."
	switch {
	case o.Created:
		text = "Created."
	case o.Effect == operation.Reading:
		text = "The result."
	case o.Unconfirmed:
		text = "The command was created and queued; its status stays IN_PROGRESS until the device confirms. Follow it in the device's " +
			"command history."
	}
	to[strconv.Itoa(code)] = &response{Description: text, Headers: headersOf(o, code), Content: content(0)}
	if o.Unconfirmed {
		to[strconv.Itoa(http.StatusAccepted)] = &response{
			Description: "UNCONFIRMED: it is not known whether the command was sent. This is not an error. Do not send it again: read " +
				"the command history, and ask the user first.",
			Headers: headersOf(o, http.StatusAccepted), Content: content(1),
		}
	}
	if o.Method == http.MethodGet {
		to[strconv.Itoa(http.StatusNotModified)] = &response{Description: "Not changed since the answer with the given ETag.",
			Headers: headersOf(o, http.StatusNotModified)}
	}
}

const (
	tagAssets     = "Assets"
	tagCommands   = "Device commands"
	tagPolicies   = "Policies"
	tagEnrollment = "Enrollment"
	tagEvents     = "Events"
	tagForesight  = "Foresight"
)

func tags() []tag {
	return []tag{
		{tagAssets, "The inventory: what there is, and what is known of it."},
		{tagCommands, "Commands to one device at a time, and their history."},
		{tagPolicies, "Policies, and changes to them in two steps: propose, let a person review, apply."},
		{tagEnrollment, "QR codes that enroll new or factory-reset devices."},
		{tagEvents, "What happened, in order."},
		{tagForesight, "What a call would be answered, without making it."},
	}
}

func tagOf(o *operation.Operation) string {
	switch {
	case strings.Contains(o.Path, "/commands"):
		return tagCommands
	case o.Dialect == operation.Provisioning:
		return tagEnrollment
	case o.Budget == operation.Apart:
		return tagForesight
	case strings.HasPrefix(o.Path, "/events"):
		return tagEvents
	case strings.HasPrefix(o.Path, "/assets"):
		return tagAssets
	default:
		return tagPolicies
	}
}

func effects() map[operation.Effect]string {
	return map[operation.Effect]string{operation.Reading: "reads", operation.Writing: "writes", operation.Destroying: "destroys"}
}

func budgets() map[operation.Budget]string {
	return map[operation.Budget]string{
		operation.BeforeValidation: "counted before validation, for keys with DEVICES_COMMAND",
		operation.AfterValidation:  "counted after permission checks and validation",
		operation.Apart:            "an allowance of its own",
	}
}

const introduction = `REST interface of the device management service.

**Addresses.** An id in a path is a short id, a path name with its slashes escaped, or a path name as it is: ` + "`/assets/8k2v…`, " +
	"`/assets/enterprises%2Facme%2Fassets%2F8k2v…`, `/assets/enterprises/acme/assets/8k2v…`" + `. Ids of other companies answer 404.

**Bodies** are one JSON object in UTF-8. Member names are exact; unknown names and names given twice are refused. null for an optional member means that it is absent. A command without a body takes none, or ` + "`{}`" + `.

**Headers.** Every answer carries ` + "`X-Request-Id`" +
	`, the request's id in the service's logs. Commands, proposals, applies and QR codes share a budget of ten calls a minute for each key: the answers to calls that were counted carry ` + "`RateLimit` and `RateLimit-Policy`" + `, as does the 429 of a call for which nothing is left. Repetitions, and calls that were refused before they counted, have neither. 429 says in ` + "`Retry-After`" + ` how long to wait. Reads have a limit of their own, which the operator sets.

**Idempotency-Key.** Any POST or PATCH that changes something may carry one; a POST that changes nothing ignores it. ` +
	`The same key and body again, within 24 hours, give the stored answer with ` +
	"`Idempotency-Replayed: true`" + `, send nothing and spend nothing.

**Errors** are problem details (RFC 9457), except where an operation says otherwise. ` + "`code`" + ` is stable; ` + "`retryable`" +
	` says whether the same request may be sent again.`
