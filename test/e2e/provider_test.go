package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
	"github.com/musterhq/muster/internal/service"
)

// recorder is a server that notes its requests.
type recorder struct {
	*httptest.Server
	mu    sync.Mutex
	lines []string
}

func newRecorder(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.lines = append(r.lines, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.lines...)
}

// describe is a description whose endpoints are elsewhere.
func describe(issuer func() string, endpoints string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer(), "authorization_endpoint": issuer() + "/a",
			"token_endpoint": endpoints + "/admin/reset", "jwks_uri": issuer() + "/k"})
	}
}

// TestProvider_ReachesNoPrivateAddress: without MUSTER_PRIVATE_PROVIDERS no
// provider is asked at a private address; with it, none outside its networks,
// none through a redirect, and none by http beyond loopback.
func TestProvider_ReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	secret := "SECRET-OF-AN-INTERNAL-SERVICE"
	inside := newRecorder(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, secret)
	})
	moved := newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL+"/latest/meta-data", http.StatusFound)
	})
	fields := func(issuer string) []string {
		return []string{"name", "x", "issuer", issuer, "clientId", "x", "domains", "acme.test", "enabled", "true", "role", "viewer"}
	}
	env := servertest.New(t)
	acme := env.Company("acme", access.Settings{})
	user := env.Browser(acme, account.Admin).User
	closed := env.Start(func(c *config.Service, _ *service.Options) { c.PrivateProviders = nil })
	admin := closed.PortalClient(t, user)
	for _, issuer := range []string{inside.URL, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1),
		strings.Replace(inside.URL, "http:", "https:", 1), "https://169.254.169.254", "https://[::1]", "http://example.com"} {
		page := admin.Post("/settings/signin", fields(issuer)...)
		if page.Status != 422 || !strings.Contains(page.Body, "MUSTER_PRIVATE_PROVIDERS") {
			t.Errorf("%s: got %d, want 422 that names the setting", issuer, page.Status)
		}
	}
	if requests := inside.requests(); len(requests) != 0 {
		t.Fatalf("a private address was asked %v", requests)
	}
	open := env.Start()
	admin = open.PortalClient(t, user)
	admin.Post("/settings/signin", fields(moved.URL)...).Want(t, 422)
	if requests := inside.requests(); len(moved.requests()) != 1 || len(requests) != 0 {
		t.Errorf("a redirect was followed to %v", requests)
	}
	admin.Post("/settings/signin", fields(inside.URL)...).Want(t, 422)
	// The token endpoint is bound by the same rules as the issuer.
	var evil *recorder
	evil = newRecorder(t, describe(func() string { return evil.URL }, "http://10.0.0.1"))
	admin.Post("/settings/signin", fields(evil.URL)...).Want(t, 200)
	portal := open.SignedOut(t)
	page := portal.Post("/signin/company", "email", "a@acme.test").Want(t, 200)
	_, rest, _ := strings.Cut(page.Body, "state=")
	state, _, _ := strings.Cut(rest, `"`)
	portal.Get("/signin/callback?code=x&state="+state).Want(t, 401)
	if log := string(env.Log.Text()); strings.Contains(log, secret) {
		t.Error("what a private address answered is in the log")
	}
	if _, err := (config.Service{PrivateProviders: []string{"10.0.0.0/8", "::1/128"}}).ProviderNetworks(); err != nil {
		t.Errorf("networks: %v", err)
	}
	if wrong, err := (config.Service{PrivateProviders: []string{"10.0.0.1"}}).ProviderNetworks(); err == nil {
		t.Errorf("an address was taken for a network: %v", []netip.Prefix(wrong))
	}
}

// TestProvider_IsAskedSeldom: its description is kept for an hour, a long one is
// not read, and strangers who begin to sign in are limited.
func TestProvider_IsAskedSeldom(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	var long atomic.Bool
	var front *recorder
	front = newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		if long.Load() {
			_, _ = fmt.Fprint(w, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
			return
		}
		describe(func() string { return front.URL }, front.URL)(w, r)
	})
	save := func() servertest.Page {
		return replica.PortalClient(t, admin).Post("/settings/signin",
			"name", "x", "issuer", front.URL, "clientId", "x", "domains", "acme.test",
			"enabled", "true", "role", "viewer")
	}
	save().Want(t, 200)
	stranger := env.Browser(acme, account.Viewer)
	served := 0
	for range 200 {
		if stranger.Send(replica.PublicURL()+"/signin/company", url.Values{"email": {"a@acme.test"}}).Status == 200 {
			served++
		}
	}
	if served != 60 || len(front.requests()) != 1 {
		t.Errorf("of 200 requests of one network: served %d, asked the provider %d times; want 60 and 1", served, len(front.requests()))
	}
	env.Advance(time.Hour)
	long.Store(true)
	if page := replica.SignedOut(t).Post("/signin/company", "email", "a@acme.test"); page.Status != http.StatusBadGateway {
		t.Errorf("with a description of a mebibyte: got %d, want 502", page.Status)
	}
	save().Want(t, 422)
}

