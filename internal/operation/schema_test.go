package operation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// plain has every rule that a schema can say.
type plain struct {
	ID      string   `path:"id" doc:"The id."`
	Text    string   `json:"text" rule:"required minchars=1 maxchars=5" doc:"Text."`
	Apps    []string `json:"apps" rule:"minitems=1 maxitems=2 package" doc:"Apps."`
	Exact   string   `json:"exact" rule:"enum=ON|OFF" doc:"Exact."`
	Count   *int     `json:"count" rule:"min=1 max=9" doc:"Count."`
	Line    string   `json:"line" rule:"line" doc:"Line."`
	Shown   string   `json:"shown" rule:"visible" doc:"Shown."`
	Lines   string   `json:"lines" rule:"notblank lines maxchars=5" doc:"Lines."`
	Trimmed string   `json:"trimmed" rule:"trimmed line minchars=2" doc:"Trimmed."`
	Around  string   `json:"around" rule:"trimmed" doc:"Around."`
	Flag    bool     `json:"flag" doc:"Flag."`
	Changes []leaf   `json:"changes" doc:"Changes."`
}

type leaf struct {
	Setting string `json:"setting" rule:"required" doc:"Setting."`
	Value   string `json:"value" rule:"notblank" doc:"Value."`
}

func schemaOf(t *testing.T, o *operation.Operation) *jsonschema.Schema {
	t.Helper()
	return compiled(t, o.InputSchema())
}

func compiled(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(ecma)
	if err := c.AddResource("s.json", parsed); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("s.json")
}

