package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
	"github.com/musterhq/muster/internal/surface/cli"
)

// providerFields are the form of a company's provider.
func providerFields(p *oidctest.Provider, domains string) []string {
	return []string{"name", "Acme ID", "issuer", p.URL, "clientId", p.ClientID, "clientSecret", p.Secret,
		"domains", domains, "enabled", "true", "createsUsers", "false", "role", "viewer"}
}

// begins starts company sign-in and returns where the provider is; empty if the
// page leads nowhere.
func begins(portal *servertest.PortalClient, provider *oidctest.Provider, email string) (string, servertest.Page) {
	page := portal.Post("/signin/company", "email", email, "next", "/account")
	_, rest, found := strings.Cut(page.Body, `href="`+provider.URL)
	address, _, _ := strings.Cut(rest, `"`)
	if !found {
		return "", page
	}
	return provider.URL + strings.ReplaceAll(address, "&amp;", "&"), page
}

// signsIn goes through company sign-in and returns the page that it ends on.
func signsIn(t *testing.T, portal *servertest.PortalClient, provider *oidctest.Provider, email string) servertest.Page {
	t.Helper()
	address, page := begins(portal, provider, email)
	if address == "" {
		t.Fatalf("no way to the provider: %d %.500s", page.Status, page.Body)
	}
	return portal.Get(address)
}

// links goes through the first company sign-in of a person with a password.
func links(t *testing.T, portal *servertest.PortalClient, provider *oidctest.Provider, email string) servertest.Page {
	t.Helper()
	page := signsIn(t, portal, provider, email)
	return portal.Post("/signin/link", "link", page.Field(t, "link"), "password", servertest.Password)
}

// TestSignIn_StrangersCannotLockAPersonOut: under a thousand wrong sign-ins from
// many networks, the owner signs in from the usual browser, by passkey in
// another one, and through the company; a session that is open proves its
// identity.
func TestSignIn_StrangersCannotLockAPersonOut(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start(servertest.OnLocalhost(t))
		acme := env.Company("acme", access.Settings{DeviceCommands: true})
		people := []*servertest.Browser{env.Browser(acme, account.Admin), env.Browser(acme, account.Admin)}
		for _, p := range people {
			p.CheapPassword()
		}
		owner, other := people[0].User, people[1].User
		provider := oidctest.New(t, env.Now)
		replica.PortalClient(t, other).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
		provider.Be(oidctest.Browser{Subject: "1", Email: owner.Email}, nil)
		links(t, replica.SignedOut(t), provider, owner.Email).Want(t, 200)
		// The colleague has a passkey; both have a usual browser.
		usual, inside, open := replica.PortalClient(t, owner), replica.PortalClient(t, owner), replica.PortalClient(t, other)
		key := servertest.NewAuthenticator(t, replica.PublicURL())
		open.AddPasskey(key).Want(t, 200)
		usual.Post("/signout").Want(t, 200)

		stranger, answers := env.Browser(acme, account.Viewer), map[int]int{}
		attack := func(victim string, i int) {
			answers[stranger.Send(replica.PublicURL()+"/signin", url.Values{"email": {victim}, "password": {"wrong password"}},
				"X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i%100/50, i%50)).Status]++
		}
		for i := range 1000 {
			attack(owner.Email, i)
			if i < 150 {
				attack(other.Email, i)
			}
		}
		if answers[http.StatusUnauthorized] > 200 || answers[http.StatusUnauthorized]+answers[http.StatusTooManyRequests] != 1150 {
			t.Errorf("answers to strangers: got %v, want at most 100 passwords checked for each address", answers)
		}
		// Another browser is told to wait, or to use another way.
		page := replica.SignedOut(t).Post("/signin", "email", owner.Email, "password", servertest.Password).Want(t,
			http.StatusTooManyRequests)
		if !strings.Contains(page.Body, "sign in with a passkey") || page.Header.Get("Retry-After") == "" {
			t.Errorf("the refusal does not say what else works: %.600s", page.Body)
		}
		if page := usual.Post("/signin", "email", owner.Email, "password", servertest.Password, "next",
			"/account"); page.Path != "/account" {
			t.Errorf("the usual browser: got %d at %s, want /account", page.Status, page.Path)
		}
		if page := signsIn(t, replica.SignedOut(t), provider, owner.Email); page.Path != "/account" {
			t.Errorf("company sign-in: got %d at %s, want /account", page.Status, page.Path)
		}
		guest := replica.SignedOut(t)
		form := guest.Get("/signin?next=%2Faccount")
		if page := guest.Post("/signin/passkey", "next", "/account", "token", form.Field(t, "token"), "answer",
			key.Get(form.Options(t))); page.Path != "/account" {
			t.Errorf("passkey: got %d at %s, want /account", page.Status, page.Path)
		}
		if page := inside.Post("/account/prove", "password", servertest.Password, "next", "/account"); page.Path != "/account" {
			t.Errorf("proof of identity: got %d at %s, want /account", page.Status, page.Path)
		}
	})
}

