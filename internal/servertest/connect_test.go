package servertest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// begun starts a sign-up in the portal and returns its state.
func begun(t *testing.T, lab *servertest.Lab, admin *servertest.Visitor, c company.Company) company.Signup {
	t.Helper()
	admin.Post("/settings/platform").Want(t, 200)
	open, err := lab.DB().OpenSignup(t.Context(), c.ID, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// confirmed confirms a sign-up on the vendor's page and returns the address that
// the browser is sent back to.
func confirmed(t *testing.T, lab *servertest.Lab, signup company.Signup) string {
	t.Helper()
	_, callback, err := lab.Emulator.CompleteSignup(signup.Address[strings.LastIndex(signup.Address, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	return back.RequestURI()
}

func enterpriseOf(t *testing.T, lab *servertest.Lab, c company.Company) string {
	t.Helper()
	now, err := lab.DB().CompanyByID(t.Context(), c.ID)
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
	production, staging := servertest.New(t), servertest.New(t)
	production.Start()
	victim := production.Connect(production.Company("acme", access.Settings{}))
	replica := staging.Start(func(c *config.Service, _ *service.Options) { c.Platform = production.Platform() })
	twin := staging.Company("evil", access.Settings{})
	admin := replica.Visitor(t, staging.Person(twin, access.Admin).User)
	admin.Post("/settings", "name", victim.Name, "inactiveAfter", "30", "keepActivity", "400").Want(t, 200)
	signup := begun(t, staging, admin, twin)
	for range 2 {
		page := admin.Get("/connect/callback?state=" + signup.State + "&enterpriseToken=made-up")
		if got := enterpriseOf(t, staging, twin); got != "" || page.Path != "/settings/platform" {
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
	servertest.OnEach(t, func(t *testing.T, lab *servertest.Lab) {
		replica := lab.Start()
		acme, other := lab.Company("acme", access.Settings{}), lab.Company("other", access.Settings{})
		owner, colleague := lab.Person(acme, access.Admin).User, lab.Person(acme, access.Admin).User
		first := replica.Visitor(t, owner)
		back := confirmed(t, lab, begun(t, lab, first, acme))
		unbound := func(who string) {
			t.Helper()
			if got := enterpriseOf(t, lab, acme); got != "" {
				t.Fatalf("%s connected the company to %s", who, got)
			}
		}
		page := replica.Stranger(t).Get(back).Want(t, http.StatusUnauthorized)
		if !strings.Contains(page.Body, "Sign in to finish") || !strings.Contains(page.Body, `/signin?next=%2Fconnect%2Fcallback`) || !strings.Contains(page.Body, "app.css") {
			t.Errorf("the page for a stranger: %.800s", page.Body)
		}
		unbound("a stranger")
		replica.Visitor(t, lab.Person(acme, access.Viewer).User).Get(back).Want(t, http.StatusForbidden)
		unbound("a viewer")
		replica.Visitor(t, lab.Person(other, access.Admin).User).Get(back).Want(t, http.StatusNotFound)
		unbound("an administrator of another company")
		second := replica.Visitor(t, colleague)
		if page := second.Get(back); page.Path != "/settings/platform" || !strings.Contains(page.Body, "Another session started this sign-up") {
			t.Errorf("another administrator: got %d at %s: %.800s", page.Status, page.Path, page.Body)
		}
		unbound("another session")
		if page := first.Get(back); page.Path != "/settings/platform" || !strings.Contains(page.Body, "Connected.") {
			t.Errorf("the session that began: got %d at %s: %.800s", page.Status, page.Path, page.Body)
		}
		if enterpriseOf(t, lab, acme) == "" {
			t.Error("the company is not connected")
		}
	})
}

// TestConnect_AnotherAdministratorFinishes: the button of the platform page.
func TestConnect_AnotherAdministratorFinishes(t *testing.T) {
	t.Parallel()
	lab := servertest.New(t)
	replica := lab.Start()
	acme := lab.Company("acme", access.Settings{})
	back := confirmed(t, lab, begun(t, lab, replica.Visitor(t, lab.Person(acme, access.Admin).User), acme))
	second := replica.Visitor(t, lab.Person(acme, access.Admin).User)
	second.Get(back).Want(t, 200)
	if page := second.Post("/settings/platform/finish"); !strings.Contains(page.Body, "Connected.") || enterpriseOf(t, lab, acme) == "" {
		t.Errorf("finish: got %d at %s: %.800s", page.Status, page.Path, page.Body)
	}
}

// TestConnect_CommandLineNeedsNoSession: an operator's browser is not signed in.
func TestConnect_CommandLineNeedsNoSession(t *testing.T) {
	t.Parallel()
	lab := servertest.New(t)
	replica := lab.Start()
	acme := lab.Company("acme", access.Settings{})
	address, err := replica.Platform().StartSignup(t.Context(), acme.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	page := replica.Stranger(t).Get(confirmed(t, lab, company.Signup{Address: address})).Want(t, 200)
	if !strings.Contains(page.Body, "Connected.") || !strings.Contains(page.Body, "app.css") || enterpriseOf(t, lab, acme) == "" {
		t.Errorf("the page: %.800s", page.Body)
	}
}

// TestConnect_StrangersAreThrottled: an address with an unknown state costs one
// counter, and no more after thirty visits in a minute.
func TestConnect_StrangersAreThrottled(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, lab *servertest.Lab) {
		replica := lab.Start()
		stranger := lab.Person(lab.Company("acme", access.Settings{}), access.Viewer)
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
