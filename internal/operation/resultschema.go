package operation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Wired is a result, or a part of one, whose JSON has the shape of another
// type than its own. A map has the members of that type and others, whose values are
// those of the map.
type Wired interface{ Wire() reflect.Type }

// Typed is a value whose JSON has one of several types, by their names in JSON Schema.
type Typed interface{ Types() []string }

// Either is a result, or a part of one, whose JSON has one of several shapes. It is
// described as one object with the members of all, of which those that all have are required.
type Either interface{ Either() []reflect.Type }

// Plain is a result that REST answers as plain text.
type Plain interface{ PlainText() string }

// Enumerated is a string type that has only some values.
type Enumerated interface{ Values() []string }

// OutputSchema describes the result for tools, in one piece. Members carry
// their words in doc tags and their values in enum tags ("A|B"); a pointer
// without omitempty may be null.
//
// The values of an Enumerated type are left out: a model does not need
// every command type in the schema of every command.
func (o *Operation) OutputSchema() *jsonschema.Schema { return writer{to: forTools}.result(o.result) }

// ResultSchema describes the result for REST: with the values of Enumerated
// types and the examples of example tags, which are written as those of
// arguments. Named types become references to components, unless that is nil.
func (o *Operation) ResultSchema(components *Components) *jsonschema.Schema {
	return writer{forREST, components}.result(o.result)
}

// result describes a type as it is in JSON.
func (w writer) result(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[Timestamp]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(w.result(t.Elem()))
	case reflect.String:
		return w.text(t)
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
		}
		return &jsonschema.Schema{Type: "array", Items: w.result(t.Elem())}
	case reflect.Map:
		if wireOf(t) == t {
			return &jsonschema.Schema{Type: "object", AdditionalProperties: w.result(t.Elem())}
		}
		return w.named(t, func() *jsonschema.Schema {
			s := w.members(t)
			s.AdditionalProperties = w.result(t.Elem())
			return s
		})
	case reflect.Struct:
		if typed, ok := reflect.Zero(t).Interface().(Typed); ok {
			return &jsonschema.Schema{Types: typed.Types()}
		}
		return w.named(t, func() *jsonschema.Schema {
			if either, ok := reflect.Zero(t).Interface().(Either); ok {
				return w.either(either.Either())
			}
			return w.members(t)
		})
	default: // an interface: any value
		return &jsonschema.Schema{}
	}
}

func (w writer) members(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	w.addMembers(s, wireOf(t))
	return s
}

func (w writer) either(shapes []reflect.Type) *jsonschema.Schema {
	all := w.members(shapes[0])
	for _, shape := range shapes[1:] {
		other := w.members(shape)
		all.Required = slices.DeleteFunc(all.Required, func(name string) bool { return !slices.Contains(other.Required, name) })
		for _, name := range other.PropertyOrder {
			if all.Properties[name] == nil {
				all.Properties[name], all.PropertyOrder = other.Properties[name], append(all.PropertyOrder, name)
			}
		}
	}
	return all
}

// wireOf is the type whose members a struct or a map has in JSON.
func wireOf(t reflect.Type) reflect.Type {
	if wired, ok := reflect.Zero(t).Interface().(Wired); ok {
		return wired.Wire()
	}
	return t
}

func (w writer) text(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	enumerated, ok := reflect.Zero(t).Interface().(Enumerated)
	if !ok || w.to == forTools {
		return s
	}
	for _, value := range enumerated.Values() {
		s.Enum = append(s.Enum, value)
	}
	return w.named(t, func() *jsonschema.Schema { return s })
}

// addMembers adds the members that a struct has in JSON.
func (w writer) addMembers(s *jsonschema.Schema, t reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			w.addMembers(s, sf.Type)
			continue
		}
		if name == "-" || !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		s.Properties[name] = w.member(sf, optional)
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
}

func (w writer) member(sf reflect.StructField, optional bool) *jsonschema.Schema {
	typ := sf.Type
	if optional && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	member := w.result(typ)
	member.Description = sf.Tag.Get("doc")
	if values := sf.Tag.Get("enum"); values != "" {
		for value := range strings.SplitSeq(values, "|") {
			member.Enum = append(member.Enum, value)
		}
		if typ.Kind() == reflect.Pointer {
			member.Enum = append(member.Enum, nil)
		}
	}
	if text := sf.Tag.Get("example"); text != "" && w.to == forREST {
		member.Examples = []any{exampleValue(typ, text)}
	}
	return member
}

// exampleValue reads an example tag: text for a string, else JSON.
func exampleValue(t reflect.Type, text string) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		return text
	}
	return json.RawMessage(text)
}

// Timestamp is a time as answers write it: ISO 8601 in UTC, always with three
// decimals of a second, so that texts sort as the times do.
type Timestamp struct{ time.Time }

// instantLayout is RFC 3339 with milliseconds, which is what is stored.
const instantLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the text of i.
func (i Timestamp) MarshalJSON() ([]byte, error) {
	return i.UTC().AppendFormat(make([]byte, 0, len(instantLayout)+2), `"`+instantLayout+`"`), nil
}

// TimestampOf is t in an answer: null for the zero time, which means never or
// unknown.
func TimestampOf(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	return &Timestamp{t.UTC()}
}

// EncodeResult writes a result. One that writes itself, a page, does so by
// encoding/json, which need not read it all over again.
func EncodeResult(result any) ([]byte, error) {
	if m, ok := result.(json.Marshaler); ok {
		return m.MarshalJSON()
	}
	return json.Marshal(result)
}
