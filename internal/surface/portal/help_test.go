package portal_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/rest"
)

// TestHelp_OnPagesAndInTheDescription: each permission, setting of the company, role, right
// and setting of a policy has one sentence, which its page and the description of the
// interface have alike.
func TestHelp_OnPagesAndInTheDescription(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	var document struct {
		Info struct{ Description string }
	}
	if err := json.Unmarshal(rest.OpenAPI(new(operation.Registry), "https://muster.test"), &document); err != nil {
		t.Fatal(err)
	}
	explained := func(path string, sentences map[string]string) {
		page := html.UnescapeString(o.get(t, admin, path, 200))
		for name, help := range sentences {
			if !strings.HasSuffix(help, ".") || strings.ToUpper(help[:1]) != help[:1] {
				t.Errorf("%s has no sentence: %q", name, help)
			}
			if !strings.Contains(page, help) {
				t.Errorf("%s does not explain %s: %s", path, name, help)
			}
			if !strings.Contains(document.Info.Description, "`"+name+"`: "+help) {
				t.Errorf("the description does not explain %s: %s", name, help)
			}
		}
	}
	permissions, gates, people, settings := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	for _, p := range access.Each(access.All) {
		permissions[p.String()] = p.Help()
	}
	for _, g := range access.Gates() {
		gates[string(g)] = g.Help()
	}
	all, _ := account.Admin.Rights()
	for _, r := range access.Each(all) {
		people[r.Names()[0]] = r.Help()
	}
	for _, r := range account.Roles() {
		people[string(r)] = r.Help()
	}
	for _, s := range policy.Catalog() {
		settings[s.ID] = s.Help
	}
	explained("/access/keys/new", permissions)
	explained("/access", gates)
	explained("/users/new", people)
	explained("/policies/"+o.Policy.ID, settings)
}

// The form of a key takes the networks that it has as examples.
func TestHelp_NetworksOfAKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	example := regexp.MustCompile(`used from, such as (\S+ \S+)\. A space`).FindStringSubmatch(o.get(t, admin, "/access/keys/new", 200))
	if example == nil {
		t.Fatal("the form has no example of networks")
	}
	admin.Send(o.base+"/access/keys", url.Values{"name": {"ci"}, "permission": {"DEVICES_READ"}, "expires": {"90"},
		"networks": {example[1]}}).Want(t, 200)
}