// TestProvider_IsAskedOnceForEachSignIn: who comes back with made-up codes makes Muster ask the
// provider once for each state, and not for more than 60 in a minute.
func TestProvider_IsAskedOnceForEachSignIn(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	var front *recorder
	front = newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
		describe(func() string { return front.URL }, front.URL)(w, r)
	})
	replica.PortalClient(t, env.Browser(acme, account.Admin).User).Post("/settings/signin", "name", "x", "issuer", front.URL,
		"clientId", "x", "domains", "acme.test", "enabled", "true", "role", "viewer").Want(t, 200)
	exchanges := func() (n int) {
		for _, line := range front.requests() {
			if line == "POST /admin/reset" {
				n++
			}
		}
		return n
	}
	stranger := env.Browser(acme, account.Viewer)
	page := stranger.Send(replica.PublicURL()+"/signin/company", url.Values{"email": {"a@acme.test"}}).Want(t, 200)
	_, rest, _ := strings.Cut(string(page.Body), "state=")
	state := rest[:strings.IndexAny(rest, `"&`)]
	var kept []string
	for _, c := range stranger.Cookies(replica.PublicURL() + "/signin/callback") {
		kept = append(kept, c.String())
	}
	returns := func(state string) servertest.Answer {
		return stranger.Send(replica.PublicURL()+"/signin/callback?code=x&state="+state, nil, "Cookie", strings.Join(kept, "; "))
	}
	returns(state).Want(t, 401)
	first := exchanges() // with the client's secret in each of its two places
	if first == 0 {
		t.Fatal("the provider was not asked for a first return")
	}
	if again := returns(state).Want(t, 400); !strings.Contains(string(again.Body), "used already: start again") {
		t.Errorf("the second return does not say what to do: %s", again.Body)
	}
	for n := range 58 {
		returns(fmt.Sprint("made-up", n)).Want(t, 400)
	}
	if limited := returns("made-up").Want(t, 429); limited.Header.Get("Retry-After") == "" {
		t.Error("over the limit: no Retry-After")
	}
	env.Advance(time.Minute)
	returns(state).Want(t, 400)
	if n := exchanges(); n != first {
		t.Errorf("the provider was asked %d times, want %d", n, first)
	}
}

// TestProvider_SavingNeedsEveryRightOfItsUsers: who manages company settings
// alone does not decide who its users are.
func TestProvider_SavingNeedsEveryRightOfItsUsers(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin, clerk := env.Browser(acme, account.Admin), env.Browser(acme, account.Viewer)
	viewer, _ := account.Viewer.Rights()
	provider := oidctest.New(t, env.Now)
	for rights, text := range map[account.Right]string{
		viewer | account.ManageCompany:                       "manage-users",
		viewer | account.ManageCompany | account.ManageUsers: "may do more than you",
	} {
		t.Run(text, func(t *testing.T) {
			clerk.Change(func(u *account.User) { u.Rights = rights })
			page := replica.PortalClient(t, clerk.User).Post("/settings/signin", providerFields(provider, "acme.test")...)
			if page.Status != 403 || !strings.Contains(page.Body, text) {
				t.Errorf("%v: got %d, want 403 with %q", rights.Names(), page.Status, text)
			}
		})
	}
	if _, err := env.DB().Provider(t.Context(), acme.ID); err == nil {
		t.Error("the provider was saved")
	}
	replica.PortalClient(t, admin.User).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
}

