package portal_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// openForm opens a page and returns what a browser posts of the form with an action.
func (o *office) openForm(t *testing.T, p *servertest.Browser, path, action string) url.Values {
	t.Helper()
	return formIn(t, o.get(t, p, path, 200), action)
}

func formIn(t *testing.T, page, action string) url.Values {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data == "form" && attributes(n)["action"] == action {
			return posted(n)
		}
	}
	t.Fatalf("no form to %s: %s", action, page)
	return nil
}

// Another form of the page that is shown after a refusal takes away what the person takes away in it.
func TestDevice_EditAfterARefusedCommand(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, a := o.person(t, account.Admin), o.device(t, "d1", "S1", "Phone", o.Policy)
	edit := "/devices/" + a.ID + "/edit"
	form := o.openForm(t, admin, "/devices/"+a.ID, edit)
	form.Set("tags", "x, y")
	form.Set("user", "Bea")
	admin.Send(o.base+edit, form).Want(t, 303)
	refused := admin.Send(o.base+"/devices/"+a.ID+"/commands/wipe_device", url.Values{"confirm": {"another"}}).Want(t, 422)
	form = formIn(t, string(refused.Body), edit)
	form.Set("tags", "x")
	form.Set("user", "")
	admin.Send(o.base+edit, form).Want(t, 303)
	got, err := o.DB().Asset(t.Context(), o.Company.ID, a.ID)
	if err != nil || strings.Join(got.Tags, ",") != "x" || got.CustomData[asset.UserKey] != "" {
		t.Errorf("tags %v, data %v, %v", got.Tags, got.CustomData, err)
	}
}

func attributes(n *html.Node) map[string]string {
	all := map[string]string{}
	for _, a := range n.Attr {
		all[a.Key] = a.Val
	}
	return all
}

// posted is what a browser posts of a form in which nothing was changed.
func posted(form *html.Node) url.Values {
	fields, selected := url.Values{}, ""
	for n := range form.Descendants() {
		a := attributes(n)
		_, checked := a["checked"]
		_, disabled := a["disabled"]
		_, chosen := a["selected"]
		switch {
		case n.Data == "select":
			selected = a["name"]
		case n.Data == "option" && (chosen || !fields.Has(selected)):
			fields.Set(selected, a["value"])
		case n.Data == "textarea" && n.FirstChild != nil:
			fields.Set(a["name"], n.FirstChild.Data)
		case n.Data == "input" && !disabled && (checked || a["type"] != "checkbox" && a["type"] != "radio"):
			fields.Add(a["name"], a["value"])
		}
	}
	return fields
}

// A form that was open while another administrator changed the user changes what the person
// changed in it, and gives nothing back.
func TestUsers_StaleForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	operator, _ := account.Operator.Rights()
	viewer, _ := account.Viewer.Rights()
	third := o.Env.Policy(o.Company, "The third policy", policy.Agent)
	both, one := []string{o.Policy.ID, o.other.ID}, []string{o.Policy.ID}
	for _, c := range []struct {
		name           string
		has, meanwhile account.User
		edit           func(url.Values)
		want           account.User
	}{
		{"a new name gives no role back", account.User{Role: account.Operator, Rights: operator},
			account.User{Role: account.Viewer, Rights: viewer}, func(url.Values) {}, account.User{Role: account.Viewer, Rights: viewer}},
		{"a new name gives no right back", account.User{Role: account.Operator, Rights: operator},
			account.User{Role: account.Operator, Rights: viewer}, func(url.Values) {},
			account.User{Role: account.Operator, Rights: viewer}},
		{"another right gives no right back", account.User{Role: account.Operator, Rights: operator},
			account.User{Role: account.Operator, Rights: viewer}, func(f url.Values) { f.Add("right", "view-activity") },
			account.User{Role: account.Operator, Rights: viewer | account.ViewActivity}},
		{"another role is chosen whole", account.User{Role: account.Viewer, Rights: viewer},
			account.User{Role: account.Viewer, Rights: account.ViewDevices}, func(f url.Values) { f.Set("role", "operator") },
			account.User{Role: account.Operator, Rights: operator}},
		{"all policies", account.User{Role: account.Viewer, Rights: viewer},
			account.User{Role: account.Viewer, Rights: viewer, Policies: one}, func(url.Values) {},
			account.User{Role: account.Viewer, Rights: viewer, Policies: one}},
		{"one of the policies", account.User{Role: account.Viewer, Rights: viewer, Policies: both},
			account.User{Role: account.Viewer, Rights: viewer, Policies: one}, func(url.Values) {},
			account.User{Role: account.Viewer, Rights: viewer, Policies: one}},
		{"one beside another that is given", account.User{Role: account.Viewer, Rights: viewer, Policies: both},
			account.User{Role: account.Viewer, Rights: viewer, Policies: one}, func(f url.Values) { f.Add("policy", third.ID) },
			account.User{Role: account.Viewer, Rights: viewer, Policies: []string{o.Policy.ID, third.ID}}},
		{"a limit that the person sets", account.User{Role: account.Viewer, Rights: viewer},
			account.User{Role: account.Viewer, Rights: viewer}, func(f url.Values) { f.Set("scope", "some"); f.Set("policy", o.other.ID) },
			account.User{Role: account.Viewer, Rights: viewer, Policies: []string{o.other.ID}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			admin, person := o.person(t, account.Admin), o.person(t, account.Viewer)
			become := func(to account.User) {
				person.Change(func(u *account.User) { u.Role, u.Rights, u.Policies = to.Role, to.Rights, to.Policies })
			}
			become(c.has)
			path := "/users/" + person.User.ID
			form := o.openForm(t, admin, path, path)
			become(c.meanwhile)
			form.Set("name", "Renamed")
			c.edit(form)
			admin.Send(o.base+path, form).Want(t, 303)
			got, err := o.DB().UserByID(t.Context(), o.Company.ID, person.User.ID)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got.Policies)
			slices.Sort(c.want.Policies)
			says := func(u account.User) string { return fmt.Sprintf("%s %v %#v", u.Role, u.Rights.Names(), u.Policies) }
			if got.Name != "Renamed" || says(got) != says(c.want) {
				t.Errorf("%s is %s, want Renamed, %s", got.Name, says(got), says(c.want))
			}
		})
	}
}

// A form that is shown again with a fault goes on from what it was first shown with.
func TestUsers_StaleFormAfterAFault(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, person := o.person(t, account.Admin), o.person(t, account.Operator)
	viewer, _ := account.Viewer.Rights()
	path := "/users/" + person.User.ID
	form := o.openForm(t, admin, path, path)
	person.Change(func(u *account.User) { u.Role, u.Rights = account.Viewer, viewer })
	form.Set("name", "\x01")
	page := admin.Send(o.base+path, form).Want(t, 422)
	root, err := html.Parse(strings.NewReader(string(page.Body)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data == "form" && attributes(n)["action"] == path {
			form = posted(n)
		}
	}
	form.Set("name", "Renamed")
	admin.Send(o.base+path, form).Want(t, 303)
	got, err := o.DB().UserByID(t.Context(), o.Company.ID, person.User.ID)
	if err != nil || got.Name != "Renamed" || got.Role != account.Viewer || got.Rights != viewer {
		t.Errorf("got %s, %s, %v, %v; want Renamed, viewer", got.Name, got.Role, got.Rights.Names(), err)
	}
}