// ecma compiles a pattern as ECMA 262 reads it: there, white space is Unicode's.
func ecma(pattern string) (jsonschema.Regexp, error) {
	const space = `\s\x0b\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	pattern = strings.ReplaceAll(pattern, `[\s\S]`, `(?s:.)`)
	pattern = strings.ReplaceAll(pattern, `[^\s`, `[^`+space)
	return regexp.Compile(strings.ReplaceAll(pattern, `\S`, `[^`+space+`]`))
}

// dropNull takes the members out that are null, which the decoder takes for
// absent.
func dropNull(object map[string]any) {
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
	if changes, ok := object["changes"].([]any); ok {
		for _, change := range changes {
			if change, ok := change.(map[string]any); ok {
				dropNull(change)
			}
		}
	}
}

// agreement returns a check that the tool's schema and the decoder agree on an
// object without null, as far as a schema can say.
func agreement(t *testing.T) func(t interface {
	Helper()
	Fatalf(string, ...any)
}, object map[string]any) {
	o := operation.Operation{Name: "do_it", Method: "POST", Path: "/x/{id}", Needs: access.DevicesRead, Budget: operation.AfterValidation}
	var r operation.Registry
	operation.Define(&r, o, func(context.Context, operation.Call, plain) (int, error) { return 0, nil })
	schema := schemaOf(t, r.All()[0])
	return func(t interface {
		Helper()
		Fatalf(string, ...any)
	}, object map[string]any) {
		t.Helper()
		dropNull(object)
		body, err := json.Marshal(object)
		if err != nil {
			t.Fatalf("%v", err)
		}
		_, refused := echo[plain](o, operation.Flat(body))
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("%v", err)
		}
		invalid := schema.Validate(parsed)
		if (refused == nil) != (invalid == nil) {
			t.Fatalf("%s\ndecoder: %v\nschema: %v", body, refused, invalid)
		}
	}
}

func TestSchema_AgreesWithDecoder(t *testing.T) {
	t.Parallel()
	agree := agreement(t)
	rapid.Check(t, func(t *rapid.T) { agree(t, anyObject(4).Draw(t, "object")) })
}

// Every rule by itself, on both sides of its border.
func TestSchema_AgreesWithDecoderOnEachRule(t *testing.T) {
	t.Parallel()
	agree := agreement(t)
	values := []any{nil, true, false, -1, 0, 1, 9, 10, 2.5, 3.0, 1e300, "", " ", "a", "\u00a0", "\u2003", "a\tb", "a\nb", "\n", "a\r\nb",
		"a\x00b", "\x7f\x80", "\x9fa", " ab", "ab\u3000", "a b", "ab",
		"áéíóú", "áéíóúü", "ON", "on", "com.example.app",
		[]any{}, []any{strings.Repeat("a.", 127) + "b"}, []any{strings.Repeat("a.", 127) + "bc"}, []any{"a.b"}, []any{"a.b", "a.b"},
		[]any{"a.b", "a.b", "a.b"}, []any{"a"}, []any{1}, []any{nil},
		map[string]any{}, []any{map[string]any{}}, []any{map[string]any{"setting": ""}},
		[]any{map[string]any{"setting": "X", "value": " "}},
		[]any{map[string]any{"setting": "X", "value": "a"}}, []any{map[string]any{"setting": "X", "Value": "a"}},
		[]any{map[string]any{"setting": 1}}}
	for _, name := range []string{"id", "text", "apps", "exact", "count", "line", "lines", "trimmed", "around", "flag",
		"changes", "other", "Text"} {
		for _, value := range values {
			object := map[string]any{"id": "x", "text": "y"}
			agree(t, object)
			object[name] = value
			agree(t, object)
			delete(object, name)
			agree(t, object)
		}
	}
}

// anyObject draws objects that are nearly right: most names are declared and
// most values fit.
func anyObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		object := map[string]any{}
		if rapid.IntRange(0, 9).Draw(t, "right") > 0 {
			object["id"], object["text"] = "x", "y"
		}
		names := []string{"id", "text", "apps", "exact", "count", "flag", "changes", "setting", "value", "Text", "other"}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SampledFrom(names[:8]).Draw(t, "name")
			if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				name = rapid.SampledFrom(names).Draw(t, "odd name")
			}
			object[name] = fitting(name, depth-1).Draw(t, "value")
		}
		return object
	})
}

// fitting draws values for a member, now and then of another kind.
func fitting(name string, depth int) *rapid.Generator[any] {
	texts := rapid.SampledFrom([]any{"", " ", "a", "ON", "on", "com.example.app", "áéíóú", "áéíóúü", "x.y"})
	other := rapid.SampledFrom([]any{nil, true, 0, 1, 9, 10, 2.5, 3.0, "a", []any{}, map[string]any{}})
	var right *rapid.Generator[any]
	switch name {
	case "apps":
		apps := rapid.SampledFrom([]any{"com.example.app", "x.y", "a.b.c", "a.b", "b.c", "c.d", "d.e", "a"})
		right = rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(apps, 0, 3).Draw(t, "apps") })
	case "count":
		right = rapid.Custom(func(t *rapid.T) any { return rapid.IntRange(0, 10).Draw(t, "count") })
	case "flag":
		right = rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "flag") })
	case "changes":
		right = rapid.Custom(func(t *rapid.T) any {
			list := []any{}
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				change := map[string]any{"setting": "X"}
				if rapid.Bool().Draw(t, "value") {
					change["value"] = texts.Draw(t, "text")
				}
				if depth > 0 && rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
					change = anyObject(depth).Draw(t, "odd change")
				}
				list = append(list, change)
			}
			return list
		})
	default:
		right = texts
	}
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 7).Draw(t, "kind") == 0 {
			return other.Draw(t, "other")
		}
		return right.Draw(t, "right")
	})
}

type view struct {
	Name   string             `json:"name" doc:"Its name." example:"Pixel"`
	Kind   string             `json:"kind" enum:"A|B"`
	Maybe  *string            `json:"maybe" enum:"X|Y"`
	Seen   *time.Time         `json:"seen"`
	Extra  string             `json:"extra,omitempty"`
	Lately time.Time          `json:"lately,omitzero"`
	Labels []string           `json:"labels"`
	Values map[string]float64 `json:"values"`
	Report json.RawMessage    `json:"report"`
	Image  []byte             `json:"image"`
	Inner  struct {
		Deep int `json:"deep"`
	} `json:"inner"`
	hidden int
}

// A result, as it is marshalled, is valid by its own schema.
func TestSchema_ResultsFit(t *testing.T) {
	t.Parallel()
	full := view{Name: "n", Kind: "A", Maybe: new("X"), Seen: new(time.Now()), Extra: "e", Lately: time.Now(), Labels: []string{"l"},
		Values: map[string]float64{"v": 1.5}, Report: json.RawMessage(`{"a":[1]}`), Image: []byte{1}, hidden: 1}
	empty := view{Kind: "B", Labels: []string{}, Values: map[string]float64{}, Report: json.RawMessage(`null`), Image: []byte{}}
	page := operation.Page[view]{Content: []view{full, empty}, Request: operation.PageRequest{Size: 20}, Total: 2}
	reading := operation.Operation{Name: "read_it", Method: "GET", Path: "/x"}
	var r operation.Registry
	operation.Define(&r, reading, func(context.Context, operation.Call, struct{}) (operation.Page[view], error) { return page, nil })
	schema := r.All()[0].OutputSchema()
	for name, value := range map[string]any{"full": page, "none": operation.Page[view]{Request: operation.PageRequest{Size: 20}}} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled(t, schema).Validate(parsed); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	content := schema.Properties["content"].Items
	expect.Equal(t, "schema", expect.Values{"number of required members": {len(content.Required), 9},
		"description of name": {content.Properties["name"].Description, "Its name."},
		"values of maybe":     {len(content.Properties["maybe"].Enum), 3},
		"has hidden":          {content.Properties["hidden"] != nil, false}, "has Extra": {content.Properties["Extra"] != nil, false}})
}

func TestSchema_Descriptions(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	operation.Define(&r, writing, func(context.Context, operation.Call, everything) (int, error) { return 0, nil })
	schema := r.All()[0].InputSchema()
	for name, want := range map[string]string{
		"short":  "Must be at most 4 bytes of UTF-8.",
		"email":  "Must be a valid e-mail address.",
		"mode":   "Default: WPA.",
		"text":   "Some text. Must not be blank.",
		"hidden": "Needs secret.",
	} {
		t.Run(name, func(t *testing.T) {
			if got := schema.Properties[name].Description; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		})
	}
	if body := r.All()[0].BodySchema(); body.Properties["assetId"] != nil || schema.Properties["assetId"] == nil {
		t.Error("the body's schema has the path argument, or the tool's has not")
	}
	if s := r.All()[0].BodySchema().Properties["secret"]; !s.WriteOnly || s.Format != "password" ||
		!slices.Equal(s.Types, []string{"string", "null"}) {
		t.Errorf("secret in the body: %+v", s)
	}
	if s := schema.Properties["secret"]; s.WriteOnly || s.Format != "" || s.Types != nil || s.Description != "A secret." {
		t.Errorf("secret of the tool: %+v", s)
	}
}
