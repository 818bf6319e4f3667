package rest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
	hooks "github.com/musterhq/muster/internal/webhook"
)

// sampleResult is an example of an operation's result: of a success, or with 1
// of an outcome that is not known.
func sampleResult(o *operation.Operation, which int) json.RawMessage {
	if which < len(o.Samples) {
		return encoded(o.Samples[which], "the sample of "+o.Name+" cannot be written")
	}
	var b bytes.Buffer
	writeSample(&b, o.ResultSchema(nil), "", []string{"", "UNCONFIRMED"}[which])
	return b.Bytes()
}

// writeSample writes a plausible value of a schema. seed, if not empty, is the
// value of a member status.
func writeSample(b *bytes.Buffer, s *jsonschema.Schema, name, seed string) {
	kind := s.Type
	if kind == "" && len(s.Types) > 0 {
		kind = s.Types[0] // null comes last
	}
	switch {
	case len(s.Examples) > 0:
		writeValue(b, s.Examples[0])
	case name == "status" && seed != "":
		writeValue(b, seed)
	case len(s.Enum) > 0:
		writeValue(b, s.Enum[0])
	case kind == "object":
		writeObject(b, s, seed)
	case kind == "array":
		b.WriteByte('[')
		writeSample(b, s.Items, strings.TrimSuffix(name, "s"), seed)
		b.WriteByte(']')
	case kind == "string":
		writeValue(b, sampleText(name, s.Format))
	case kind == "integer":
		writeValue(b, 1)
	case kind == "number":
		writeValue(b, 1.5)
	case kind == "boolean":
		writeValue(b, false)
	default:
		b.WriteString("{}")
	}
}

func writeObject(b *bytes.Buffer, s *jsonschema.Schema, seed string) {
	b.WriteByte('{')
	first := true
	for _, name := range s.PropertyOrder {
		// Optional members belong to special cases: detail to UNCONFIRMED alone,
		// which has no createdAt.
		if !slices.Contains(s.Required, name) && (name == "detail") != (seed != "") {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeValue(b, name)
		b.WriteByte(':')
		writeSample(b, s.Properties[name], name, seed)
	}
	b.WriteByte('}')
}

func sampleText(name, format string) string {
	switch {
	case format == "date-time":
		return "2026-11-21T09:30:00Z"
	case name == "assetId" || name == "pathName":
		return "enterprises/acme/assets/8k2v0r6m4q1x7t9c3w5y2n8b6d"
	case name == "policyId":
		return "enterprises/acme/policies/5h9j3f7p1s6z4g8a2e0k7m9q3v"
	case name == "proposalId":
		return "prp_7q2m9x4c6v1b8n3z5k0w4t6r2y"
	case strings.HasSuffix(name, "Url"):
		return "https://muster.example/policies/5h9j3f7p1s6z4g8a2e0k7m9q3v"
	case name == "detail":
		return "It may have been sent. Do not send it again; look at the command history."
	default:
		return "example"
	}
}

func writeValue(b *bytes.Buffer, v any) {
	text, _ := json.Marshal(v) // text, numbers and booleans: it cannot fail
	b.Write(text)
}

// termGroup are terms of one kind, which names in the interface stand for.
type termGroup struct {
	Title string
	Terms []term
}

type term struct{ Name, Help string }

// terms explains the names that calls, answers and refusals mention, in the words that the
// portal has for them.
func terms() []termGroup {
	rights, _ := account.Admin.Rights()
	return []termGroup{
		group("Permissions of keys and AI clients", access.Each(access.All), access.Permission.String, access.Permission.Help),
		group("Settings of the company", access.Gates(), func(g access.Gate) string { return string(g) }, access.Gate.Help),
		group("Roles of people", account.Roles(), func(r account.Role) string { return string(r) }, account.Role.Help),
		group("Rights of people", access.Each(rights), func(r account.Right) string { return r.Names()[0] }, account.Right.Help),
		group("Settings of a policy", policy.Catalog(), func(s policy.Setting) string { return s.ID },
			func(s policy.Setting) string { return s.Help }),
	}
}

// group explains what has names of one kind.
func group[T any](title string, all []T, name, help func(T) string) termGroup {
	return termGroup{title, slice.Map(all, func(one T) term { return term{name(one), help(one)} })}
}

// termText is all of them as Markdown.
func termText() string {
	var text strings.Builder
	for _, g := range terms() {
		text.WriteString("\n\n**" + g.Title + ".**\n")
		for _, t := range g.Terms {
			text.WriteString("\n- `" + t.Name + "`: " + t.Help)
		}
	}
	return text.String()
}

// webhook is a member of the document's webhooks: what the receiver of one type of event
// gets, and what it answers.
type webhook struct {
	Summary     string               `json:"summary"`
	Description string               `json:"description"`
	Tags        []string             `json:"tags"`
	Security    []map[string]any     `json:"security"`
	Body        *body                `json:"requestBody"`
	Responses   map[string]*response `json:"responses"`
}

// webhooks describes the events, by their types: the body that a receiver gets is the event
// as list_events has it. The event of a test is no part of a company's history, and has a
// schema of its own.
func (d *document) webhooks() map[string]map[string]*webhook {
	all := map[string]map[string]*webhook{}
	for _, kind := range event.Kinds() {
		all[string(kind.Type)] = d.webhook(kind.Type, kind.Text, reflect.TypeFor[event.View](), event.Sample(kind.Type))
	}
	all[string(hooks.Test)] = d.webhook(hooks.Test, hooks.TestText, reflect.TypeFor[hooks.TestView](), event.Sample(hooks.Test))
	return all
}

// webhook describes one type of event whose body has the schema of a Go type.
func (d *document) webhook(kind event.Type, text string, of reflect.Type, example event.View) map[string]*webhook {
	sample := encoded(example, "the event "+string(kind)+" cannot be described")
	return map[string]*webhook{"post": {
		Summary: string(kind), Description: text, Tags: []string{tagEvents}, Security: []map[string]any{},
		Body:      &body{Required: true, Content: map[string]media{jsonType: {Schema: d.named.Result(of), Example: sample}}},
		Responses: map[string]*response{"2XX": {Description: "The receiver has taken the event."}},
	}}
}
