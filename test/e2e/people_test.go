package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
)

// keyFields are the form of a new key.
func keyFields(page servertest.Page, t *testing.T, permissions ...string) []string {
	fields := []string{"once", page.Field(t, "once"), "name", "made here", "expires", "90"}
	for _, p := range permissions {
		fields = append(fields, "permission", p)
	}
	return fields
}

// secretOf is the key that a page shows, if it shows one.
func secretOf(page servertest.Page) string {
	_, rest, found := strings.Cut(page.Body, `id="shown-key">`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "<")
	return text
}

// Contract 5.3: only who may edit policies makes a key with POLICIES_WRITE,
// only who may provision, under all policies, one with PROVISIONING.
func TestKeys_PermissionsToCreate(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	warehouse := env.Policy(acme, "Warehouse", policy.Agent)
	manager, _ := account.Manager.Rights()
	for _, c := range []struct {
		name       string
		rights     account.Right
		policies   []string
		permission string
		made       bool
	}{
		{"edits policies", account.ManageKeys | manager, nil, "POLICIES_WRITE", true},
		{"does not edit policies", account.ManageKeys | manager&^account.EditPolicies, nil, "POLICIES_WRITE", false},
		{"provisions", account.ManageKeys | manager, nil, "PROVISIONING", true},
		{"does not provision", account.ManageKeys | manager&^account.ProvisionDevices, nil, "PROVISIONING", false},
		{"provisions under one policy", account.ManageKeys | manager, []string{warehouse.ID}, "PROVISIONING", false},
		{"may destroy", account.ManageKeys | manager, nil, "DEVICES_COMMAND_DESTRUCTIVE", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			person := env.Browser(acme, account.Manager, c.policies...)
			person.Change(func(u *account.User) { u.Rights = c.rights })
			portal := replica.PortalClient(t, person.User)
			form := portal.Get("/access/keys/new").Want(t, 200)
			answer := portal.Post("/access/keys", keyFields(form, t, c.permission)...)
			if secret := secretOf(answer); (secret != "") != c.made || !c.made && answer.Status != 403 {
				t.Fatalf("status %d, secret shown: %v", answer.Status, secret != "")
			} else if c.made {
				key, err := apikey.Authenticator{Keys: env.DB(), Now: env.Now}.Authenticate(t.Context(), secret)
				if err != nil || !slices.Contains(key.Permissions.Names(), c.permission) {
					t.Errorf("the key is %+v, %v", key, err)
				}
			}
		})
	}
	viewer := replica.PortalClient(t, env.Browser(acme, account.Viewer).User)
	if page := viewer.Get("/access/keys/new").Want(t, 403); !strings.Contains(page.Body, "manage API keys") {
		t.Error("a viewer does not learn what is missing")
	}
}

// A key's secret is on one page, once: not in the list, not in the log, not
// after the same form is sent again.
func TestKeys_SecretIsShownOnce(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	portal := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	fields := keyFields(portal.Get("/access/keys/new"), t, "DEVICES_READ")
	secret := secretOf(portal.Post("/access/keys", fields...).Want(t, 200))
	if secret == "" {
		t.Fatal("no secret was shown")
	}
	again := portal.Post("/access/keys", fields...)
	if secretOf(again) != "" || again.Path != "/access" {
		t.Errorf("the form made a second key: %s", again.Path)
	}
	keys, err := env.Admin().Keys.Keys(t.Context(), acme.ID)
	if err != nil || len(keys) != 1 || keys[0].ExpiresAt.Sub(keys[0].CreatedAt) != 90*24*time.Hour {
		t.Errorf("%d keys, %+v, %v", len(keys), keys, err)
	}
	for _, path := range []string{"/access", "/activity", "/activity/export?format=ndjson", "/activity/export?format=csv"} {
		if strings.Contains(portal.Get(path).Want(t, 200).Body, secret[12:]) {
			t.Errorf("%s shows the secret", path)
		}
	}
	if strings.Contains(string(env.Log.Text()), secret[12:]) {
		t.Error("the secret is in the log")
	}
	if id := keys[0].ID; portal.Post("/access/keys/"+id+"/revoke").Want(t, 200).Path != "/access" {
		t.Error("revoking leads elsewhere")
	}
	replica.As(secret).Get("/assets").Want(t, 401)
}

