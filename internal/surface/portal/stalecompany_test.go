package portal_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
)

// A scope that was taken away while the form was open does not return with another one.
func TestConnections_StaleForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	owner, admin := o.person(t, account.Manager), o.person(t, account.Admin)
	connection := o.ConnectionOf(owner.Connect(o.base, "mcp:devices:read", "mcp:devices:command").Access)
	path := "/access/connections/" + connection.ID + "/scopes"
	form := o.openForm(t, admin, "/access", path)
	owner.Send(o.base+path, url.Values{"scope": {"DEVICES_READ"}}).Want(t, 303)
	form.Add("scope", "POLICIES_READ")
	admin.Send(o.base+path, form).Want(t, 303)
	all, err := o.DB().Connections(t.Context(), o.Company.ID)
	if want := access.DevicesRead | access.PoliciesRead; err != nil || len(all) != 1 || all[0].Scopes != want {
		t.Errorf("got %v, %v, want %v", all, err, want)
	}
}

// A form of company sign-in does not turn it on again, and gives no domain back.
func TestSignInSettings_StaleForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	provider := oidctest.New(t, o.Now)
	const path = "/settings/signin"
	domains := []string{"acme.test", "old.test", "new.test"}
	for _, domain := range domains {
		o.CLI(new(any), "company", "domain", "add", "--company", "acme", domain)
	}
	admin.Send(o.base+path, url.Values{"name": {"Acme ID"}, "issuer": {provider.URL}, "clientId": {provider.ClientID},
		"clientSecret": {provider.Secret}, "domains": {"acme.test old.test"}, "enabled": {"true"}, "createsUsers": {"true"},
		"role": {"operator"}}).Want(t, 303)
	stale := o.openForm(t, admin, path, path)
	other := o.openForm(t, admin, path, path)
	other.Del("enabled")
	other.Del("createsUsers")
	other.Set("role", "viewer")
	other.Set("domains", "acme.test")
	admin.Send(o.base+path, other).Want(t, 303)
	stale.Set("name", "Renamed")
	stale.Set("domains", "acme.test\r\nold.test\r\nnew.test")
	admin.Send(o.base+path, stale).Want(t, 303)
	got, err := o.DB().Provider(t.Context(), o.Company.ID)
	if err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprint(got.Name, got.Enabled, got.CreatesUsers, got.Role, got.Domains, len(got.Secret) > 0, got.Issuer)
	if want := fmt.Sprint("Renamed", false, false, account.Viewer, []string{"acme.test", "new.test"}, true, provider.URL); says != want {
		t.Errorf("got %s, want %s", says, want)
	}
}

// A form of the company or its controls does not undo what was made stricter since.
func TestControls_StaleForms(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	forms := map[string]url.Values{}
	for action, page := range map[string]string{"/settings": "/settings", "/access/controls": "/access/controls",
		"/access/controls/approval": "/access/controls"} {
		forms[action] = o.openForm(t, admin, page, action)
	}
	if _, err := o.DB().ChangeControls(t.Context(), o.Company.ID, admin.User, func(c *company.Company) {
		c.Settings.KeepActivity = 3000 * 24 * time.Hour
		c.Settings.Controls.DestructiveLimit = access.DestructiveLimit{Devices: 2, Window: time.Hour}
		c.Settings.Controls.DestructiveApproval, c.Settings.Controls.SecondPerson = true, true
	}); err != nil {
		t.Fatal(err)
	}
	forms["/settings"].Set("name", "Renamed")
	forms["/access/controls"].Set("age", "48")
	forms["/access/controls/approval"].Set("requireReason", string(access.ReasonAll))
	for action, form := range forms {
		admin.Send(o.base+action, form).Want(t, 303)
	}
	got, err := o.DB().CompanyByID(t.Context(), o.Company.ID)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Settings.Controls
	says := fmt.Sprint(got.Name, got.Settings.KeepActivity, c.ApproverAge, c.DestructiveLimit.Devices, c.RequireReason,
		c.DestructiveApproval, c.SecondPerson)
	if want := fmt.Sprint("Renamed", 3000*24*time.Hour, 48*time.Hour, 2, access.ReasonAll, true, true); says != want {
		t.Errorf("got %s, want %s", says, want)
	}
	if waits, err := o.DB().Loosenings(t.Context(), o.Company.ID); err != nil || len(waits) != 0 {
		t.Errorf("got %+v, %v that wait, want none: no form asked for anything looser", waits, err)
	}
}

