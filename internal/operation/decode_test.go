package operation_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// everything has an argument of each kind and a use of each rule.
type everything struct {
	AssetID string   `path:"assetId" doc:"The asset."`
	Text    string   `json:"text" rule:"required notblank maxchars=5" doc:"Some text."`
	Short   string   `json:"short" rule:"minchars=2 maxbytes=4"`
	Email   string   `json:"email" rule:"email maxchars=320"`
	Apps    []string `json:"apps" rule:"minitems=1 maxitems=3 package"`
	Mode    string   `json:"mode" rule:"enum=WEP|WPA default=WPA"`
	Exact   string   `json:"exact" rule:"enum=ON|OFF"`
	Count   int      `json:"count" rule:"min=1 max=9 default=3"`
	Secret  *string  `json:"secret" rule:"secret minchars=4"`
	Hidden  *bool    `json:"hidden"`
	Changes []change `json:"changes"`
	Nested  change   `json:"nested"`
}

func (e *everything) Rules(r *operation.Rules) {
	r.Must("hidden", "needs secret", e.Hidden == nil || e.Secret != nil)
}

type change struct {
	Setting string `json:"setting" rule:"required notblank"`
	Value   string `json:"value" rule:"default=NONE"`
}

func (c change) Rules(r *operation.Rules) {
	r.Must("value", "must not be BAD", c.Value != "BAD")
}

type listing struct {
	operation.PageRequest
	Status string `query:"status" rule:"enum=ACTIVE|INACTIVE"`
	Flag   *bool  `query:"flag"`
}

// caller may do everything.
func caller() access.Principal {
	return access.Principal{Kind: access.APIKey, ID: "k1", Permissions: access.All,
		Settings: access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true}}
}

func newKernel() *operation.Kernel {
	return operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now})
}

// echo runs the arguments of A through an operation that returns them.
func echo[A any](o operation.Operation, s operation.Source) (A, *fault.Error) {
	var r operation.Registry
	operation.Define(&r, o, func(_ context.Context, _ operation.Call, a A) (A, error) { return a, nil })
	out := newKernel().Run(context.Background(), r.All()[0], caller(), operation.Meta{}, s)
	result, _ := out.Result.(A)
	return result, out.Fault
}

var writing = operation.Operation{Name: "do", Method: "POST", Path: "/assets/{assetId}/do",
	Needs: access.DevicesRead, Budget: operation.AfterValidation}