// TestCompanySignIn_FirstLinkNeedsTheOwnersProof: the provider's word alone does
// not open an account that has a password or a passkey; once its owner has
// confirmed, it does, and the log says so.
func TestCompanySignIn_FirstLinkNeedsTheOwnersProof(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start(servertest.OnLocalhost(t))
		acme := env.Company("acme", access.Settings{})
		admin, keyed := env.Browser(acme, account.Admin).User, env.Browser(acme, account.Viewer).User
		provider := oidctest.New(t, env.Now)
		replica.PortalClient(t, admin).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
		provider.Be(oidctest.Browser{Subject: "1", Email: admin.Email}, nil)
		portal := replica.SignedOut(t)
		page := signsIn(t, portal, provider, admin.Email).Want(t, 200)
		link := page.Field(t, "link")
		if !strings.Contains(page.Body, "Confirm your account") || !strings.HasPrefix(portal.Get("/account").Path, "/signin") {
			t.Fatalf("the first sign-in: got %s, want the question", page.Path)
		}
		portal.Post("/signin/link", "link", link, "password", "wrong password").Want(t, 401)
		portal.Post("/signin/link", "link", "mst_made-up", "password", servertest.Password).Want(t, 401)
		if page := portal.Post("/signin/link", "link", link, "password", servertest.Password); page.Path != "/account" {
			t.Fatalf("with the password: got %d at %s, want /account", page.Status, page.Path)
		}
		replica.SignedOut(t).Post("/signin/link", "link", link, "password", servertest.Password).Want(t, 401)
		if page := signsIn(t, replica.SignedOut(t), provider, admin.Email); page.Path != "/account" {
			t.Errorf("the second sign-in: got %d at %s, want /account", page.Status, page.Path)
		}
		entries, err := env.DB().Activity(t.Context(), activity.Filter{CompanyID: acme.ID}, activity.Cursor{}, 100)
		linked := 0
		for _, e := range entries {
			if e.Action == activity.IdentityLinked && e.Target.ID == admin.ID {
				linked++
			}
		}
		if err != nil || linked != 1 {
			t.Errorf("entries of the link: got %d, %v, want 1", linked, err)
		}
		// A person with a passkey uses it: the password is not enough.
		key := servertest.NewAuthenticator(t, replica.PublicURL())
		replica.PortalClient(t, keyed).AddPasskey(key).Want(t, 200)
		provider.Be(oidctest.Browser{Subject: "2", Email: keyed.Email}, nil)
		page = signsIn(t, portal, provider, keyed.Email).Want(t, 200)
		link = page.Field(t, "link")
		page = portal.Post("/signin/link", "link", link, "password", servertest.Password).Want(t, 401)
		page = portal.Post("/signin/link", "link", link, "token", page.Field(t, "token"), "answer", key.Get(page.Options(t)))
		if page.Path != "/account" {
			t.Errorf("with the passkey: got %d at %s, want /account", page.Status, page.Path)
		}
	})
}

// TestCompanySignIn_AddressOfAnotherPerson: who gets the address of a person who left does not
// get that person's account, unless the operator sets a password for it. A provider that is
// replaced signs its users in.
func TestCompanySignIn_AddressOfAnotherPerson(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", access.Settings{})
		root := env.Browser(acme, account.Admin).User
		admin := replica.PortalClient(t, root)
		provider := oidctest.New(t, env.Now)
		admin.Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
		admin.Post("/users", "email", "ada@acme.test", "name", "Ada", "role", "viewer", "scope", "all").Want(t, 200)
		arrives := func(p *oidctest.Provider, subject string) servertest.Page {
			p.Be(oidctest.Browser{Subject: subject, Email: "ada@acme.test"}, nil)
			return signsIn(t, replica.SignedOut(t), p, "ada@acme.test")
		}
		for range 2 {
			if page := arrives(provider, "first"); page.Path != "/account" {
				t.Fatalf("the first person: %d at %s", page.Status, page.Path)
			}
		}
		if page := arrives(provider, "second"); page.Status != 401 ||
			!strings.Contains(page.Body, "belongs to another account at Acme ID") {
			t.Errorf("the next person with the address: %d at %s", page.Status, page.Path)
		}
		next := oidctest.New(t, env.Now)
		admin.Post("/settings/signin", providerFields(next, "acme.test")...).Want(t, 200)
		if page := arrives(next, "third"); page.Path != "/account" {
			t.Errorf("at another issuer: %d at %s", page.Status, page.Path)
		}
		u, err := env.DB().UserByEmail(t.Context(), "ada@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := env.DB().UpdateUser(t.Context(), acme.ID, u.ID, func(u *account.User) error {
			u.PasswordHash = root.PasswordHash
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		next.Be(oidctest.Browser{Subject: "fourth", Email: u.Email}, nil)
		if page := links(t, replica.SignedOut(t), next, u.Email); page.Path != "/account" {
			t.Errorf("with the password: %d at %s", page.Status, page.Path)
		}
	})
}

