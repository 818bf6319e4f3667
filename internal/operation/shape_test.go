package operation_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

type color string

func (color) Values() []string { return []string{"RED", "BLUE"} }

type base struct {
	ID string `json:"id" doc:"The id."`
}

type anything struct{}

func (anything) Types() []string { return []string{"string", "null"} }

type oneOf struct{}

func (oneOf) Either() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[base](), reflect.TypeFor[struct {
		ID    string `json:"id"`
		Count int    `json:"count"`
	}]()}
}

type extended map[string]int

func (extended) Wire() reflect.Type { return reflect.TypeFor[base]() }

type members struct {
	base
	Named  int     `json:"n"`
	Plain  int     // its name is the member's
	Hidden string  `json:"-"`
	Maybe  *int    `json:"maybe,omitempty"`
	Zero   int     `json:"zero,omitzero"`
	Kind   *string `json:"kind" enum:"A|B"`
	Sample string  `json:"sample" example:"one"`
	Tries  *int    `json:"tries" example:"2"`
	Word   *string `json:"word" example:"two"`
	Inner  base    // its name is the member's
}

// wrapped is a result with one member, and shaped is an operation with that result.
type wrapped[T any] struct {
	Value T `json:"v"`
}

func shaped[T any]() *operation.Operation {
	var r operation.Registry
	operation.Define(&r, operation.Operation{Name: "read", Method: "GET", Path: "/x", Needs: access.DevicesRead},
		func(context.Context, operation.Call, struct{}) (wrapped[T], error) { return wrapped[T]{}, nil })
	return r.All()[0]
}

// TestSchema_OfEachShape compares the description of each shape that a result can have.
func TestSchema_OfEachShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		o           *operation.Operation
		tools, rest string // of the member v; rest empty: the same
	}{
		{"text", shaped[string](), `{"type":"string"}`, ""},
		{"values", shaped[color](), `{"type":"string"}`, `{"type":"string","enum":["RED","BLUE"]}`},
		{"number", shaped[int](), `{"type":"integer"}`, ""},
		{"fraction", shaped[float64](), `{"type":"number"}`, ""},
		{"truth", shaped[bool](), `{"type":"boolean"}`, ""},
		{"time", shaped[time.Time](), `{"type":"string","format":"date-time"}`, ""},
		{"timestamp", shaped[operation.Timestamp](), `{"type":"string","format":"date-time"}`, ""},
		{"JSON", shaped[json.RawMessage](), `true`, ""},
		{"any", shaped[any](), `true`, ""},
		{"may be null", shaped[*string](), `{"type":["string","null"]}`, ""},
		{"bytes", shaped[[]byte](), `{"type":"string","contentEncoding":"base64"}`, ""},
		{"list", shaped[[]int](), `{"type":"array","items":{"type":"integer"}}`, ""},
		{"map", shaped[map[string]int](), `{"type":"object","additionalProperties":{"type":"integer"}}`, ""},
		{"map with members", shaped[extended](),
			`{"type":"object","properties":{"id":{"type":"string","description":"The id."}},"required":["id"],"additionalProperties":{"type":"integer"}}`, ""},
		{"several types", shaped[anything](), `{"type":["string","null"]}`, ""},
		{"several shapes", shaped[oneOf](),
			`{"type":"object","properties":{"id":{"type":"string","description":"The id."},"count":{"type":"integer"}},"required":["id"]}`,
			""},
		{"members", shaped[members](),
			`{"type":"object","properties":{"id":{"type":"string","description":"The id."},"n":{"type":"integer"},"Plain":{"type":"integer"},"maybe":{"type":"integer"},` +
				`"zero":{"type":"integer"},"kind":{"type":["string","null"],"enum":["A","B",null]},"sample":{"type":"string"},"tries":{"type":["integer","null"]},` +
				`"word":{"type":["string","null"]},"Inner":{"type":"object","properties":{"id":{"type":"string","description":"The id."}},"required":["id"]}},` +
				`"required":["id","n","Plain","kind","sample","tries","word","Inner"]}`,
			`{"type":"object","properties":{"id":{"type":"string","description":"The id."},"n":{"type":"integer"},"Plain":{"type":"integer"},"maybe":{"type":"integer"},` +
				`"zero":{"type":"integer"},"kind":{"type":["string","null"],"enum":["A","B",null]},"sample":{"type":"string","examples":["one"]},"tries":{"type":["integer","null"],"examples":[2]},` +
				`"word":{"type":["string","null"],"examples":["two"]},` +
				`"Inner":{"type":"object","properties":{"id":{"type":"string","description":"The id."}},"required":["id"]}},` +
				`"required":["id","n","Plain","kind","sample","tries","word","Inner"]}`},
	} {
		if c.rest == "" {
			c.rest = c.tools
		}
		for what, s := range map[string][2]any{"tools": {c.o.OutputSchema().Properties["v"], c.tools},
			"rest": {c.o.ResultSchema(nil).Properties["v"], c.rest}} {
			got, err := json.Marshal(s[0])
			if err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, c.name+" for "+what, expect.Values{"schema": {sorted(t, string(got)), sorted(t, s[1].(string))}})
		}
	}
}

// sorted is JSON with the members of objects in the order of their names.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if s, ok := value.(map[string]any); ok {
		if required, ok := s["required"].([]any); ok {
			slices.SortFunc(required, func(a, b any) int { return slices.Compare([]string{a.(string)}, []string{b.(string)}) })
		}
	}
	again, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(again)
}