func TestDecode_BodyIsReadStrictly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		malformed  bool
		fields     []string // what errors names, with the message
	}{
		{name: "smallest", body: `{"text":"a"}`},
		{name: "white space around", body: " \n{\"text\" : \"a\"}\r\n\t"},
		{name: "escaped name", body: `{"te\u0078t":"a"}`},
		{name: "name that begins with an escape", body: `{"\u0074ext":"a"}`},
		{name: "all",
			body: `{"text":"ááááá","short":"ab","email":"a@b.example","apps":["a.b","c.d"],"mode":"WEP","exact":"ON","count":9,"secret":"1234","hidden":false,"changes":[{"setting":"X"},{"setting":"Y","value":"Z"}],"nested":{"setting":"N"}}`},
		{name: "integer as a fraction", body: `{"text":"a","count":2.0}`},

		{name: "nothing", body: ``, malformed: true, fields: []string{"text is required"}},
		{name: "array", body: `[{"text":"a"}]`, malformed: true},
		{name: "null", body: `null`, malformed: true},
		{name: "string", body: `"text"`, malformed: true},
		{name: "broken", body: `{"text":`, malformed: true},
		{name: "no quotes", body: `{text:"a"}`, malformed: true},
		{name: "comma at the end", body: `{"text":"a",}`, malformed: true},
		{name: "two objects", body: `{"text":"a"}{"text":"a"}`, malformed: true},
		{name: "stray brace", body: `{"text":"a"}}`, malformed: true},
		{name: "comment", body: `{"text":"a"} // b`, malformed: true},
		{name: "invalid UTF-8 in a value", body: "{\"text\":\"\xff\"}", malformed: true},
		{name: "invalid UTF-8 in a name", body: "{\"text\":\"a\",\"\xff\":1}", malformed: true},
		{name: "half a surrogate", body: `{"text":"\ud800"}`, malformed: true},
		{name: "byte order mark", body: "\ufeff{\"text\":\"a\"}", malformed: true},

		{name: "unknown", body: `{"text":"a","more":1}`, malformed: true, fields: []string{"more is not known here"}},
		{name: "another case", body: `{"Text":"a"}`, malformed: true, fields: []string{"Text is not known here", "text is required"}},
		{name: "twice", body: `{"text":"a","text":"b"}`, malformed: true, fields: []string{"text stands twice"}},
		{name: "twice by an escape", body: `{"text":"a","te\u0078t":"b"}`, malformed: true, fields: []string{"text stands twice"}},
		{name: "path argument", body: `{"text":"a","assetId":"VICTIM"}`, malformed: true, fields: []string{"assetId is not known here"}},
		{name: "path argument in another case", body: `{"text":"a","assetid":"VICTIM"}`, malformed: true,
			fields: []string{"assetid is not known here"}},
		{name: "path argument by its Go name", body: `{"text":"a","AssetID":"VICTIM"}`, malformed: true,
			fields: []string{"AssetID is not known here"}},
		{name: "deep unknown", body: `{"text":"a","changes":[{"setting":"X"},{"setting":"Y","Value":1}]}`, malformed: true,
			fields: []string{"changes[1].Value is not known here"}},
		{name: "deep twice", body: `{"text":"a","changes":[{"setting":"X","setting":"Y"}]}`, malformed: true,
			fields: []string{"changes[0].setting stands twice"}},

		{name: "null member", body: `{"text":null}`, fields: []string{"text must not be null"}},
		{name: "null for optional members",
			body: `{"text":"a","short":null,"email":null,"apps":null,"mode":null,"exact":null,"count":null,"secret":null,"hidden":null,"changes":null,"nested":null}`},
		{name: "null below", body: `{"text":"a","changes":[{"setting":"X","value":null}]}`},
		{name: "null for a required member below", body: `{"text":"a","changes":[{"setting":null}]}`,
			fields: []string{"changes[0].setting must not be null"}},
		{name: "null, then a value", body: `{"text":"a","email":null,"email":"a@b.example"}`, malformed: true,
			fields: []string{"email stands twice"}},
		{name: "null for an unknown member", body: `{"text":"a","more":null}`, malformed: true, fields: []string{"more is not known here"}},
		{name: "wrong types", body: `{"text":1,"apps":"a.b","count":"3","hidden":"yes","changes":{},"nested":[]}`, fields: []string{
			"text must be a string", "apps must be an array", "count must be an integer", "hidden must be true or false",
			"changes must be an array", "nested must be an object"}},
		{name: "wrong elements", body: `{"text":"a","apps":["a.b",null,1],"changes":["X"]}`, fields: []string{
			"apps[1] must not be null", "apps[2] must be a string", "changes[0] must be an object"}},
		{name: "fraction", body: `{"text":"a","count":2.5}`, fields: []string{"count must be an integer"}},
		{name: "huge", body: `{"text":"a","count":1e99}`, fields: []string{"count must be an integer"}},

		{name: "all rules at once",
			body: `{"text":"  ","short":"ééé","email":"no","apps":[],"mode":"x","exact":"on","count":10,"secret":"123","nested":{}}`,
			fields: []string{
				"text must not be blank", "short must be at most 4 bytes of UTF-8", "email must be a valid e-mail address",
				"apps must have at least 1 entry", "mode must be one of WEP, WPA", "exact must be one of ON, OFF",
				"count must be from 1 to 9", "secret must be at least 4 characters", "nested.setting is required"}},
		{name: "six characters", body: `{"text":"áááááá"}`, fields: []string{"text must be at most 5 characters"}},
		{name: "too many", body: `{"text":"a","apps":["a.b","a.c","a.d","a.e"]}`, fields: []string{"apps must have at most 3 entries"}},
		{name: "one bad element", body: `{"text":"a","apps":["a.b","x"]}`,
			fields: []string{"apps[1] must be a package name such as com.example.app"}},
		{name: "own rule", body: `{"text":"a","hidden":true}`, fields: []string{"hidden needs secret"}},
		{name: "own rule beside another", body: `{"text":"","hidden":true}`,
			fields: []string{"text must not be blank", "hidden needs secret"}},
		{name: "own rule below", body: `{"text":"a","changes":[{"setting":"X","value":"BAD"}]}`,
			fields: []string{"changes[0].value must not be BAD"}},
		{name: "unknown and broken", body: `{"text":"","more":1}`, malformed: true,
			fields: []string{"text must not be blank", "more is not known here"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := echo[everything](writing, &operation.Parts{Path: []string{"MINE"}, Body: []byte(test.body)})
			if len(test.fields) == 0 && !test.malformed {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if got.AssetID != "MINE" {
					t.Errorf("the path argument is %q", got.AssetID)
				}
				return
			}
			checkFault(t, err, test.malformed, test.fields)
		})
	}
}