// Opening a gate, and keys that do more than read, take a fresh proof of identity.
func TestPortal_DangerousChangesNeedAFreshProof(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{DeviceCommands: true})
	portal := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	env.Advance(account.ReauthFresh + time.Second)
	on := func(gate access.Gate) string {
		return portal.Post("/access/gates", "gate", string(gate), "on", "true").Want(t, 200).Path
	}
	settings := func() access.Settings {
		c, err := env.DB().CompanyByID(t.Context(), acme.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Settings
	}
	for _, gate := range []access.Gate{access.PolicyChanges, access.DestructiveCommands} {
		if path := on(gate); !strings.HasPrefix(path, "/account/prove") || settings().PolicyChanges || settings().DestructiveCommands {
			t.Errorf("%s: %s", gate, path)
		}
	}
	form := portal.Get("/access/keys/new")
	if page := portal.Post("/access/keys", keyFields(form, t, "DEVICES_COMMAND")...); !strings.HasPrefix(page.Path, "/account/prove") ||
		secretOf(page) != "" {
		t.Errorf("a key that may command: %d at %s", page.Status, page.Path)
	}
	if page := portal.Post("/access/keys", keyFields(form, t, "DEVICES_READ")...); secretOf(page) == "" {
		t.Errorf("a key that reads: %d at %s", page.Status, page.Path)
	}
	portal.Post("/account/prove", "password", "wrong", "next", "/access").Want(t, 401)
	if page := portal.Post("/account/prove", "password", servertest.Password, "next", "//evil.example").Want(t, 200); page.Path != "/" {
		t.Errorf("the proof leads to %s", page.Path)
	}
	if path := on(access.DestructiveCommands); path != "/access" || !settings().DestructiveCommands {
		t.Errorf("after the proof: %s", path)
	}
	switches, err := env.DB().Switches(t.Context(), acme.ID)
	if err != nil || len(switches) < 1 || !strings.Contains(portal.Get("/access").Body, "Switched by") {
		t.Errorf("%v, %v", switches, err)
	}
}

// Pages of other origins cannot make the browser do anything.
func TestPortal_OtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	portal := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	for _, path := range []string{"/access/gates", "/access/keys", "/users", "/settings", "/settings/signin", "/account/password",
		"/account/prove", "/activity/verify", "/settings/platform", "/signin", "/signin/company", "/invitation"} {
		portal.Submit(path, url.Values{"gate": {"deviceCommands"}, "on": {"true"}}, "Origin", "https://evil.example",
			"Sec-Fetch-Site", "cross-site").Want(t, http.StatusForbidden)
	}
	if c, err := env.DB().CompanyByID(t.Context(), acme.ID); err != nil || c.Settings.DeviceCommands {
		t.Errorf("%+v, %v", c.Settings, err)
	}
}

