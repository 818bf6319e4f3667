package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	described "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
)

// A schema never promises more than the validator takes, and never less. What
// the validator refuses beyond the keywords of a schema stands in the
// description of the argument.
func TestSchemas_AgreeWithTheValidator(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	registry := whole(t).Rehearsal(func(context.Context, *operation.Operation, operation.Call) (any, error) {
		return nil, fault.New(fault.Refused, "reached")
	})
	kernel := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: now})
	check := validator{t: t, kernel: kernel, caller: access.Principal{
		Kind: access.APIKey, ID: "k", Permissions: access.All,
		Settings: access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true}}}
	for _, o := range registry.All() {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			check := check
			check.t = t
			check.tool(o)
			check.body(o)
			check.query(o)
		})
	}
}

// Null for an optional argument of a tool means that it is absent, and null for
// all arguments that there are none.
func TestTools_NullMeansAbsent(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	acme := env.Company("acme", servertest.Everything())
	assistant := servertest.WithKey(t, env.Start().PublicURL(), env.Key(acme, access.All))
	for _, arguments := range []string{`null`, `{}`, `{"status":null,"page":null,"sort":null}`} {
		assistant.Call("list_assets", arguments).OK(t, nil)
	}
	if e := assistant.Call("get_asset", `{"assetId":null}`).Failed(t); e.Code != "invalid_arguments" {
		t.Errorf("null for a required argument: %+v", e)
	}
}

// validator compares schemas with what the kernel makes of the same values.
type validator struct {
	t      *testing.T
	kernel *operation.Kernel
	caller access.Principal
}

// refused returns what the kernel refuses about the arguments; nil: nothing.
func (v validator) refused(o *operation.Operation, s operation.Source) *fault.Error {
	out := v.kernel.Run(v.t.Context(), o, v.caller, operation.Meta{}, s)
	if out.Fault != nil && out.Fault.Code == fault.InvalidArguments {
		return out.Fault
	}
	if !out.Reached {
		v.t.Fatalf("%s: the call ended before its handler: %v", o.Name, out.Fault)
	}
	return nil
}

// tool tries every value in every argument of the tool's flat object.
func (v validator) tool(o *operation.Operation) {
	schema := o.InputSchema()
	v.unpopular(schema)
	v.members(o, schema, o.FlatExample(), func(text []byte) operation.Source { return operation.Flat(text) })
}

// body tries every value in every member of the REST body.
func (v validator) body(o *operation.Operation) {
	if !o.HasBody() {
		return
	}
	path, body := o.Example()
	v.members(o, o.BodySchema(), body, func(text []byte) operation.Source { return &operation.Parts{Path: path, Body: text} })
}

func (v validator) members(o *operation.Operation, schema *described.Schema, example []byte, source func([]byte) operation.Source) {
	promise := v.compile(schema)
	for name, member := range schema.Properties {
		for _, value := range append(values(member), nil) {
			object := map[string]any{}
			if err := json.Unmarshal(example, &object); err != nil {
				v.t.Fatal(err)
			}
			object[name] = value
			text, err := json.Marshal(object)
			if err != nil {
				v.t.Fatal(err)
			}
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				v.t.Fatal(err)
			}
			invalid := promise.Validate(parsed)
			if value == nil && member.Type != "" && !slices.Contains(schema.Required, name) {
				invalid = nil // schemas of tools do not say that null means absent
			}
			v.agree(string(text), schema, invalid, v.refused(o, source(text)))
		}
	}
}

// query tries every text in every parameter of the query.
func (v validator) query(o *operation.Operation) {
	path, body := o.Example()
	parameters := &described.Schema{Properties: map[string]*described.Schema{}}
	for _, p := range o.Parameters() {
		if p.InPath {
			continue
		}
		promise := v.compile(p.Schema)
		p.Schema.Description = p.Doc
		parameters.Properties[p.Name] = p.Schema
		for _, value := range values(p.Schema) {
			text := fmt.Sprint(value)
			switch value.(type) {
			case []any, map[string]any, float64:
				continue
			case string:
				if p.Schema.Type != "string" {
					continue
				}
			case bool, int:
				switch p.Schema.Type {
				case "string":
					value = text
				case "array": // given once
					value = []any{text}
				}
			}
			refused := v.refused(o, &operation.Parts{Path: path, Body: body, Query: url.Values{p.Name: {text}}.Encode()})
			v.agree(p.Name+"="+text, parameters, promise.Validate(value), refused)
		}
	}
}