// TestCompanySignIn_IsAsFreshAsTheProviderSays: a provider that did not ask the
// person proves nothing for what is dangerous.
func TestCompanySignIn_IsAsFreshAsTheProviderSays(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{DeviceCommands: true})
	admin := env.Browser(acme, account.Admin).User
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, admin).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	who := oidctest.Browser{Subject: "1", Email: admin.Email}
	provider.Be(who, nil)
	links(t, replica.SignedOut(t), provider, admin.Email).Want(t, 200)
	for name, c := range map[string]struct {
		spoil func(map[string]any)
		fresh bool
	}{
		"hours ago":     {func(c map[string]any) { c["auth_time"] = env.Now().Add(-11 * time.Hour).Unix() }, false},
		"not given":     {func(c map[string]any) { delete(c, "auth_time") }, false},
		"just now":      {nil, true},
		"in the future": {func(c map[string]any) { c["auth_time"] = env.Now().Add(time.Hour).Unix() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			provider.Be(who, c.spoil)
			portal := replica.SignedOut(t)
			if page := signsIn(t, portal, provider, admin.Email); page.Path != "/account" {
				t.Fatalf("%s: got %d at %s, want /account", name, page.Status, page.Path)
			}
			page := portal.Post("/access/gates", "gate", "destructiveCommands", "on", "true")
			if proves := strings.HasPrefix(page.Path, "/account/prove"); proves == c.fresh {
				t.Errorf("%s: asked for a proof: %v, at %s", name, proves, page.Path)
			}
			if name == "in the future" {
				env.Advance(account.ReauthFresh + time.Second)
				page := portal.Post("/access/gates", "gate", "destructiveCommands", "on", "true")
				if !strings.HasPrefix(page.Path, "/account/prove") {
					t.Error("a clock that is ahead makes the proof last longer")
				}
			}
		})
	}
	// A proof at the provider asks for a new sign-in there, and takes only one.
	portal := replica.SignedOut(t)
	provider.Be(who, func(c map[string]any) { delete(c, "auth_time") })
	signsIn(t, portal, provider, admin.Email)
	portal.Post("/account/prove/company", "next", "/access").Want(t, 403) // the person has a password
	if _, err := env.DB().UpdateUser(t.Context(), acme.ID, admin.ID, func(u *account.User) error {
		u.PasswordHash = ""
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	signsIn(t, portal, provider, admin.Email)
	page := portal.Post("/account/prove/company", "next", "/access").Want(t, 200)
	if !strings.Contains(page.Body, "prompt=login") || !strings.Contains(page.Body, "max_age=0") {
		t.Error("the provider is not asked to have the person sign in again")
	}
	_, rest, _ := strings.Cut(page.Body, `href="`+provider.URL)
	address, _, _ := strings.Cut(rest, `"`)
	if back := portal.Get(provider.URL + strings.ReplaceAll(address, "&amp;", "&")); back.Status != 401 {
		t.Errorf("a proof without a new sign-in: got %d at %s, want 401", back.Status, back.Path)
	}
}

// TestCompanySignIn_ProofByAnotherPersonChangesNothing: who comes back from a proof as another person is neither made a user
// nor linked.
func TestCompanySignIn_ProofByAnotherPersonChangesNothing(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	provider := oidctest.New(t, env.Now)
	fields := providerFields(provider, "acme.test")
	fields[slices.Index(fields, "createsUsers")+1] = "true"
	admin.Post("/settings/signin", fields...).Want(t, 200)
	ada := oidctest.Browser{Subject: "1", Email: "ada@acme.test", Name: "Ada"}
	ben := oidctest.Browser{Subject: "2", Email: "ben@acme.test", Name: "Ben"}
	provider.Be(ada, nil)
	portal := replica.SignedOut(t)
	if page := signsIn(t, portal, provider, ada.Email); page.Path != "/account" {
		t.Fatalf("the first sign-in: %d at %s", page.Status, page.Path)
	}
	entries := func() int {
		all, err := env.DB().Activity(t.Context(), activity.Filter{CompanyID: acme.ID}, activity.Cursor{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	proves := func(as oidctest.Browser) servertest.Page {
		provider.Be(as, nil)
		page := portal.Post("/account/prove/company", "next", "/account").Want(t, 200)
		_, rest, _ := strings.Cut(page.Body, `href="`+provider.URL)
		address, _, _ := strings.Cut(rest, `"`)
		return portal.Get(provider.URL + strings.ReplaceAll(address, "&amp;", "&"))
	}
	refused := func(what string) {
		t.Helper()
		before := entries()
		if page := proves(ben); page.Status != 401 || !strings.Contains(page.Body, "You came back as another user, ben@acme.test") {
			t.Errorf("%s: %d at %s", what, page.Status, page.Path)
		}
		if n := entries() - before; n != 0 {
			t.Errorf("%s: %d entries of activity, want none", what, n)
		}
	}
	refused("a person who is no user")
	if _, err := env.DB().UserByEmail(t.Context(), ben.Email); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the user whom a refused proof made: %v", err)
	}
	admin.Post("/users", "email", ben.Email, "name", ben.Name, "role", "viewer", "scope", "all").Want(t, 200)
	refused("a user without a password")
	if _, err := env.DB().IdentityUser(t.Context(), acme.ID, provider.URL, ben.Subject); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the identity that a refused proof linked: %v", err)
	}
	if page := proves(ada); page.Path != "/account" || page.Status != 200 {
		t.Errorf("the person's own proof: %d at %s", page.Status, page.Path)
	}
}

// TestCompanySignIn_AnotherIssuersAnswerIsRefused (RFC 9207).
func TestCompanySignIn_AnotherIssuersAnswerIsRefused(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, admin).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	portal := replica.SignedOut(t)
	address, _ := begins(portal, provider, admin.Email)
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	portal.Get("/signin/callback?code=x&iss=https%3A%2F%2Fother.example&state="+url.QueryEscape(to.Query().Get("state"))).Want(t, 401)
	if log := string(env.Log.Text()); !strings.Contains(log, "names another issuer") {
		t.Error("the answer was refused for another reason")
	}
}

// TestDomains_AreAssignedByTheOperator: with several companies on an
// installation none takes another's domain; with one, nothing needs to be said.
func TestDomains_AreAssignedByTheOperator(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", access.Settings{})
		provider := oidctest.New(t, env.Now)
		save := func(v *servertest.PortalClient, domain string) servertest.Page {
			return v.Post("/settings/signin", providerFields(provider, domain)...)
		}
		owner := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
		save(owner, "acme.test").Want(t, 200)
		evil := env.Company("evil", access.Settings{})
		squatter := replica.PortalClient(t, env.Browser(evil, account.Admin).User)
		for _, domain := range []string{"acme.test", "example.com"} {
			page := save(squatter, domain)
			if want := "muster company domain add --company evil " + domain; page.Status != 422 || !strings.Contains(page.Body, want) {
				t.Errorf("%s: got %d, want 422 that names %q", domain, page.Status, want)
			}
		}
		var added struct{ Company, Domain string }
		env.CLI(&added, "company", "domain", "add", "--company", "evil", "Example.com")
		if added.Company != "evil" || added.Domain != "example.com" {
			t.Errorf("added: got %+v", added)
		}
		save(squatter, "example.com").Want(t, 200)
		save(owner, "acme.test").Want(t, 200)
		var all []struct{ Domain string }
		env.CLI(&all, "company", "domain", "list", "--company", "acme")
		if len(all) != 1 || all[0].Domain != "acme.test" {
			t.Errorf("domains of acme: got %+v, want acme.test", all)
		}
		env.CLI(&added, "company", "domain", "remove", "--company", "evil", "example.com")
		if page := replica.SignedOut(t).Post("/signin/company", "email", "a@example.com"); page.Status != 404 {
			t.Errorf("a removed domain: got %d, want 404", page.Status)
		}
		// An administrator of one company learns nothing about users of another.
		known := env.Browser(acme, account.Viewer).User.Email
		var alerts [2]string
		for i, email := range []string{known, "missing@acme.test"} {
			page := squatter.Post("/users", "email", email, "name", "X", "role", "viewer", "scope", "all").Want(t, 409)
			_, text, _ := strings.Cut(page.Body, `role="alert"`)
			text, _, _ = strings.Cut(text, "</div>")
			alerts[i] = strings.ReplaceAll(text, email, "")
		}
		if alerts[0] != alerts[1] {
			t.Errorf("an address that is a user and one that is none: got %q and %q", alerts[0], alerts[1])
		}
	})
}

