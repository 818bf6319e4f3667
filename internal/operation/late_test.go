package operation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// A caller whose request took a second to arrive is let in once more.
func TestRun_Late(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fewer := caller()
	fewer.Permissions = access.DevicesRead
	for _, c := range []struct {
		name    string
		since   time.Time
		again   access.Principal
		err     error
		renewed bool
		want    fault.Code
	}{
		{"at once", now, fewer, nil, false, ""},
		{"just within a second", now.Add(-time.Second + 1), fewer, nil, false, ""},
		{"after a second", now.Add(-time.Second), caller(), nil, true, ""},
		{"after a second, with fewer rights", now.Add(-time.Second), fewer, nil, true, fault.Forbidden},
		{"after a second, refused", now.Add(-time.Second), fewer, fault.New(fault.Unauthorized, "no"), true, fault.Unauthorized},
		{"after a second, and it cannot be found out", now.Add(-time.Second), fewer, errors.New("disk"), true, fault.Unavailable},
		{"without a time", time.Time{}, fewer, nil, false, ""},
	} {
		renewed := false
		k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: func() time.Time { return now }})
		out := k.Run(t.Context(), define(reboot, func(context.Context, operation.Call, target) (string, error) { return "", nil }),
			caller(),
			operation.Meta{Since: c.since, Again: func(context.Context) (access.Principal, error) {
				renewed = true
				return c.again, c.err
			}}, operation.Flat(`{"assetId":"a","text":"b"}`))
		var code fault.Code
		if out.Fault != nil {
			code = out.Fault.Code
		}
		expect.Equal(t, c.name, expect.Values{"renewed": {renewed, c.renewed}, "code": {code, c.want}})
	}
}

func TestTakeReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arguments, rest, reason string
		wrong                   bool
	}{
		{`{"a":1,"reason":"why"}`, `{"a":1}`, "why", false},
		{`{"a":1}`, `{"a":1}`, "", false},
		{`{"reason":""}`, `{}`, "", false},
		{`{"reason":null}`, `{}`, "", false},
		{`{"a":1,"reason":1}`, `{"a":1}`, "", true},
		{`[]`, `[]`, "", false},
		{`{`, `{`, "", false},
		{`{"reason":"a","reason":"b"}`, `{"reason":"a","reason":"b"}`, "", false},
	} {
		rest, reason, wrong := operation.TakeReason(operation.Flat(c.arguments), "reason")
		expect.Equal(t, c.arguments, expect.Values{"rest": {string(rest), c.rest}, "reason": {reason, c.reason},
			"wrong": {wrong != nil, c.wrong}})
	}
}

type texts struct {
	Tags []string `query:"tags" rule:"maxitems=2 maxchars=3" doc:"Tags."`
}

// A list in a query is bound as a list in a body is.
func TestDecode_TextsOfAQuery(t *testing.T) {
	t.Parallel()
	o := operation.Operation{Name: "list", Method: "GET", Path: "/assets", Needs: access.DevicesRead}
	for query, want := range map[string]string{
		"":                         "",
		"tags=a":                   "",
		"tags=abc&tags=b":          "",
		"tags=a&tags=b&tags=c":     "tags",
		"tags=a&tags=abcd":         "tags[1]",
		"tags=a&tags=b&tag=c":      "tag",
		"tags=abcd&tags=b&tags=cd": "tags tags[0]",
	} {
		_, err := echo[texts](o, &operation.Parts{Query: query})
		got := ""
		if err != nil {
			for _, f := range err.Fields {
				if got != "" {
					got += " "
				}
				got += f.Field
			}
		}
		if got != want {
			t.Errorf("%q: at fault are %q, want %q", query, got, want)
		}
	}
}

type kindsOfArguments struct {
	AssetID string   `path:"assetId" doc:"Id."`
	Text    string   `json:"text" rule:"required secret" doc:"Text."`
	Number  int      `json:"number" rule:"default=3" doc:"Number."`
	Flag    *bool    `json:"flag" doc:"Flag."`
	Texts   []string `json:"texts" doc:"Texts."`
	Numbers []int    `json:"numbers" doc:"Numbers."`
	Choice  string   `json:"choice" rule:"enum=A|B" doc:"Choice."`
}

func TestArguments_Kinds(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	operation.Define(&r, reboot, func(context.Context, operation.Call, kindsOfArguments) (string, error) { return "", nil })
	want := map[string]operation.Argument{
		"assetId": {Kind: "text", Required: true},
		"text":    {Kind: "text", Required: true, Secret: true},
		"number":  {Kind: "number", Default: "3"},
		"flag":    {Kind: "boolean"},
		"texts":   {Kind: "texts"},
		"numbers": {Kind: "json"},
		"choice":  {Kind: "text", Values: []string{"A", "B"}},
	}
	got := r.All()[0].Arguments()
	if len(got) != len(want) {
		t.Errorf("%d arguments, want %d", len(got), len(want))
	}
	for _, a := range got {
		w := want[a.Name]
		expect.Equal(t, a.Name, expect.Values{"kind": {a.Kind, w.Kind}, "required": {a.Required, w.Required},
			"secret": {a.Secret, w.Secret},
			"values": {len(a.Values), len(w.Values)}, "default": {a.Default, w.Default}})
	}
}