// Users are invited, changed within what the changer has, and never the last
// administrator shut out.
func TestUsers_ChangesStayWithinTheEditorsRights(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme, other := env.Company("acme", access.Settings{}), env.Company("other", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	portal := replica.PortalClient(t, admin)

	page := portal.Post("/users", "email", "new@acme.test", "name", "New", "role", "operator", "scope", "all").Want(t, 200)
	_, link, found := strings.Cut(page.Body, "/invitation#")
	code, _, _ := strings.Cut(link, "<")
	if !found {
		t.Fatalf("no invitation: %.500s", page.Body)
	}
	guest := replica.SignedOut(t)
	guest.Post("/invitation", "code", code, "password", "short", "again", "short").Want(t, 422)
	guest.Post("/invitation", "code", code, "password", "long enough 1", "again", "long enough 1").Want(t, 200)
	guest.Get("/account").Want(t, 200)
	replica.SignedOut(t).Post("/invitation", "code", code, "password", "long enough 2", "again", "long enough 2").Want(t, 404)
	guest.Get("/users").Want(t, 403)
	guest.Get("/activity").Want(t, 403)

	// The only administrator cannot step down, nor be disabled by themselves.
	portal.Post("/users/"+admin.ID, "name", "Ada", "role", "viewer", "scope", "all").Want(t, 409)
	portal.Post("/users/"+admin.ID+"/disabled", "disabled", "true")
	if u, err := env.DB().UserByID(t.Context(), acme.ID, admin.ID); err != nil || u.Disabled || u.Role != account.Admin {
		t.Fatalf("%+v, %v", u, err)
	}
	// One who manages users without the other rights cannot hand these out, nor touch who has them.
	clerk := env.Browser(acme, account.Viewer)
	viewer, _ := account.Viewer.Rights()
	clerk.Change(func(u *account.User) { u.Rights = viewer | account.ManageUsers })
	small := replica.PortalClient(t, clerk.User)
	small.Post("/users", "email", "boss@acme.test", "role", "admin", "scope", "all").Want(t, 403)
	small.Post("/users/"+admin.ID, "name", "X", "role", "viewer", "scope", "all").Want(t, 403)
	small.Post("/users", "email", "eye@acme.test", "role", "viewer", "scope", "all").Want(t, 200)

	// Another company's users are not found.
	stranger := env.Browser(other, account.Viewer).User
	portal.Get("/users/"+stranger.ID).Want(t, 404)
	portal.Post("/users/"+stranger.ID+"/disabled", "disabled", "true").Want(t, 404)

	// A disabled user is out at once.
	u, err := env.DB().UserByEmail(t.Context(), "new@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	portal.Post("/users/"+u.ID+"/disabled", "disabled", "true").Want(t, 200)
	if path := guest.Get("/account").Path; !strings.HasPrefix(path, "/signin") {
		t.Errorf("a disabled user sees %s", path)
	}
}

// Company sign-in lets in, links and creates exactly who it should.
func TestCompanySignIn_LinksAndCreatesUsers(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme, other := env.Company("acme", access.Settings{}), env.Company("other", access.Settings{})
	admin := env.Browser(acme, account.Admin)
	theirs := env.Browser(other, account.Admin).User // …@other.test
	provider := oidctest.New(t, env.Now)
	env.CLI(new(any), "company", "domain", "add", "--company", "acme", "acme.test")
	env.CLI(new(any), "company", "domain", "add", "--company", "acme", "other.test")
	setUp := func(domains, creates string) servertest.Page {
		return replica.PortalClient(t, admin.User).Post("/settings/signin", "name", "Acme ID", "issuer", provider.URL,
			"clientId", provider.ClientID,
			"clientSecret", provider.Secret, "domains", domains, "enabled", "true", "createsUsers", creates, "role", "operator")
	}
	if page := setUp("acme.test other.test", "false").Want(t, 200); strings.Contains(page.Body, provider.Secret) {
		t.Error("the client's secret is shown")
	}
	// try signs a person in; ok if they come in.
	try := func(email string, who oidctest.Browser, spoil func(map[string]any)) (*servertest.PortalClient, bool, string) {
		provider.Be(who, spoil)
		portal := replica.SignedOut(t)
		page := portal.Post("/signin/company", "email", email, "next", "/account")
		_, rest, found := strings.Cut(page.Body, `href="`+provider.URL)
		address, _, _ := strings.Cut(rest, `"`)
		if !found {
			return portal, false, page.Body
		}
		back := portal.Get(provider.URL + strings.ReplaceAll(address, "&amp;", "&"))
		if strings.Contains(back.Body, "Confirm your account") {
			back = portal.Post("/signin/link", "link", back.Field(t, "link"), "password", servertest.Password)
		}
		return portal, back.Path == "/account", back.Body
	}
	if _, in, _ := try("person@else.test", oidctest.Browser{Subject: "x", Email: "person@else.test"}, nil); in {
		t.Error("a domain without a company was let in")
	}
	for _, c := range []struct {
		name  string
		who   oidctest.Browser
		spoil func(map[string]any)
		in    bool
	}{
		{"unknown user", oidctest.Browser{Subject: "1", Email: "new@acme.test"}, nil, false},
		{"unverified address", oidctest.Browser{Subject: "2", Email: admin.User.Email, Unverified: true}, nil, false},
		{"foreign domain", oidctest.Browser{Subject: "3", Email: "a@elsewhere.test"}, nil, false},
		{"another company's user", oidctest.Browser{Subject: "4", Email: theirs.Email}, nil, false},
		{"wrong nonce", oidctest.Browser{Subject: "5", Email: admin.User.Email}, func(c map[string]any) { c["nonce"] = "other" }, false},
		{"wrong audience", oidctest.Browser{Subject: "5", Email: admin.User.Email}, func(c map[string]any) { c["aud"] = "other" }, false},
		{"expired", oidctest.Browser{Subject: "5", Email: admin.User.Email}, func(c map[string]any) { c["exp"] = 1 }, false},
		{"known user is linked", oidctest.Browser{Subject: "5", Email: admin.User.Email}, nil, true},
		{"linked user with another address", oidctest.Browser{Subject: "5", Email: "renamed@acme.test", Unverified: true}, nil, true},
	} {
		if _, in, body := try(admin.User.Email, c.who, c.spoil); in != c.in {
			t.Errorf("%s: in %v: %.800s", c.name, in, body)
		}
	}
	setUp("acme.test", "true").Want(t, 200)
	if _, in, body := try("new@acme.test", oidctest.Browser{Subject: "9", Email: "new@acme.test", Name: "New Person"}, nil); !in {
		t.Errorf("a new person: %.800s", body)
	}
	made, err := env.DB().UserByEmail(t.Context(), "new@acme.test")
	want := made
	want.Role, want.Name, want.CompanyID = account.Operator, "New Person", acme.ID
	if diff := cmp.Diff(want, made); err != nil || diff != "" {
		t.Errorf("the new person: %v (-want +got):\n%s", err, diff)
	}
	// A code that arrives in another browser signs no one in.
	provider.Be(oidctest.Browser{Subject: "5", Email: admin.User.Email}, nil)
	page := replica.SignedOut(t).Post("/signin/company", "email", admin.User.Email)
	_, rest, _ := strings.Cut(page.Body, `href="`+provider.URL)
	address, _, _ := strings.Cut(rest, `"`)
	if back := replica.SignedOut(t).Get(provider.URL + strings.ReplaceAll(address, "&amp;", "&")); back.Status != 400 {
		t.Errorf("another browser: %d at %s", back.Status, back.Path)
	}
	for _, secret := range []string{provider.Secret} {
		rows, err := env.DB().Provider(t.Context(), acme.ID)
		if err != nil || strings.Contains(string(rows.Secret), secret) {
			t.Errorf("the client's secret is kept open: %v", err)
		}
	}
}

// What people do in the portal is in its log, and no other company sees it.
func TestActivity_RecordsPortalActions(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme, other := env.Company("acme", access.Settings{}), env.Company("other", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	portal := replica.PortalClient(t, admin)
	portal.Post("/access/gates", "gate", "policyChanges", "on", "true").Want(t, 200)
	portal.Post("/settings", "name", "Acme & Söhne <b>", "inactiveAfter", "10", "keepActivity", "365").Want(t, 200)
	replica.SignedOut(t).Post("/signin", "email", admin.Email, "password", "wrong").Want(t, 401)

	page := portal.Get("/activity").Want(t, 200)
	if strings.Contains(page.Body, "<b>") {
		t.Error("a name is not escaped")
	}
	entries, err := env.DB().Activity(t.Context(), activity.Filter{CompanyID: acme.ID}, activity.Cursor{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	byAction := map[activity.Action]activity.Entry{}
	for _, e := range entries {
		byAction[e.Action] = e
	}
	changed := byAction[activity.CompanyChanged]
	if changed.Actor.ID != admin.ID || changed.Actor.Name != admin.Name || changed.RequestID == "" || changed.Address == "" {
		t.Errorf("the change of settings: %+v", changed)
	}
	if e := byAction[activity.SignInRefused]; e.Outcome != activity.Refused || e.Target.ID != admin.ID {
		t.Errorf("the refused sign-in: %+v", e)
	}
	if e := byAction[activity.SignedIn]; e.Actor.ID != admin.ID {
		t.Errorf("the sign-in: %+v", e)
	}
	if page := portal.Post("/activity/verify").Want(t, 200); !strings.Contains(page.Body, "head signed by this service") {
		t.Error("the chain is not sound")
	}
	foreign := replica.PortalClient(t, env.Browser(other, account.Admin).User)
	if body := foreign.Get("/activity").Want(t, 200).Body; strings.Contains(body, admin.Email) {
		t.Error("another company sees the log")
	}
	lines := strings.Count(portal.Get("/activity/export?format=ndjson").Want(t, 200).Body, "\n")
	if lines < 5 {
		t.Errorf("%d lines exported", lines)
	}
	portal.Get("/activity/export?format=xml").Want(t, 400)
}

// Sessions are listed and end at once.
func TestSessions_AreRevocable(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	user := env.Browser(acme, account.Viewer).User
	first, second := replica.PortalClient(t, user), replica.PortalClient(t, user)
	sessions, err := env.DB().Sessions(t.Context(), user.ID)
	if err != nil || len(sessions) != 2 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	oldest := sessions[1].ID
	if sessions[0].CreatedAt.Before(sessions[1].CreatedAt) {
		oldest = sessions[0].ID
	}
	second.Post(fmt.Sprintf("/account/sessions/%s/end", oldest)).Want(t, 200)
	if path := first.Get("/account").Path; !strings.HasPrefix(path, "/signin") {
		t.Errorf("the ended session sees %s", path)
	}
	second.Get("/account").Want(t, 200)
	// A new password ends the others.
	third := replica.PortalClient(t, user)
	second.Post("/account/password", "current", "wrong", "password", "another one 1", "again", "another one 1").Want(t, 422)
	second.Post("/account/password", "current", servertest.Password, "password", "another one 1", "again", "another one 1").Want(t, 200)
	second.Get("/account").Want(t, 200)
	if path := third.Get("/account").Path; !strings.HasPrefix(path, "/signin") {
		t.Errorf("a session outlived the password: %s", path)
	}
}