// Another administrator's save while the provider is asked is not overwritten.
func TestSignInSettings_SavedWhileTheProviderIsAsked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, other := o.person(t, account.Admin), o.person(t, account.Admin)
	provider := oidctest.New(t, o.Now)
	const path = "/settings/signin"
	o.CLI(new(any), "company", "domain", "add", "--company", "acme", "acme.test")
	admin.Send(o.base+path, url.Values{"name": {"Acme ID"}, "issuer": {provider.URL}, "clientId": {provider.ClientID},
		"domains": {"acme.test"}, "enabled": {"true"}, "createsUsers": {"true"}, "role": {"operator"}}).Want(t, 303)
	form, stricter := o.openForm(t, admin, path, path), o.openForm(t, other, path, path)
	stricter.Del("createsUsers")
	stricter.Del("enabled")
	form.Set("name", "Renamed")
	provider.Asked(func() { other.Send(o.base+path, stricter).Want(t, 303) })
	page := string(admin.Send(o.base+path, form).Want(t, 422).Body)
	if !strings.Contains(page, "Another administrator") || !strings.Contains(page, `value="Renamed"`) {
		t.Error("the form does not say that another administrator saved, or lost what was typed")
	}
	admin.Send(o.base+path, form).Want(t, 303)
	got, err := o.DB().Provider(t.Context(), o.Company.ID)
	if err != nil || got.Enabled || got.CreatesUsers || got.Name != "Renamed" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Who is limited to policies raises what a connection may do only if its user sees no other policies.
func TestConnections_RaisedByALimitedPerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	limited := o.person(t, account.Admin, o.Policy.ID)
	for _, c := range []struct {
		name   string
		owner  *servertest.Browser
		status int
	}{
		{"of a user who sees all policies", o.person(t, account.Manager), 403},
		{"of a user who sees another policy", o.person(t, account.Manager, o.Policy.ID, o.other.ID), 403},
		{"of a user with the same policy", o.person(t, account.Manager, o.Policy.ID), 303},
		{"of their own", limited, 303},
	} {
		had, want := access.DevicesRead|access.PoliciesRead, access.DevicesRead|access.PoliciesRead
		id := o.ConnectionOf(c.owner.Connect(o.base, had.Scopes()...).Access).ID
		path := "/access/connections/" + id + "/scopes"
		send := func(p *servertest.Browser, scopes access.Permission, status int) {
			p.Send(o.base+path, url.Values{"scope": scopes.Names()}).Want(t, status)
		}
		const says = "may see policies that you may not."
		if offers := !strings.Contains(o.get(t, limited, "/access", 200), says); offers != (c.status == 303) {
			t.Errorf("%s: offered %t", c.name, offers)
		}
		if send(limited, had|access.DevicesCommand, c.status); c.status == 303 {
			want |= access.DevicesCommand
		}
		now := func() access.Permission {
			all, err := o.DB().Connections(t.Context(), o.Company.ID)
			i := slices.IndexFunc(all, func(x oauth.Connection) bool { return x.ID == id })
			if err != nil || i < 0 {
				t.Fatal(all, err)
			}
			return all[i].Scopes
		}
		if got := now(); got != want {
			t.Errorf("%s: the connection has %s, want %s", c.name, got, want)
		}
		if send(limited, access.PoliciesRead, 303); now() != access.PoliciesRead { // taking away is free
			t.Errorf("%s: the connection keeps %s", c.name, now())
		}
		limited.Send(o.base+"/access/connections/"+id+"/revoke", url.Values{}).Want(t, 303)
	}
}
