package resttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
)

// Described checks the OpenAPI document of a registry: every schema in it is
// one, every example is valid by its schema, every operation is there with a
// success and its errors, bodies and results have names for generated clients,
// nothing refers to what is not there, and no component is unused.
func Described(t *testing.T, registry *operation.Registry) {
	t.Helper()
	text := rest.OpenAPI(registry, "https://muster.example")
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", parsed); err != nil {
		t.Fatal(err)
	}
	root := parsed.(map[string]any)
	for _, o := range registry.All() {
		place := []string{"paths", o.Path, strings.ToLower(o.Method)}
		described, ok := at(root, place...).(map[string]any)
		if !ok {
			t.Errorf("%s %s is not described", o.Method, o.Path)
			continue
		}
		w := walk{t, root, compiler}
		if described["requestBody"] != nil {
			body := append(slices.Clone(place), "requestBody", "content")
			w.content(body)
			w.isNamed(append(body, "application/json", "schema"))
		}
		responses := described["responses"].(map[string]any)
		for status, r := range responses {
			here := append(slices.Clone(place), "responses", status)
			if ref, shared := r.(map[string]any)["$ref"].(string); shared {
				here = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			}
			w.content(append(here, "content"))
		}
		for _, status := range []string{"401", "403", "429", "500"} {
			if responses[status] == nil {
				t.Errorf("%s has no %s", o.Name, status)
			}
		}
		success := slices.Sorted(maps.Keys(responses))[0]
		answer := append(slices.Clone(place), "responses", success, "content")
		if at(root, append(answer, "text/plain; charset=utf-8")...) == nil { // a text has no members
			w.isNamed(append(answer, "application/json", "schema"))
		}
	}
	used := map[string]bool{}
	references(t, root, root, used)
	unused(t, root, used)
}

// unused checks that something refers to every component.
func unused(t *testing.T, root map[string]any, used map[string]bool) {
	t.Helper()
	for kind, components := range root["components"].(map[string]any) {
		for name := range components.(map[string]any) {
			if kind != "securitySchemes" && !used["#/components/"+kind+"/"+name] {
				t.Errorf("nothing refers to components/%s/%s", kind, name)
			}
		}
	}
}

// isNamed checks that a schema is a component: a generator makes an anonymous
// type of any other.
func (w walk) isNamed(place []string) {
	w.t.Helper()
	if schema, _ := at(w.root, place...).(map[string]any); schema["$ref"] == nil {
		w.t.Errorf("%s is no reference to a component", pointer(place))
	}
}

// walk validates the examples below a place.
type walk struct {
	t        *testing.T
	root     map[string]any
	compiler *jsonschema.Compiler
}

// content checks each media type of a content object, if there is one.
func (w walk) content(place []string) {
	w.t.Helper()
	all, _ := at(w.root, place...).(map[string]any)
	for mediaType, m := range all {
		here := append(slices.Clone(place), mediaType)
		schema, err := w.compiler.Compile("openapi.json#" + pointer(append(here, "schema")))
		if err != nil {
			w.t.Errorf("%s: %v", pointer(here), err)
			continue
		}
		media := m.(map[string]any)
		values := map[string]any{}
		if media["example"] != nil {
			values["example"] = media["example"]
		}
		examples, _ := media["examples"].(map[string]any)
		for name, e := range examples {
			values[name] = e.(map[string]any)["value"]
		}
		if len(values) == 0 {
			w.t.Errorf("%s has no example", pointer(here))
		}
		for name, value := range values {
			shown, _ := json.Marshal(value)
			if bytes.Contains(shown, []byte(`"example"`)) {
				w.t.Errorf("%s: the example %s has a value that is no example: %s", pointer(here), name, shown)
			}
			if err := schema.Validate(value); err != nil {
				w.t.Errorf("%s: the example %s is not valid: %v\n%s", pointer(here), name, err, shown)
			}
		}
	}
}

// references checks that every $ref below a value leads somewhere, and notes it
// as used.
func references(t *testing.T, root map[string]any, value any, used map[string]bool) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			used[ref] = true
			if at(root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, inner := range v {
			references(t, root, inner, used)
		}
	case []any:
		for _, inner := range v {
			references(t, root, inner, used)
		}
	}
}

// at returns the value at a place, or nil.
func at(value any, place ...string) any {
	for _, name := range place {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// pointer writes a place as a JSON pointer in a URL's fragment.
func pointer(place []string) string {
	var b strings.Builder
	for _, name := range place {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
		fmt.Fprint(&b, "/", strings.NewReplacer("{", "%7B", "}", "%7D").Replace(name))
	}
	return b.String()
}