// An invitation is recorded, never opens an account in use, and is over when who made it is disabled.
func TestInvitation_IsRecordedAndNeverOpensAnAccountInUse(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", access.Settings{})
		admin, colleague := env.Browser(acme, account.Admin).User, env.Browser(acme, account.Viewer)
		provider := oidctest.New(t, env.Now)
		v := replica.PortalClient(t, admin)
		v.Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
		colleague.Change(func(u *account.User) { u.PasswordHash = "" }) // signs in through the provider alone
		first := invitationCode(t, v.Post("/users/"+colleague.User.ID+"/invitation").Want(t, 200))
		provider.Be(oidctest.Browser{Subject: "1", Email: colleague.User.Email}, nil)
		if page := signsIn(t, replica.SignedOut(t), provider, colleague.User.Email); page.Path != "/account" {
			t.Fatalf("the colleague: got %d at %s, want /account", page.Status, page.Path)
		}
		if page := v.Post("/users/"+colleague.User.ID+"/invitation").Want(t, 200); strings.Contains(page.Body, "/invitation#") ||
			!strings.Contains(page.Body, "can sign in already") {
			t.Errorf("an invitation for a user who signs in: got one at %s", page.Path)
		}
		// Not even with a link that was made before.
		replica.SignedOut(t).Post("/invitation", "code", first, "password", "chosen by admin", "again", "chosen by admin").Want(t, 404)

		page := v.Post("/users", "email", "new@acme.test", "name", "New", "role", "viewer", "scope", "all").Want(t, 200)
		replica.SignedOut(t).Post("/invitation", "code", invitationCode(t, page), "password", "chosen by new", "again",
			"chosen by new").Want(t, 200)
		thief := env.Browser(acme, account.Admin)
		theirs := replica.PortalClient(t, thief.User)
		page = theirs.Post("/users", "email", "late@acme.test", "name", "Late", "role", "admin", "scope", "all").Want(t, 200)
		late := invitationCode(t, page)
		v.Post("/users/"+thief.User.ID+"/disabled", "disabled", "true").Want(t, 200)
		replica.SignedOut(t).Post("/invitation", "code", late, "password", "chosen by thief", "again", "chosen by thief").Want(t, 404)

		entries, err := env.DB().Activity(t.Context(), activity.Filter{CompanyID: acme.ID}, activity.Cursor{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		invited, accepted := 0, 0
		for _, e := range entries {
			if e.Action == activity.UserInvited && e.Actor.ID == admin.ID {
				invited++
			}
			for _, c := range e.Changes {
				if e.Target.Name == "new@acme.test" && strings.Contains(c.Field+c.After, "nvitation") &&
					strings.Contains(c.After, admin.Name) {
					accepted++
				}
			}
		}
		if invited != 2 || accepted != 2 {
			t.Errorf("entries: got %d invitations by the inviter and %d that name the inviter, want 2 and 2", invited, accepted)
		}
	})
}

