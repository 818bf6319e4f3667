package discovery_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// A second opinion: the same schemas as JSON Schema, for an independent
// validator. Both must agree on random documents.
func TestValidate_AgreesWithJSONSchema(t *testing.T) {
	t.Parallel()
	d := load(t)
	validator := compile(t)
	names := []string{"Policy", "Command", "EnrollmentToken", "Device", "Enterprise", "Operation"}
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "schema")
		value := drawSchema(t, validator.raw, name, 3)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		mine, other := d.Validate(name, text), validator.compiled[name].Validate(instance)
		if (mine == nil) != (other == nil) {
			t.Fatalf("%s %s\nhere:  %v\nthere: %v", name, text, mine, other)
		}
		verdicts[mine == nil]++
	})
	if verdicts[true] < 5 || verdicts[false] < 5 {
		t.Errorf("the documents were one-sided: %v", verdicts)
	}
}

type jsonValidator struct {
	raw      map[string]map[string]any
	compiled map[string]*jsonschema.Schema
}

func compile(t *testing.T) jsonValidator {
	t.Helper()
	text, err := os.ReadFile("androidmanagement-api.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Schemas map[string]map[string]any `json:"schemas"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	definitions := map[string]any{}
	for name, schema := range file.Schemas {
		definitions[name] = convert(schema)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schemas.json", map[string]any{"$defs": definitions}); err != nil {
		t.Fatal(err)
	}
	v := jsonValidator{raw: file.Schemas, compiled: map[string]*jsonschema.Schema{}}
	for name := range file.Schemas {
		compiled, err := compiler.Compile("schemas.json#/$defs/" + name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v.compiled[name] = compiled
	}
	return v
}

// convert turns a discovery schema into a JSON Schema.
func convert(s map[string]any) map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		return map[string]any{"$ref": "#/$defs/" + ref}
	}
	kind, _ := s["type"].(string)
	switch {
	case kind == "any":
		return map[string]any{}
	case kind == "object" && s["additionalProperties"] != nil && s["properties"] == nil:
		return map[string]any{"type": "object", "additionalProperties": convert(s["additionalProperties"].(map[string]any))}
	case kind == "object":
		properties := map[string]any{}
		members, _ := s["properties"].(map[string]any)
		for name, member := range members {
			properties[name] = map[string]any{"anyOf": []any{map[string]any{"type": "null"}, convert(member.(map[string]any))}}
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case kind == "array":
		return map[string]any{"type": "array", "items": convert(s["items"].(map[string]any))}
	case s["enum"] != nil:
		return map[string]any{"enum": s["enum"]}
	case kind == "integer":
		return map[string]any{"type": "integer", "minimum": -1 << 31, "maximum": 1<<31 - 1}
	case kind == "number":
		return map[string]any{"type": "number"}
	}
	out := map[string]any{"type": kind}
	switch s["format"] {
	case "int64":
		out["pattern"] = `^-?[0-9]{1,18}$`
	case "google-duration":
		out["pattern"] = `^-?[0-9]{1,9}(\.[0-9]{1,9})?s$`
	case "google-datetime":
		out["pattern"] = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`
	}
	return out
}

// drawSchema draws a value that fits a schema, or nearly.
func drawSchema(t *rapid.T, all map[string]map[string]any, name string, depth int) any {
	return draw(t, all, all[name], depth)
}

func draw(t *rapid.T, all map[string]map[string]any, s map[string]any, depth int) any {
	if rapid.IntRange(0, 60).Draw(t, "astray") == 0 {
		return rapid.SampledFrom([]any{nil, true, 1, 1.5, "x", []any{}, map[string]any{}, map[string]any{"x": 1}}).Draw(t, "odd")
	}
	if ref, ok := s["$ref"].(string); ok {
		return draw(t, all, all[ref], depth)
	}
	switch kind, _ := s["type"].(string); {
	case kind == "object":
		return drawObject(t, all, s, depth)
	case kind == "array":
		list := []any{}
		for range rapid.IntRange(0, min(depth, 2)).Draw(t, "length") {
			list = append(list, draw(t, all, s["items"].(map[string]any), depth-1))
		}
		return list
	case s["enum"] != nil:
		return rapid.SampledFrom(s["enum"].([]any)).Draw(t, "enum")
	case kind == "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case kind == "integer" || kind == "number":
		return rapid.SampledFrom([]any{0, -1, 7, 2147483647}).Draw(t, "number")
	case kind == "any":
		return rapid.SampledFrom([]any{1, "x", nil, []any{nil}}).Draw(t, "any")
	case s["format"] == "int64":
		return rapid.SampledFrom([]string{"0", "-5", "123456789012345678"}).Draw(t, "int64")
	case s["format"] == "google-duration":
		return rapid.SampledFrom([]string{"0s", "1.5s", "86400s"}).Draw(t, "duration")
	case s["format"] == "google-datetime":
		return rapid.SampledFrom([]string{"2026-11-21T10:00:00Z", "1999-01-01T00:00:00Z"}).Draw(t, "time")
	case s["format"] == "byte":
		return "aGk="
	default:
		return rapid.SampledFrom([]string{"", "x", "ä"}).Draw(t, "text")
	}
}

func drawObject(t *rapid.T, all map[string]map[string]any, s map[string]any, depth int) any {
	object := map[string]any{}
	if depth <= 0 {
		return object
	}
	members, _ := s["properties"].(map[string]any)
	if entries, ok := s["additionalProperties"].(map[string]any); ok && members == nil {
		object["key"] = draw(t, all, entries, depth-1)
		return object
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	if len(names) == 0 {
		return object
	}
	slices.Sort(names)
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		object[name] = draw(t, all, members[name].(map[string]any), depth-1)
	}
	return object
}
