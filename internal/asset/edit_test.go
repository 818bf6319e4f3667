package asset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
)

// patch changes an asset as a request does.
func (in *inventory) patch(p access.Principal, id, body string) (operation.Outcome, string) {
	in.Helper()
	out := in.kernel.Run(in.ctx(), in.registry.Find("update_asset"), p, operation.Meta{},
		&operation.Parts{Path: []string{id}, Body: []byte(body)})
	code := ""
	if out.Fault != nil {
		code = string(out.Fault.Code)
	}
	return out, code
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	id := in.enroll("d1", in.policies[0], 1)
	p := in.p
	p.Permissions |= access.DevicesCommand
	p.Settings.DeviceCommands = true
	if _, code := in.patch(p, id, `{"identification":"Reception","tags":["a","b"],"customData":{"user":"Ada","old":"x"}}`); code != "" {
		t.Fatal(code)
	}
	if _, code := in.patch(p, id, `{"customData":{"old":null,"user":"Bea"}}`); code != "" {
		t.Fatal(code)
	}
	got, _ := in.read(in.p, "get_asset", "", id)
	if text := fmt.Sprintf("%v %v", got["identification"], got["customData"]); text != "Reception map[tags:[a b] user:Bea]" {
		t.Error(text)
	}
	for _, body := range []string{`{}`, ``, `[]`, `{"identification":""}`, `{"identification":" "}`, `{"identification":null}`,
		`{"identification":"a\nb"}`, `{"identification":"\u200b"}`, `{"identification":"\u2800 \u00ad"}`, `{"identification":"a\u202eb"}`,
		`{"identification":"` + strings.Repeat("x", 201) + `"}`,
		`{"tags":[""]}`, `{"tags":["a\tb"]}`, `{"tags":["ok","a\u202eb"]}`, `{"tags":["\u200b"]}`,
		`{"tags":["` + strings.Repeat("x", 65) + `"]}`, `{"tags":"a"}`,
		`{"tags":[` + strings.Repeat(`"t",`, 50) + `"t"]}`,
		`{"customData":{"tags":"a"}}`, `{"customData":{"tags":null}}`, `{"customData":{"a":1}}`, `{"customData":{"a":["b"]}}`,
		`{"customData":{"":"a"}}`, `{"customData":[]}`,
		`{"customData":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, `{"status":"ACTIVE"}`} {
		if _, code := in.patch(p, id, body); code != string(fault.InvalidArguments) {
			t.Errorf("%.60s: %q", body, code)
		}
	}
	for what, change := range map[string]func(p *access.Principal){
		"no permission": func(p *access.Principal) { p.Permissions = access.DevicesRead },
		"gate off":      func(p *access.Principal) { p.Settings.DeviceCommands = false },
	} {
		limited := p
		change(&limited)
		if _, code := in.patch(limited, id, `{"tags":[]}`); code != string(fault.Forbidden) {
			t.Errorf("%s: %q", what, code)
		}
	}
	limited := p
	limited.Policies = []string{in.policies[1].ID}
	if _, code := in.patch(limited, id, `{"tags":[]}`); code != string(fault.NotFound) {
		t.Errorf("another policy: %q", code)
	}
	if got, _ := in.read(in.p, "get_asset", "", id); fmt.Sprint(got["customData"]) != "map[tags:[a b] user:Bea]" {
		t.Error(got["customData"])
	}
}

// A tag that no rule allows any more can be removed, and not added.
func TestEdit_ChecksTags(t *testing.T) {
	t.Parallel()
	turned := []string{"a\u202eb"}
	if err := (asset.Edit{DropTags: turned}).Check(); err != nil {
		t.Errorf("removed: %v", err)
	}
	for what, e := range map[string]asset.Edit{"replaced": {Tags: turned}, "added": {AddTags: turned}} {
		if err := e.Check(); fault.CodeOf(err) != fault.InvalidArguments || !strings.Contains(fault.From(err).Detail, "can be seen") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The change of tags of a job keeps the same rules.
func TestTagArgs(t *testing.T) {
	t.Parallel()
	check := operation.Checker[job.TagArgs]()
	if err := check([]byte(`{"remove":["a\u202eb"]}`)); err != nil {
		t.Errorf("removed: %v", err)
	}
	if err := check([]byte(`{"add":["a\u202eb"]}`)); fault.CodeOf(err) != fault.InvalidArguments {
		t.Errorf("added: %v", err)
	}
}