// TestDisable_NamesTheKeysOfTheUser: disabling says which keys of the user still
// work, and revokes those that were chosen. Deletion by command says so too.
func TestDisable_NamesTheKeysOfTheUser(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	leaver := env.Browser(acme, account.Admin).User
	makes := func() string {
		v := replica.PortalClient(t, leaver)
		return secretOf(v.Post("/access/keys", keyFields(v.Get("/access/keys/new"), t, "DEVICES_READ")...).Want(t, 200))
	}
	kept, revoked := makes(), makes()
	boss := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	page := boss.Get("/users/"+leaver.ID).Want(t, 200)
	live, err := apikey.Keys{Store: env.DB(), Now: env.Now}.LiveOf(t.Context(), leaver)
	if err != nil || len(live) != 2 {
		t.Fatalf("live keys: got %d, %v, want 2", len(live), err)
	}
	chosen := ""
	for _, k := range live {
		if !strings.Contains(page.Body, k.Prefix) || strings.Count(page.Body, `name="revoke"`) != 2 {
			t.Errorf("the page does not offer key %s", k.Prefix)
		}
		if strings.Contains(revoked, k.Prefix) {
			chosen = k.ID
		}
	}
	page = boss.Post("/users/"+leaver.ID+"/disabled", "disabled", "true", "revoke", chosen).Want(t, 200)
	if !strings.Contains(page.Body, "Revoked: 1 API key") || !strings.Contains(page.Body, "Still working: 1 API key") {
		t.Errorf("the notice does not name the keys: %.3000s", page.Body)
	}
	replica.As(kept).Get("/assets").Want(t, 200)
	replica.As(revoked).Get("/assets").Want(t, 401)
	var disabled struct{ LiveKeys []string }
	env.CLI(&disabled, "user", "disable", "--company", "acme", leaver.ID)
	if len(disabled.LiveKeys) != 1 {
		t.Errorf("the command line names %v, want 1 key", disabled.LiveKeys)
	}
	env.CLI(new(any), "user", "enable", "--company", "acme", leaver.ID)
	if text := env.Table("user", "delete", "--company", "acme", leaver.ID); !strings.Contains(text, "Deleted user "+leaver.Email) ||
		!strings.Contains(text, "muster key revoke --company acme "+disabled.LiveKeys[0]) {
		t.Errorf("deletion says %q, want the key that still works", text)
	}
	var deleted struct{ LiveKeys []string }
	env.CLI(&deleted, "user", "delete", "--company", "acme", env.Browser(acme, account.Viewer).User.ID)
	if deleted.LiveKeys == nil || len(deleted.LiveKeys) != 0 {
		t.Errorf("deletion names %v of a user without keys", deleted.LiveKeys)
	}
	replica.As(kept).Get("/assets").Want(t, 200)
}