func checkFault(t *testing.T, err *fault.Error, malformed bool, fields []string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	if err.Code != fault.InvalidArguments || err.Malformed != malformed || err.Detail == "" {
		t.Errorf("code %s, malformed %v, detail %q", err.Code, err.Malformed, err.Detail)
	}
	var got []string
	for _, f := range err.Fields {
		got = append(got, f.Field+" "+f.Message)
	}
	if diff := cmp.Diff(fields, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestDecode_ValuesAndDefaults(t *testing.T) {
	t.Parallel()
	got, err := echo[everything](writing,
		operation.Flat(`{"assetId":"A","text":"a","mode":"WEP","hidden":true,"secret":"pass","changes":[{"setting":"X"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := everything{AssetID: "A", Text: "a", Mode: "WEP", Count: 3, Secret: new("pass"), Hidden: new(true),
		Changes: []change{{Setting: "X", Value: "NONE"}}, Nested: change{}}
	want.Nested.Value = got.Nested.Value // absent: left alone
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestDecode_FlatObjectNeedsPathArguments(t *testing.T) {
	t.Parallel()
	_, err := echo[everything](writing, operation.Flat(`{"text":"a"}`))
	checkFault(t, err, false, []string{"assetId is required"})
	_, err = echo[everything](writing, operation.Flat(nil))
	checkFault(t, err, false, []string{"assetId is required", "text is required"})
	_, err = echo[everything](writing, operation.Flat(`{"assetId":"A","assetid":"VICTIM","text":"a"}`))
	checkFault(t, err, true, []string{"assetid is not known here"})
	_, err = echo[everything](writing, operation.Flat(`{"assetId":"A","assetId":"VICTIM","text":"a"}`))
	checkFault(t, err, true, []string{"assetId stands twice"})
}

func TestDecode_Query(t *testing.T) {
	t.Parallel()
	reading := operation.Operation{Name: "list", Method: "GET", Path: "/assets", Needs: access.DevicesRead}
	tests := []struct {
		query  string
		want   listing
		fields []string
		bad    bool
	}{
		{query: "", want: listing{PageRequest: operation.PageRequest{Size: 20}}},
		{query: "page=2&size=100&status=ACTIVE&flag=true",
			want: listing{PageRequest: operation.PageRequest{Page: 2, Size: 100}, Status: "ACTIVE", Flag: new(true)}},
		{query: "size=101", fields: []string{"size must be from 1 to 100"}},
		{query: "size=0&page=-1", fields: []string{"page must be from 0 to 2147483647", "size must be from 1 to 100"}},
		{query: "page=x", fields: []string{"page must be an integer"}},
		{query: "page=", fields: []string{"page must be an integer"}},
		{query: "page=99999999999999999999", fields: []string{"page must be an integer"}},
		{query: "flag=1", fields: []string{"flag must be true or false"}},
		{query: "status=active", fields: []string{"status must be one of ACTIVE, INACTIVE"}},
		{query: "status=%ff", fields: []string{"status must be UTF-8"}},
		{query: "page=1&page=2", fields: []string{"page stands twice"}, bad: true},
		{query: "stauts=ACTIVE&a=b", fields: []string{"a is not known here", "stauts is not known here"}, bad: true},
		{query: "page=%zz", bad: true},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			got, err := echo[listing](reading, &operation.Parts{Query: test.query})
			if test.fields != nil || test.bad {
				checkFault(t, err, test.bad, test.fields)
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%q: %v; (-want +got):\n%s", test.query, err, diff)
			}
		})
	}
}

func TestDecode_CommandWithoutBody(t *testing.T) {
	t.Parallel()
	type bare struct {
		AssetID string `path:"assetId"`
	}
	for body, ok := range map[string]bool{"": true, "{}": true, " { } ": true, `{"a":1}`: false, "null": false, "[]": false,
		`{"assetId":"VICTIM"}`: false, "x": false, "{}{}": false, " ": false} {
		t.Run(body, func(t *testing.T) {
			got, err := echo[bare](writing, &operation.Parts{Path: []string{"MINE"}, Body: []byte(body)})
			if ok != (err == nil) || (ok && got.AssetID != "MINE") {
				t.Errorf("%q: %+v, %v", body, got, err)
			}
			if err != nil && !err.Malformed {
				t.Errorf("%q is not malformed", body)
			}
		})
	}
}
