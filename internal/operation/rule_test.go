package operation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// ruled has rules by themselves.
type ruled struct {
	Shown string   `json:"shown" rule:"visible"`
	Some  string   `json:"some" rule:"minchars=1"`
	Few   string   `json:"few" rule:"minchars=2 maxchars=3"`
	Bytes string   `json:"bytes" rule:"maxbytes=4"`
	Line  string   `json:"line" rule:"line"`
	Lines string   `json:"lines" rule:"lines"`
	Trim  string   `json:"trim" rule:"trimmed"`
	Time  string   `json:"time" rule:"time"`
	Day   string   `json:"day" rule:"day"`
	Low   int      `json:"low" rule:"min=3"`
	High  int      `json:"high" rule:"max=3"`
	Least []string `json:"least" rule:"minitems=2"`
	Most  []string `json:"most" rule:"maxitems=1"`
	Any   int      `json:"any"`
	Small int32    `json:"small"`
}

// TestDecode_EachRule compares what is said of a value on each side of the border of a rule.
func TestDecode_EachRule(t *testing.T) {
	t.Parallel()
	const shown = "must have a character that can be seen, and none that changes the direction of text"
	const instant, day, integer = "must be a time such as 2026-10-01T00:00:00Z", "must be a day such as 2026-10-01", "must be an integer"
	taking := writing
	taking.Path = "/do"
	for _, c := range []struct{ name, value, want string }{
		{"shown", `"a"`, ""}, {"shown", `"\u200b"`, shown}, {"shown", `"a\u202eb"`, shown},
		{"some", `"a"`, ""}, {"some", `""`, "must not be empty"},
		{"few", `"éé"`, ""}, {"few", `"é"`, "must be at least 2 characters"},
		{"few", `"ééé"`, ""}, {"few", `"éééé"`, "must be at most 3 characters"},
		{"bytes", `"éé"`, ""}, {"bytes", `"ééé"`, "must be at most 4 bytes of UTF-8"},
		{"line", `"a b"`, ""}, {"line", `"a\nb"`, "must not contain control characters"},
		{"lines", `"a\r\nb"`, ""}, {"lines", `"a\tb"`, "must not contain control characters other than line breaks"},
		{"trim", `"a b"`, ""}, {"trim", `"a "`, "must not begin or end with a space"},
		{"time", `"2026-10-01T00:00:00Z"`, ""}, {"time", `"2026-10-01"`, instant},
		{"day", `"2026-10-01"`, ""}, {"day", `"2026-10-01T00:00:00Z"`, day}, {"day", `"2026-02-29"`, day},
		{"low", `3`, ""}, {"low", `2`, "must be at least 3"}, {"high", `3`, ""}, {"high", `4`, "must be at most 3"},
		{"least", `["a","b"]`, ""}, {"least", `["a"]`, "must have at least 2 entries"},
		{"most", `["a"]`, ""}, {"most", `["a","b"]`, "must have at most 1 entry"},
		{"any", `9007199254740992.0`, ""}, {"any", `9007199254740994.0`, integer}, {"any", `-9007199254740994.0`, integer},
		{"small", `2147483647`, ""}, {"small", `2147483648`, integer},
	} {
		_, err := echo[ruled](taking, operation.Flat(`{"`+c.name+`":`+c.value+`}`))
		var want []fault.Field
		if c.want != "" {
			want = []fault.Field{{Field: c.name, Message: c.want}}
		}
		expect.Equal(t, c.name+" of "+c.value, expect.Values{"at fault": {of(err).Fields, want}})
	}
}