// TestSignIn_CountsFailuresOnly: who signs in rightly is never made to wait, and
// failures count for their own network and browser.
func TestSignIn_CountsFailuresOnly(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	owner, stranger := env.Browser(acme, account.Viewer), env.Browser(acme, account.Viewer)
	try := func(p *servertest.Browser, password string) int {
		return p.Send(replica.PublicURL()+"/signin", url.Values{"email": {owner.User.Email}, "password": {password}}).Status
	}
	for i := range 40 {
		if status := try(owner, servertest.Password); status != http.StatusSeeOther {
			t.Fatalf("right sign-in %d of a minute: got %d, want 303", i+1, status)
		}
	}
	for i, want := range []int{401, 401, 401, 401, 401, 429} {
		if status := try(stranger, "wrong password"); status != want {
			t.Errorf("wrong sign-in %d: got %d, want %d", i+1, status, want)
		}
	}
	if status := try(env.Browser(acme, account.Viewer), servertest.Password); status != 429 && status != http.StatusSeeOther {
		t.Errorf("another network: got %d", status)
	}
	// The owner's browser has its own five, and a session its own.
	for i, want := range []int{401, 401, 401, 401, 401, 429} {
		if status := try(owner, "wrong password"); status != want {
			t.Errorf("wrong sign-in %d of the owner's browser: got %d, want %d", i+1, status, want)
		}
	}
	env.Advance(time.Minute)
	if status := try(owner, servertest.Password); status != http.StatusSeeOther {
		t.Errorf("a minute later: got %d, want 303", status)
	}
	for i, want := range []int{401, 401, 401, 401, 401, 429} {
		got := owner.Send(replica.PublicURL()+"/account/prove", url.Values{"password": {"wrong password"}, "next": {"/account"}}).Status
		if got != want {
			t.Errorf("wrong proof %d: got %d, want %d", i+1, got, want)
		}
	}
}

// TestSignIn_PasskeyChallengeIsTakenOnce: a recorded answer opens no second
// session, and one without user verification opens none.
func TestSignIn_PasskeyChallengeIsTakenOnce(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(servertest.OnLocalhost(t))
	acme := env.Company("acme", access.Settings{})
	owner := env.Browser(acme, account.Viewer)
	key := servertest.NewAuthenticator(t, replica.PublicURL())
	portal := replica.PortalClient(t, owner.User)
	portal.AddPasskey(key).Want(t, 200)
	form := replica.SignedOut(t).Get("/signin")
	send := func(form servertest.Page, answer string) servertest.Page {
		return replica.SignedOut(t).Post("/signin/passkey", "next", "/account", "token", form.Field(t, "token"), "answer", answer)
	}
	answer := key.Get(form.Options(t))
	if page := send(form, answer); page.Path != "/account" {
		t.Fatalf("the first answer: got %d at %s, want /account", page.Status, page.Path)
	}
	if page := send(form, answer); page.Status != 401 {
		t.Errorf("the same answer again: got %d at %s, want 401", page.Status, page.Path)
	}
	form = replica.SignedOut(t).Get("/signin")
	answer = key.Get(form.Options(t))
	env.Advance(account.PendingLife)
	if page := send(form, answer); page.Status != 401 {
		t.Errorf("a late answer: got %d at %s, want 401", page.Status, page.Path)
	}
	if page := replica.SignedOut(t).Post("/signin/passkey", "token", "AAAA", "answer", "{}"); page.Status != 401 {
		t.Errorf("a made-up challenge: got %d, want 401", page.Status)
	}
	key.Verifies = false
	form = replica.SignedOut(t).Get("/signin")
	if page := send(form, key.Get(form.Options(t))); page.Status != 401 {
		t.Errorf("without user verification: got %d at %s, want 401", page.Status, page.Path)
	}
	// The same holds for a proof of identity, where the passkey stands alone.
	proof := portal.Get("/account/prove?next=%2Faccount")
	page := portal.Post("/account/prove/passkey", "token", proof.Field(t, "token"), "next", "/account", "answer",
		key.Get(proof.Options(t)))
	if page.Status != 401 {
		t.Errorf("a proof without user verification: got %d at %s, want 401", page.Status, page.Path)
	}
	owner.Change(func(u *account.User) { u.Disabled = true })
	key.Verifies = true
	form = replica.SignedOut(t).Get("/signin")
	if page := send(form, key.Get(form.Options(t))); page.Status != 401 {
		t.Errorf("a disabled user: got %d at %s, want 401", page.Status, page.Path)
	}
}

