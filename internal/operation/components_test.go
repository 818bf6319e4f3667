package operation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// A component is named after its type, and after the package where the type's name does not begin with it.
func TestComponents_Names(t *testing.T) {
	t.Parallel()
	c := operation.NewComponents("#/")
	for want, typ := range map[string]reflect.Type{
		"#/ExplainLeft":    reflect.TypeFor[operation.ExplainLeft](),
		"#/FaultField":     reflect.TypeFor[fault.Field](),
		"#/URL":            reflect.TypeFor[url.URL](),
		"#/FaultFieldPage": reflect.TypeFor[operation.Page[fault.Field]](),
		"":                 reflect.TypeFor[struct{ A int }](),
	} {
		if got := c.Result(typ).Ref; got != want {
			t.Errorf("%s is %q, want %q", typ, got, want)
		}
	}
	if c.Schemas["FaultField"] == nil || c.Schemas["FaultField"].Properties["field"] == nil {
		t.Errorf("the schema of a field: %+v", c.Schemas["FaultField"])
	}
}

// located has an argument in each place.
type located struct {
	AssetID string `path:"assetId" doc:"The asset."`
	Size    int    `query:"size" rule:"default=20" doc:"Rows."`
	Filter  string `query:"filter" rule:"required" doc:"Filter."`
	Text    string `json:"text" rule:"required" doc:"Text."`
	Nested  change `json:"nested"`
}

// TestOperation_Parameters compares what stands outside the body, and in it.
func TestOperation_Parameters(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	operation.Define(&r, reboot, func(context.Context, operation.Call, located) (int, error) { return 0, nil })
	o := r.All()[0]
	got := ""
	for _, p := range o.Parameters() {
		got += fmt.Sprintf("%s in path %t required %t %q %s\n", p.Name, p.InPath, p.Required, p.Doc, written(t, p.Schema))
	}
	c := operation.NewComponents("#/")
	body := c.Body(o)
	expect.Equal(t, "an operation", expect.Values{"parameters": {got, `assetId in path true required true "The asset." {"type":"string"}
size in path false required false "Rows." {"default":20,"type":"integer"}
filter in path false required true "Filter." {"type":"string"}
`}, "body": {body.Ref, "#/RebootDeviceRequest"},
		"nested": {written(t, c.Schemas["RebootDeviceRequest"].Properties["nested"]),
			`{"anyOf":[{"$ref":"#/Operation_testChange"},{"type":"null"}]}`}})
}

// described has a rule of each kind that a schema says in another way to REST.
type described struct {
	Mode  string           `json:"mode" rule:"enum=A|B default=B" doc:"Mode."`
	Count int              `json:"count" rule:"min=1 max=9 default=3"`
	Time  string           `json:"time" rule:"time"`
	Day   string           `json:"day" rule:"required day"`
	Email string           `json:"email" rule:"email"`
	Any   operation.Object `json:"any"`
	Least string           `json:"least" rule:"required minchars=1 maxbytes=9"`
	Line  string           `json:"line" rule:"required notblank line"`
	Lines string           `json:"lines" rule:"required lines"`
	Ink   string           `json:"ink" rule:"required notblank"`
	App   string           `json:"app" rule:"required package"`
	Trim  string           `json:"trim" rule:"required trimmed notblank"`
}

// TestSchema_OfEachRule compares the description of each rule.
func TestSchema_OfEachRule(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	o := reboot
	o.Path = "/x"
	operation.Define(&r, o, func(context.Context, operation.Call, described) (int, error) { return 0, nil })
	const instant, day = `"description":"Must be a time such as 2026-10-01T00:00:00Z."`, `"description":"Must be a day such as 2026-10-01."`
	const email = `"description":"Must be a valid e-mail address."`
	const line = `{"type":"string","pattern":"^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$",` +
		`"description":"Must not be blank. Must not contain control characters."}`
	const lines = `{"type":"string","pattern":"^[^\\x00-\\x09\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$",` +
		`"description":"Must not contain control characters other than line breaks."}`
	const least = `{"type":"string","minLength":1,"maxLength":9,"description":"Must be at most 9 bytes of UTF-8."}`
	const trim = `{"type":"string","pattern":"^(\\S([\\s\\S]*\\S)?)?$",` +
		`"description":"Must not be blank. Must not begin or end with a space."}`
	for _, c := range []struct{ name, rest, tool string }{
		{"mode", `{"type":["string","null"],"enum":["A","B",null],"default":"B","description":"Mode."}`,
			`{"type":"string","enum":["A","B"],"description":"Mode. Default: B."}`},
		{"count", `{"type":["integer","null"],"minimum":1,"maximum":9,"default":3}`,
			`{"type":"integer","minimum":1,"maximum":9,"description":"Default: 3."}`},
		{"time", `{"type":["string","null"],"format":"date-time",` + instant + `}`,
			`{"type":"string","format":"date-time",` + instant + `}`},
		{"day", `{"type":"string","format":"date",` + day + `}`, `{"type":"string",` + day + `}`},
		{"email", `{"type":["string","null"],"format":"email",` + email + `}`, `{"type":"string",` + email + `}`},
		{"any", `{"type":["object","null"]}`, `{"type":"object"}`},
		{"least", least, least}, {"line", line, line}, {"lines", lines, lines}, {"trim", trim, trim},
		{"ink", `{"type":"string","pattern":"\\S","description":"Must not be blank."}`, ""},
		{"app", `{"type":"string","maxLength":255,` +
			`"pattern":"^[A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z][A-Za-z0-9_]*)+$"}`, ""},
	} {
		if c.tool == "" {
			c.tool = c.rest
		}
		rest, tool := r.All()[0].BodySchema().Properties[c.name], r.All()[0].InputSchema().Properties[c.name]
		expect.Equal(t, c.name, expect.Values{"rest": {written(t, rest), sorted(t, c.rest)},
			"tool": {written(t, tool), sorted(t, c.tool)}})
	}
}

// written is the JSON of a value with the members of objects in the order of their names.
func written(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return sorted(t, string(text))
}