// agree fails the test unless both refuse, both accept, or the description of
// the argument at fault reports what the schema's keywords do not.
func (v validator) agree(given string, schema *described.Schema, invalid error, refused *fault.Error) {
	switch {
	case invalid != nil && refused == nil:
		v.t.Errorf("%s: accepted, but the schema refuses it: %v", given, invalid)
	case invalid == nil && refused != nil:
		for _, field := range refused.Fields {
			argument, _, _ := strings.Cut(strings.ReplaceAll(field.Field, "[", "."), ".")
			description := strings.ToLower(allText(schema.Properties[argument]))
			message, _, _ := strings.Cut(strings.ToLower(field.Message), ": ") // what follows is the value's
			if strings.HasPrefix(message, "must be one of ") {
				message = "must be one of" // the values of the one setting
			}
			if !strings.Contains(description, message) {
				v.t.Errorf("%s: the schema accepts it and its description does not say %q", given, field.Message)
			}
		}
	}
}

// allText is every description in the schema.
func allText(s *described.Schema) string {
	if s == nil {
		return ""
	}
	text := s.Description + " " + allText(s.Items)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		text += " " + allText(s.Properties[name])
	}
	return text
}

// unpopular refuses what some vendors of models do not take in a tool's schema.
func (v validator) unpopular(s *described.Schema) {
	if s == nil {
		return
	}
	for keyword, used := range map[string]bool{"anyOf": s.AnyOf != nil, "oneOf": s.OneOf != nil, "$ref": s.Ref != "",
		"several types": s.Types != nil,
		"writeOnly":     s.WriteOnly, "default": s.Default != nil, "format": s.Format != "" && s.Format != "date-time"} {
		if used {
			v.t.Errorf("not every model takes the keyword %s: %+v", keyword, s)
		}
	}
	v.unpopular(s.Items)
	for _, member := range s.Properties {
		v.unpopular(member)
	}
}

// compile compiles a schema whose patterns are ECMA 262's, where white space is
// Unicode's.
func (v validator) compile(schema *described.Schema) *jsonschema.Schema {
	v.t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		v.t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		const space = `\s\x0b\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
		pattern = strings.ReplaceAll(pattern, `[^\s`, `[^`+space)
		return regexp.Compile(strings.ReplaceAll(pattern, `\S`, `[^`+space+`]`))
	})
	if err := c.AddResource("s.json", parsed); err != nil {
		v.t.Fatal(err)
	}
	return c.MustCompile("s.json")
}

// values are instances on both sides of each border that the schema draws, and
// some of other types.
func values(s *described.Schema) []any {
	all := []any{true, 0, 1.5, "x", []any{}, map[string]any{}}
	switch {
	case s.Items != nil:
		element := values(s.Items)
		for _, e := range element {
			all = append(all, []any{e}, []any{e, e})
		}
		fit := fitting(s.Items)
		for _, n := range around(s.MinItems, s.MaxItems) {
			all = append(all, slices.Repeat([]any{fit}, n))
		}
		return append(all, []any{nil})
	case s.Properties != nil:
		for name, member := range s.Properties {
			for _, value := range append(values(member), nil) {
				object := fitting(s).(map[string]any)
				object[name] = value
				all = append(all, object)
			}
		}
		return append(all, fitting(s))
	case s.Minimum != nil || s.Maximum != nil || s.Type == "integer":
		for _, border := range []*float64{s.Minimum, s.Maximum} {
			if border != nil {
				all = append(all, int(*border)-1, int(*border), int(*border)+1)
			}
		}
		return append(all, -1, 1, 2.0, 1e300)
	}
	for _, value := range s.Enum {
		if text, ok := value.(string); ok {
			all = append(all, text, strings.ToLower(text), text+" ")
		}
	}
	for _, n := range around(s.MinLength, s.MaxLength) {
		all = append(all, strings.Repeat("x", n), strings.Repeat("é", n), "com."+strings.Repeat("x", max(0, n-4)))
	}
	for _, space := range []string{" ", "\t", "\n", "\r", "\x00", "\x1b", "\x7f", "\u0080", "\u0085", "\u00a0", "\u2003",
		"\u2028", "\u3000"} {
		all = append(all, space, space+"word", "word"+space, "two"+space+"words")
	}
	return append(all, "", "word", "com.example.app", "com", "a@b.example", "a@b", "Ops <a@b.example>", "0123456789",
		"enterprises/acme/x/1")
}

// around are the lengths at the borders, and beyond them.
func around(least, most *int) []int {
	lengths := []int{0, 1}
	if least != nil {
		lengths = append(lengths, max(0, *least-1), *least)
	}
	if most != nil {
		lengths = append(lengths, *most, *most+1)
	}
	return lengths
}

// fitting is an instance of the schema.
func fitting(s *described.Schema) any {
	switch {
	case s.Properties != nil:
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = fitting(s.Properties[name])
		}
		return object
	case s.Enum != nil:
		return s.Enum[0]
	case s.Pattern != "":
		return "com.example.app"
	case s.Type == "integer":
		return 1
	default:
		return "word"
	}
}