// TestCompanySignIn_InvitedUsersWhoMayDoMore: a provider's word opens no account that may do
// more than the users whom it makes. Its user accepts the invitation first.
func TestCompanySignIn_InvitedUsersWhoMayDoMore(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	root := env.Browser(acme, account.Admin)
	root.Change(func(u *account.User) { u.Email = "root@elsewhere.test" })
	root.User.Email = "root@elsewhere.test"
	clerk := env.Browser(acme, account.Viewer)
	viewer, _ := account.Viewer.Rights()
	clerk.Change(func(u *account.User) { u.Rights = viewer | account.ManageCompany | account.ManageUsers })
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, clerk.User).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	portal := replica.PortalClient(t, root.User)
	boss := []string{"email", "boss@acme.test", "name", "Boss", "role", "admin", "scope", "all"}
	if page := portal.Post("/users", boss...); page.Status != 409 || !strings.Contains(page.Body, "save company sign-in again first") {
		t.Errorf("an administrator is invited where a clerk saved company sign-in: %d", page.Status)
	}
	portal.Post("/users", "email", "carl@acme.test", "name", "Carl", "role", "viewer", "scope", "all").Want(t, 200)
	carl, err := env.DB().UserByEmail(t.Context(), "carl@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	more := []string{"name", "Carl", "role", "manager", "scope", "all"}
	portal.Post("/users/"+carl.ID, more...).Want(t, 409)
	portal.Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	portal.Post("/users/"+carl.ID, more...).Want(t, 200)
	codes := map[string]string{}
	for email, role := range map[string]string{"boss@acme.test": "admin", "guest@acme.test": "viewer"} {
		codes[email] = invitationCode(t, portal.Post("/users", "email", email, "name", "N", "role", role, "scope", "all").Want(t, 200))
	}
	arrives := func(email string) servertest.Page {
		provider.Be(oidctest.Browser{Subject: "at " + email, Email: email}, nil)
		return signsIn(t, replica.SignedOut(t), provider, email)
	}
	if page := arrives("guest@acme.test"); page.Path != "/account" {
		t.Errorf("a viewer: %d at %s", page.Status, page.Path)
	}
	if page := arrives("boss@acme.test"); page.Status != 401 || !strings.Contains(page.Body, "open your invitation") {
		t.Errorf("an administrator: %d at %s", page.Status, page.Path)
	}
	replica.SignedOut(t).Post("/invitation", "code", codes["boss@acme.test"], "password", "chosen by boss", "again",
		"chosen by boss").Want(t, 200)
	if page := arrives("boss@acme.test"); !strings.Contains(page.Body, `action="/signin/link"`) {
		t.Errorf("an administrator who has a password does not confirm: %d at %s", page.Status, page.Path)
	}
}

