package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// begun starts a sign-up in the portal and returns its state.
func begun(t *testing.T, env *servertest.Env, admin *servertest.PortalClient, c company.Company) company.Signup {
	t.Helper()
	admin.Post("/settings/platform").Want(t, 200)
	open, err := env.DB().OpenSignup(t.Context(), c.ID, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// confirmed confirms a sign-up on the vendor's page and returns the address that
// the browser is sent back to.
func confirmed(t *testing.T, env *servertest.Env, signup company.Signup) string {
	t.Helper()
	_, callback, err := env.Emulator.CompleteSignup(signup.Address[strings.LastIndex(signup.Address, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	return back.RequestURI()
}

func enterpriseOf(t *testing.T, env *servertest.Env, c company.Company) string {
	t.Helper()
	now, err := env.DB().CompanyByID(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return now.Enterprise
}

// TestConnect_MadeUpTokenBindsNothing: two installations share a project of the
// vendor. A company that has the name of another installation's enterprise does
// not get it with a made-up token.
func TestConnect_MadeUpTokenBindsNothing(t *testing.T) {
	t.Parallel()
	production, staging := servertest.New(t), servertest.New(t) // production does not run: it would list its enterprises
	victim := production.Connect(production.Company("acme", access.Settings{}))
	replica := staging.Start(func(c *config.Service, _ *service.Options) { c.Platform = production.Platform() })
	other := staging.Company("evil", access.Settings{})
	admin := replica.PortalClient(t, staging.Browser(other, account.Admin).User)
	admin.Post("/settings", "name", victim.Name, "inactiveAfter", "30", "keepActivity", "400").Want(t, 200)
	signup := begun(t, staging, admin, other)
	for range 2 {
		page := admin.Get("/connect/callback?state=" + signup.State + "&enterpriseToken=made-up")
		if got := enterpriseOf(t, staging, other); got != "" || page.Path != "/settings/platform" {
			t.Fatalf("after a made-up token: the company is connected to %q, page %s; want none, /settings/platform", got, page.Path)
		}
	}
	if n := production.Calls("list"); n != 0 {
		t.Errorf("the platform was asked %d times for other enterprises, want 0", n)
	}
}

// TestConnect_AsksForTheSession: the way back from the vendor binds the company
// only in the session that began the sign-up. Another administrator is asked
// first, and strangers are sent to sign in.
func TestConnect_AsksForTheSession(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme, other := env.Company("acme", access.Settings{}), env.Company("other", access.Settings{})
		owner, colleague := env.Browser(acme, account.Admin).User, env.Browser(acme, account.Admin).User
		first := replica.PortalClient(t, owner)
		back := confirmed(t, env, begun(t, env, first, acme))
		unbound := func(who string) {
			t.Helper()
			if got := enterpriseOf(t, env, acme); got != "" {
				t.Fatalf("%s connected the company to %s", who, got)
			}
		}
		page := replica.SignedOut(t).Get(back).Want(t, http.StatusUnauthorized)
		if !strings.Contains(page.Body, "Sign in to finish") || !strings.Contains(page.Body, `/signin?next=%2Fconnect%2Fcallback`) ||
			!strings.Contains(page.Body, "app.css") {
			t.Errorf("the page for a stranger: %.800s", page.Body)
		}
		unbound("a stranger")
		replica.PortalClient(t, env.Browser(acme, account.Viewer).User).Get(back).Want(t, http.StatusForbidden)
		unbound("a viewer")
		replica.PortalClient(t, env.Browser(other, account.Admin).User).Get(back).Want(t, http.StatusNotFound)
		unbound("an administrator of another company")
		second := replica.PortalClient(t, colleague)
		if page := second.Get(back); page.Path != "/settings/platform" ||
			!strings.Contains(page.Body, "Another session started this sign-up") {
			t.Errorf("another administrator: got %d at %s: %.800s", page.Status, page.Path, page.Body)
		}
		unbound("another session")
		if page := first.Get(back); page.Path != "/settings/platform" || !strings.Contains(page.Body, "Connected.") {
			t.Errorf("the session that began: got %d at %s: %.800s", page.Status, page.Path, page.Body)
		}
		if enterpriseOf(t, env, acme) == "" {
			t.Error("the company is not connected")
		}
	})
}

// TestConnect_AnotherAdministratorFinishes: the button of the platform page.
func TestConnect_AnotherAdministratorFinishes(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	back := confirmed(t, env, begun(t, env, replica.PortalClient(t, env.Browser(acme, account.Admin).User), acme))
	second := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
	second.Get(back).Want(t, 200)
	if page := second.Post("/settings/platform/finish"); !strings.Contains(page.Body, "Connected.") || enterpriseOf(t, env, acme) == "" {
		t.Errorf("finish: got %d at %s: %.800s", page.Status, page.Path, page.Body)
	}
}

// TestConnect_CommandLineNeedsNoSession: an operator's browser is not signed in.
func TestConnect_CommandLineNeedsNoSession(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", access.Settings{})
	address, err := replica.Platform().StartSignup(t.Context(), acme.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	page := replica.SignedOut(t).Get(confirmed(t, env, company.Signup{Address: address})).Want(t, 200)
	if !strings.Contains(page.Body, "Connected.") || !strings.Contains(page.Body, "app.css") || enterpriseOf(t, env, acme) == "" {
		t.Errorf("the page: %.800s", page.Body)
	}
}

// TestConnect_StrangersAreThrottled: an address with an unknown state costs one
// counter, and no more after thirty visits in a minute.
func TestConnect_StrangersAreThrottled(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		stranger := env.Browser(env.Company("acme", access.Settings{}), account.Viewer)
		answers := map[int]int{}
		for i := range 40 {
			state := strings.Repeat("x", 1+i*100)
			answer := stranger.Send(replica.PublicURL()+"/connect/callback?state="+state+"&enterpriseToken=x", nil)
			answers[answer.Status]++
			if answer.Status == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
				t.Error("a refusal without Retry-After")
			}
		}
		if answers[http.StatusNotFound] != 30 || answers[http.StatusTooManyRequests] != 10 {
			t.Errorf("answers: got %v, want 30 of 404 and 10 of 429", answers)
		}
	})
}

// TestPortal_LostEnterprise: people see that the platform does not have the company's
// enterprise, with what is to be done, and that giving it up is not finished; those of another
// company do not.
func TestPortal_LostEnterprise(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme, other := env.Company("acme", servertest.Everything()), env.Company("other", servertest.Everything())
		viewer, stranger := replica.PortalClient(t, env.Browser(acme, account.Viewer).User),
			replica.PortalClient(t, env.Browser(other, account.Viewer).User)
		pages := []string{"/", "/settings", "/settings/platform"}
		shows := func(v *servertest.PortalClient, text string, want bool) {
			t.Helper()
			for _, path := range pages {
				if page := v.Get(path); page.Status == 200 && strings.Contains(page.Body, text) != want {
					t.Errorf("%s shows %q: %v, want %v", path, text, !want, want)
				}
			}
		}
		of, err := env.DB().CompanyByID(t.Context(), acme.ID)
		if err != nil {
			t.Fatal(err)
		}
		shows(viewer, "muster company disconnect", false)
		if err := env.DB().SetEnterpriseLost(t.Context(), acme.ID, of.Enterprise, true, env.Now()); err != nil {
			t.Fatal(err)
		}
		shows(viewer, "Google no longer has the enterprise", true)
		shows(viewer, "muster company disconnect --company acme --confirm acme", true)
		shows(stranger, "muster company disconnect", false)
		if err := env.DB().BeginDisconnection(t.Context(), acme.ID, of.Enterprise, true, env.Now()); err != nil {
			t.Fatal(err)
		}
		shows(viewer, "is being given up", true)
		if err := env.DB().FinishDisconnection(t.Context(), acme.ID, of.Enterprise, env.Now()); err != nil {
			t.Fatal(err)
		}
		shows(viewer, "muster company disconnect", false)
	})
}
