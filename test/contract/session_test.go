package contract_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// A session's cookie is out of reach of scripts, other sites' forms and, under
// https, of plain connections and other names.
func TestSessions_CookieAttributes(t *testing.T) {
	t.Parallel()
	for public, want := range map[string][]string{
		"":                       {"muster=ms_", "HttpOnly", "SameSite=Lax", "Path=/"},
		"https://muster.example": {"__Host-muster=ms_", "HttpOnly", "SameSite=Lax", "Path=/", "Secure"},
	} {
		t.Run(public, func(t *testing.T) {
			env := servertest.New(t)
			replica := env.Start(func(c *config.Service, _ *service.Options) { c.PublicURL = public })
			ada := env.Browser(env.Company("acme", servertest.Everything()), account.Admin)
			answer := ada.Send("http://"+replica.Addr().String()+"/signin",
				url.Values{"email": {ada.User.Email}, "password": {servertest.Password}})
			cookies := answer.Want(t, http.StatusSeeOther).Header.Values("Set-Cookie")
			cookies = slices.DeleteFunc(cookies, func(c string) bool { return !strings.Contains(c, "muster=ms_") })
			if len(cookies) != 1 { // beside that of a browser that has signed in before
				t.Fatalf("%d cookies of sessions", len(cookies))
			}
			for _, part := range want {
				if !strings.Contains(cookies[0], part) {
					t.Errorf("under %q the cookie %q lacks %q", public, cookies[0], part)
				}
			}
			if strings.Contains(cookies[0], "Domain") || strings.Contains(string(env.Log.Text()), "ms_") {
				t.Errorf("the cookie goes to other names, or its token to the log: %q", cookies[0])
			}
		})
	}
}

// Pages load nothing from elsewhere, run nothing inline, and stand in no frame;
// forms of other sites are refused wherever a cookie counts.
func TestPortal_ClosedToOtherSites(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	ada := s.person(t, account.Admin)
	page := ada.Send(s.base+"/signin", nil).Want(t, http.StatusOK)
	policy := page.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "form-action 'self';",
		"frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy+";", part) {
			t.Errorf("the policy %q lacks %q", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || page.Header.Get("X-Content-Type-Options") != "nosniff" ||
		page.Header.Get("Cache-Control") != "no-store" ||
		page.Header.Get("Referrer-Policy") == "" {
		t.Errorf("headers %v", page.Header)
	}
	if body := string(page.Body); strings.Contains(body, "<script>") || strings.Contains(body, "style=") ||
		strings.Contains(body, "onclick=") {
		t.Error("the page has something inline")
	}
	form := url.Values{"email": {ada.User.Email}, "password": {servertest.Password}}
	for _, path := range []string{"/signin", "/signout", "/oauth/authorize"} {
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
			{"Origin", "https://evil.example"}, {"Origin", "null"}} {
			ada.Send(s.base+path, form, headers...).Want(t, http.StatusForbidden)
		}
	}
	for _, next := range []string{"//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)",
		"/\t/evil.example"} {
		form.Set("next", next)
		if to := ada.Send(s.base+"/signin", form).Header.Get("Location"); to != "/" {
			t.Errorf("next %q leads to %q", next, to)
		}
		s.Advance(61e9) // the throttle of sign-in
	}
}
