package operation_test

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

type form struct {
	Name   string   `json:"name" label:"Name" rule:"required maxchars=60" help:"A name."`
	Bytes  string   `json:"bytes" label:"Bytes" rule:"maxbytes=8"`
	Text   string   `json:"text" label:"Text" rule:"lines"`
	Email  string   `json:"email" label:"E-mail" rule:"email"`
	Secret string   `json:"secret" label:"Secret" rule:"secret"`
	Phone  string   `json:"phone" label:"Phone" input:"tel"`
	List   []string `json:"list" label:"List" rule:"maxitems=3 maxchars=10"`
	Hidden string   `json:"hidden"`
}

// What a form asks for follows from the rules; entries of a list stand on lines of their own.
func TestInputs(t *testing.T) {
	t.Parallel()
	want := []operation.Input{
		{Name: "name", Label: "Name", Help: "A name.", Kind: "text", Max: 60, Required: true},
		{Name: "bytes", Label: "Bytes", Kind: "text", Max: 8},
		{Name: "text", Label: "Text", Kind: "area"},
		{Name: "email", Label: "E-mail", Kind: "email"},
		{Name: "secret", Label: "Secret", Kind: "password"},
		{Name: "phone", Label: "Phone", Kind: "tel"},
		{Name: "list", Label: "List", Kind: "list", Max: 36},
	}
	got := operation.Inputs[form]()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want {
		expect.Equal(t, want[i].Name, expect.Values{"input": {got[i], want[i]}})
	}
}

type carrier struct {
	Arguments operation.Object `json:"arguments" doc:"Any members."`
}

// An object is taken as it was written, without members that stand twice, and nothing else is one.
func TestDecode_Object(t *testing.T) {
	t.Parallel()
	taking := writing
	taking.Path = "/do"
	for text, want := range map[string]string{`{"arguments":{"a": [1]}}`: `{"a": [1]}`, `{"arguments":{}}`: `{}`, `{}`: ``,
		`{"arguments":{"a":1,"a":1}}`: "", `{"arguments":{"b":{"a":1,"\u0061":2}}}`: "", `{"arguments":[]}`: "",
		`{"arguments":"a"}`: "", `{"arguments":1}`: ""} {
		got, err := echo[carrier](taking, operation.Flat(text))
		if string(got.Arguments) != want || (err != nil) != (want == "" && text != `{}`) {
			t.Errorf("%s: %q, %v, want %q", text, []byte(got.Arguments), err, want)
		}
		if printed := fmt.Sprintf("%v %+v %#v", got.Arguments, got.Arguments, got.Arguments); printed != "[object] [object] [object]" {
			t.Errorf("it prints as %q", printed)
		}
	}
}