// TestPasswords_CommonOnesAreRefused, wherever one is set.
func TestPasswords_CommonOnesAreRefused(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	portal := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	for _, common := range []string{"password", "Password1", "12345678", "QWERTYUIOP"} {
		page := portal.Post("/account/password", "current", servertest.Password, "password", common, "again", common).Want(t, 422)
		if !strings.Contains(page.Body, "most common") {
			t.Errorf("%s: the page does not say why", common)
		}
		users := account.Users{Store: env.DB(), Passwords: account.NewPasswords(1), Now: env.Now}
		_, err := users.Create(t.Context(), account.NewUserRequest{CompanyID: acme.ID, Email: "x@acme.test",
			Role: account.Viewer, Password: common})
		if err == nil || !strings.Contains(err.Error(), "most common") {
			t.Errorf("%s on the command line: got %v", common, err)
		}
	}
	page := portal.Post("/users", "email", "new@acme.test", "name", "New", "role", "viewer", "scope", "all").Want(t, 200)
	code := invitationCode(t, page)
	replica.SignedOut(t).Post("/invitation", "code", code, "password", "password1", "again", "password1").Want(t, 422)
	replica.SignedOut(t).Post("/invitation", "code", code, "password", "eight of them", "again", "eight of them").Want(t, 200)
}

// invitationCode is the code of the link that a page shows.
func invitationCode(t *testing.T, page servertest.Page) string {
	t.Helper()
	_, link, found := strings.Cut(page.Body, "/invitation#")
	code, _, _ := strings.Cut(link, "<")
	if !found {
		t.Fatalf("%s: %d, no invitation: %.500s", page.Path, page.Status, page.Body)
	}
	return code
}

// TestSessions_NoticeOfAnotherSiteIsNotShown: a cookie that another host of the
// domain set puts no text on a page.
func TestSessions_NoticeOfAnotherSiteIsNotShown(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	admin := env.Browser(acme, account.Admin)
	admin.SignIn(replica.PublicURL())
	forged := "W3sidCI6Im9rIiwieCI6IkNhbGwgMDkwMCBmb3IgaGVscCJ9XQ" // [{"t":"ok","x":"Call 0900 for help"}]
	page := admin.Send(replica.PublicURL()+"/account", nil, "Cookie", cookies(admin, replica.PublicURL())+"; muster-flash="+forged)
	if !strings.Contains(string(page.Body), "Your account") || strings.Contains(string(page.Body), "Call 0900") {
		t.Errorf("status %d; the notice is shown: %v", page.Status, strings.Contains(string(page.Body), "Call 0900"))
	}
	saved := replica.PortalClient(t, admin.User).Post("/settings",
		"name", "Acme", "inactiveAfter", "30", "keepActivity", "400").Want(t, 200)
	if !strings.Contains(saved.Body, "The settings are saved.") {
		t.Error("our own notice is not shown")
	}
}

// cookies are what the person's browser sends to an address.
func cookies(p *servertest.Browser, address string) string {
	var all []string
	for _, c := range p.Cookies(address) {
		all = append(all, fmt.Sprintf("%s=%s", c.Name, c.Value))
	}
	return strings.Join(all, "; ")
}

// TestSignIn_AfterTheOperatorRemovedThePasskeys: who lost the second factor gets in with the password, and who has the passkey
// that was removed does not. A session that was open has ended.
func TestSignIn_AfterTheOperatorRemovedThePasskeys(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(servertest.OnLocalhost(t))
	acme := env.Company("acme", access.Settings{})
	owner := env.Browser(acme, account.Admin)
	key := servertest.NewAuthenticator(t, replica.PublicURL())
	thief := replica.PortalClient(t, owner.User)
	thief.AddPasskey(key).Want(t, 200)
	signIn := func() servertest.Page {
		return replica.SignedOut(t).Post("/signin", "email", owner.User.Email, "password", servertest.Password, "next", "/account")
	}
	if page := signIn(); page.Path == "/account" {
		t.Fatal("the password alone signs in beside a passkey")
	}
	form := replica.SignedOut(t).Get("/signin")
	remove := &cli.UserRemovePasskeys{}
	remove.Store, remove.Company, remove.User = config.Store{Database: env.Database}, "acme", owner.User.Email
	if said, err := runCommand(t, env, remove); err != nil || !strings.Contains(said, owner.User.Email) {
		t.Fatalf("%v: %s", err, said)
	}
	if page := signIn(); page.Path != "/account" {
		t.Errorf("the password alone: got %d at %s, want /account", page.Status, page.Path)
	}
	page := replica.SignedOut(t).Post("/signin/passkey", "next", "/account", "token", form.Field(t, "token"), "answer",
		key.Get(form.Options(t)))
	if page.Status != http.StatusUnauthorized {
		t.Errorf("the removed passkey: got %d at %s, want 401", page.Status, page.Path)
	}
	if page := thief.Get("/account"); page.Path == "/account" {
		t.Errorf("the session that was open: got %d at %s, want the sign-in", page.Status, page.Path)
	}
}