// TestDecode_Details compares what is said of a text that is not one object, of REST and of a tool.
func TestDecode_Details(t *testing.T) {
	t.Parallel()
	const syntax = "the body is not valid JSON in UTF-8 (at byte %d)"
	for _, c := range []struct{ text, want string }{
		{`[]`, "%s must be one JSON object"}, {`"a"`, "%s must be one JSON object"}, {` `, "%s must be one JSON object"},
		{`{"text":"a"}{}`, "%s must be one JSON object with nothing after it"},
		{`x`, fmt.Sprintf(syntax, 0)}, {`[`, fmt.Sprintf(syntax, 1)}, {"{\"text\":\"ab\xff\"}", fmt.Sprintf(syntax, 11)},
		{`{"text":"a",`, fmt.Sprintf(syntax, 12)}, {`{"text":x}`, fmt.Sprintf(syntax, 8)},
	} {
		for whole, source := range map[string]operation.Source{"arguments": operation.Flat(c.text),
			"the body": &operation.Parts{Path: []string{"MINE"}, Body: []byte(c.text)}} {
			_, err := echo[everything](writing, source)
			expect.Equal(t, whole+" "+c.text, expect.Values{"detail": {of(err).Detail, strings.ReplaceAll(c.want, "%s", whole)}})
		}
	}
}

// What a caller made up is repeated in part, and a hundred faults are told.
func TestDecode_ManyFaults(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("é", 64)
	for given, want := range map[string]string{name: name, name + "é": name + "…", "a\u202e": `a\u202e`} {
		_, err := echo[everything](writing, operation.Flat(`{"assetId":"a","text":"b","`+given+`":1}`))
		checkFault(t, err, true, []string{want + " is not known here"})
	}
	for n, want := range map[int]int{99: 99, 100: 100, 101: 100} {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, `,"x%d":1`, i)
		}
		if _, err := echo[everything](writing, operation.Flat(`{"assetId":"a","text":"b"`+body.String()+`}`)); len(of(err).Fields) != want {
			t.Errorf("%d faults: %d are told, want %d", n, len(of(err).Fields), want)
		}
	}
}

type asked struct {
	Name  string `query:"name" rule:"required"`
	Small int32  `query:"small"`
}

// A query parameter may be required, and a number is written in one way.
func TestDecode_QueryOfRequired(t *testing.T) {
	t.Parallel()
	o := operation.Operation{Name: "list", Method: "GET", Path: "/assets", Needs: access.DevicesRead}
	for query, want := range map[string]string{"name=a": "", "small=1": "name is required", "": "name is required", "name=": "",
		"name=a&name=b": "name stands twice", "name=a&small=2147483647": "", "name=a&small=2147483648": "small must be an integer",
		"name=a&small=-1": "", "name=a&small=01": "small must be an integer", "name=a&small=%2B1": "small must be an integer"} {
		_, err := echo[asked](o, &operation.Parts{Query: query})
		if got := of(err).Detail; got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// What a surface found wrong with a request is reported before what its arguments lack, and after the caller's rights.
func TestRun_Wrong(t *testing.T) {
	t.Parallel()
	large, wrong := fault.InvalidField("body", "is too large"), fault.InvalidField("Muster-Reason", "must be one text")
	mayNot := caller()
	mayNot.Permissions = 0
	for _, c := range []struct {
		name    string
		p       access.Principal
		refused *fault.Error
		wrong   *fault.Error
		body    string
		want    string
	}{
		{"the request", caller(), large, nil, `{}`, "body"},
		{"the request, and a header", caller(), large, wrong, `{}`, "body"},
		{"a header", caller(), nil, wrong, `{"text":"a"}`, "Muster-Reason"},
		{"arguments, and a header", caller(), nil, wrong, `{}`, "text"},
		{"nothing", caller(), nil, nil, `{"text":"a"}`, ""},
		{"rights", mayNot, large, wrong, `{}`, string(fault.Forbidden)},
	} {
		o := define(reboot, func(context.Context, operation.Call, target) (string, error) { return "", nil })
		out := newKernel().Run(t.Context(), o, c.p, operation.Meta{Wrong: c.wrong},
			&operation.Parts{Path: []string{"a"}, Body: []byte(c.body), Refused: c.refused})
		got := string(of(out.Fault).Code)
		if fields := of(out.Fault).Fields; len(fields) > 0 {
			got = fields[0].Field
		}
		expect.Equal(t, c.name, expect.Values{"at fault": {got, c.want}})
	}
}
