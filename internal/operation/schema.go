package operation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/musterhq/muster/internal/phrase"
)

// dialect is for whom a schema of arguments is written.
type dialect int

const (
	// forREST uses every keyword that helps.
	forREST dialect = iota
	// forTools leaves out what the vendors of models refuse in a tool's schema:
	// formats other than date-time, writeOnly, default and lists of types. The
	// descriptions say it instead.
	forTools
)

// InputSchema describes the arguments as one flat, closed object, as MCP takes
// them. What a schema cannot say is said in the descriptions.
func (o *Operation) InputSchema() *jsonschema.Schema {
	return o.args.schema(writer{to: forTools}, toolArguments)
}

// BodySchema describes the members of a REST body: a closed object.
func (o *Operation) BodySchema() *jsonschema.Schema {
	return o.args.schema(writer{to: forREST}, bodyArguments)
}

// Parameter is an argument that REST takes from the path or the query.
type Parameter struct {
	Name     string
	InPath   bool // else in the query
	Required bool
	Doc      string
	Schema   *jsonschema.Schema
}

// Parameters lists the arguments that are not members of the body.
func (o *Operation) Parameters() []Parameter {
	var list []Parameter
	for i := range o.args.fields {
		f := &o.args.fields[i]
		if f.place == inBody {
			continue
		}
		schema := f.schema(writer{to: forREST}, o.args.rules)
		doc := schema.Description
		schema.Description = ""
		list = append(list, Parameter{Name: f.name, InPath: f.place == inPath, Required: f.rule.required, Doc: doc, Schema: schema})
	}
	return list
}

// schema describes the fields that are wanted.
func (p *plan) schema(w writer, wanted argumentSet) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: closed()}
	for i := range p.fields {
		f := &p.fields[i]
		if !wanted.has(f) {
			continue
		}
		member := f.schema(w, p.rules)
		switch {
		case f.rule.required:
			s.Required = append(s.Required, f.name)
		case w.to == forREST: // null means that the member is absent
			member = nullable(member)
		}
		s.Properties[f.name] = member
		s.PropertyOrder = append(s.PropertyOrder, f.name)
	}
	return s
}

// closed is the schema that nothing matches: JSON Schema's false.
func closed() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func (f *field) schema(w writer, rules []Rule) *jsonschema.Schema {
	s := f.shape.schema(w, &f.rule)
	s.Description = f.doc
	words := f.rule.words(w.to)
	for _, rule := range rules {
		if rule.Field == f.name {
			words = append(words, phrase.UpperFirst(rule.Text)+".")
		}
	}
	if len(words) > 0 {
		s.Description = strings.TrimSpace(s.Description + " " + strings.Join(words, " "))
	}
	if f.rule.hasFallback && w.to == forREST {
		s.Default = json.RawMessage(f.rule.fallback)
		if f.shape.kind == reflect.String {
			s.Default = json.RawMessage(strconv.Quote(f.rule.fallback))
		}
	}
	return s
}

// words lists the rules that a schema of the dialect has no keyword for, or that
// only a pattern says.
func (r *rule) words(to dialect) []string {
	var words []string
	say := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(r.maxBytes > 0, "Must be at most %d bytes of UTF-8.", r.maxBytes)
	say(r.notblank, "Must not be blank.")
	say(r.trimmed, "Must not begin or end with a space.")
	say(r.visible, "Must have %s.", visibleWords)
	say(r.controls != anyControls, "Must not contain %s.", r.controls.words())
	say(r.email, "Must be a valid e-mail address.")
	say(r.time, "Must be a time such as 2026-10-01T00:00:00Z.")
	say(r.day, "Must be a day such as 2026-10-01.")
	say(r.secret && to == forTools, "A secret.")
	say(r.hasFallback && to == forTools, "Default: %s.", r.fallback)
	return words
}

func (s *shape) schema(w writer, r *rule) *jsonschema.Schema {
	switch s.kind {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int64:
		return &jsonschema.Schema{Type: "integer", Minimum: float(r.min), Maximum: float(r.max)}
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: s.elem.schema(w, r), MinItems: limit(r.minItems), MaxItems: limit(r.maxItems)}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object"}
	case reflect.Struct:
		return w.named(s.plan.typ, func() *jsonschema.Schema { return s.plan.schema(w, allArguments) })
	default: // a text
	}
	text := &jsonschema.Schema{Type: "string", MinLength: limit(r.minChars), Pattern: r.pattern(),
		// No text has more characters than bytes.
		MaxLength: limit(cmp.Or(r.maxChars, r.maxBytes))}
	for _, value := range r.enum {
		text.Enum = append(text.Enum, value)
	}
	switch {
	case r.time:
		text.Format = "date-time"
	case w.to != forREST:
	case r.day:
		text.Format = "date"
	case r.email:
		text.Format = "email"
	case r.secret:
		text.Format, text.WriteOnly = "password", true
	}
	return text
}

func limit(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// nullable lets null through beside what s describes.
func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case s.Ref != "":
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	case s.Type != "":
		s.Types, s.Type = []string{s.Type, "null"}, ""
		if s.Enum != nil {
			s.Enum = append(s.Enum, nil)
		}
	}
	return s // without a type it is any value: null already among them
}