// TestInvitation_AcceptedThroughCompanySignIn: its token opens the account of a user who may
// do more than the users whom the provider makes, for the person with the invited address,
// once, and not during a stop.
func TestInvitation_AcceptedThroughCompanySignIn(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", access.Settings{})
		root := env.Browser(acme, account.Admin)
		provider := oidctest.New(t, env.Now)
		admin := replica.PortalClient(t, root.User)
		admin.Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
		code := invitationCode(t, admin.Post("/users", "email", "boss@acme.test", "name", "Boss", "role", "admin", "scope", "all").Want(t,
			200))
		accepts := func(code, as string) servertest.Page {
			t.Helper()
			provider.Be(oidctest.Browser{Subject: "at " + as, Email: as}, nil)
			portal := replica.SignedOut(t)
			page := portal.Post("/signin/company", "code", code)
			_, rest, found := strings.Cut(page.Body, `href="`+provider.URL)
			if !found {
				return page
			}
			address, _, _ := strings.Cut(rest, `"`)
			return portal.Get(provider.URL + strings.ReplaceAll(address, "&amp;", "&"))
		}
		refused := func(page servertest.Page, status int, text string) {
			t.Helper()
			if page.Status != status || !strings.Contains(page.Body, text) {
				t.Errorf("got %d at %s, want %d with %q", page.Status, page.Path, status, text)
			}
		}
		refused(accepts("mst_made-up", "boss@acme.test"), 401, "is over")
		refused(accepts(code, "other@acme.test"), 401, "the invitation is for boss@acme.test")
		admin.Post("/access/controls/stop", "all", "true", "confirm", "ACME", "reason", "looking").Want(t, 200)
		refused(accepts(code, "boss@acme.test"), 401, "Changes are stopped")
		env.CLI(new(any), "company", "resume", "--company", "acme")
		if page := accepts(code, "boss@acme.test"); page.Path != "/" || page.Status != 200 {
			t.Fatalf("accepted: %d at %s", page.Status, page.Path)
		}
		refused(accepts(code, "boss@acme.test"), 401, "is over")
		provider.Be(oidctest.Browser{Subject: "at boss@acme.test", Email: "boss@acme.test"}, nil)
		if page := signsIn(t, replica.SignedOut(t), provider, "boss@acme.test"); page.Path != "/account" {
			t.Errorf("later: %d at %s", page.Status, page.Path)
		}
		entries, err := env.DB().Activity(t.Context(), activity.Filter{CompanyID: acme.ID, Action: activity.IdentityLinked},
			activity.Cursor{}, 10)
		if err != nil || len(entries) != 1 || !strings.Contains(fmt.Sprint(entries[0].Changes), "byInvitationOf") {
			t.Errorf("entries of the link: %+v, %v", entries, err)
		}
	})
}

// TestCompanySignIn_RightsThatRise: a person whom company sign-in lets in gets no rights, also
// not by the operator, that exceed those of the person who saved it; where they have them all
// the same, it lets them in no more.
func TestCompanySignIn_RightsThatRise(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	clerk, boss := env.Browser(acme, account.Viewer), env.Browser(acme, account.Viewer)
	viewer, _ := account.Viewer.Rights()
	clerk.Change(func(u *account.User) { u.Rights = viewer | account.ManageCompany | account.ManageUsers })
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, clerk.User).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	provider.Be(oidctest.Browser{Subject: "1", Email: boss.User.Email}, nil)
	links(t, replica.SignedOut(t), provider, boss.User.Email).Want(t, 200)
	if err := env.TryCLI(new(any), "user", "set-role", "--company", "acme", boss.User.Email, "--role",
		"admin"); !strings.Contains(fmt.Sprint(err), "save company sign-in again first") {
		t.Errorf("the operator makes an administrator: %s", err)
	}
	env.CLI(new(any), "user", "set-role", "--company", "acme", boss.User.Email, "--role", "viewer")
	boss.Change(func(u *account.User) { u.Rights = account.Right(1<<10 - 1) })
	if page := signsIn(t, replica.SignedOut(t), provider, boss.User.Email); page.Status != 401 ||
		!strings.Contains(page.Body, "may do less than you") {
		t.Errorf("an administrator who was not compared: %d at %s", page.Status, page.Path)
	}
	other := env.Browser(acme, account.Admin)
	provider.Be(oidctest.Browser{Subject: "2", Email: other.User.Email}, nil)
	if page := signsIn(t, replica.SignedOut(t), provider, other.User.Email); page.Status != 401 ||
		!strings.Contains(page.Body, "may do less than you") {
		t.Errorf("an administrator with a password: %d at %s", page.Status, page.Path)
	}
	replica.PortalClient(t, other.User).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	links(t, replica.SignedOut(t), provider, other.User.Email).Want(t, 200)
}

// TestCompanySignIn_DomainTakenAway ends sign-in of who was linked, by whichever address
// the sign-in begins.
func TestCompanySignIn_DomainTakenAway(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, admin).Post("/settings/signin", providerFields(provider, "acme.test other.test")...).Want(t, 200)
	provider.Be(oidctest.Browser{Subject: "1", Email: admin.Email}, nil)
	links(t, replica.SignedOut(t), provider, admin.Email).Want(t, 200)
	if page := signsIn(t, replica.SignedOut(t), provider, "colleague@other.test"); page.Path != "/account" {
		t.Fatalf("before: %d at %s", page.Status, page.Path)
	}
	if err := env.DB().RemoveDomain(t.Context(), acme.ID, "acme.test"); err != nil {
		t.Fatal(err)
	}
	if page := signsIn(t, replica.SignedOut(t), provider, "colleague@other.test"); page.Status != 401 ||
		!strings.Contains(page.Body, "do not sign in here") {
		t.Errorf("after: %d at %s", page.Status, page.Path)
	}
}
