package oauth_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/web"
)

var box = regexp.MustCompile(`(?s)<input\s[^>]*name="scope"[^>]*>`)

// ticked are the scopes that a consent page selects in advance.
func ticked(page string) []string {
	var all []string
	for _, input := range box.FindAllString(page, -1) {
		if strings.Contains(input, " checked") {
			_, rest, _ := strings.Cut(input, `value="`)
			scope, _, _ := strings.Cut(rest, `"`)
			all = append(all, scope)
		}
	}
	return all
}

func (w *world) page(request url.Values) string {
	w.t.Helper()
	_, page := w.send("GET", w.server.URL+oauth.AuthorizePath+"?"+request.Encode(), nil)
	return page
}

func TestConsent_SelectsWhatWasAskedButNeverDestruction(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	reading := []string{"mcp:devices:read", "mcp:policies:read"}
	for name, test := range map[string]struct {
		scope string
		want  []string
	}{
		"no scope":    {"", reading},
		"one scope":   {"mcp:devices:read", reading[:1]},
		"commands":    {"mcp:devices:command", []string{"mcp:devices:read", "mcp:devices:command"}},
		"destruction": {"mcp:devices:destructive", reading[:1]},
		"everything": {strings.Join(access.All.Scopes(), " "), []string{"mcp:devices:read", "mcp:policies:read", "mcp:devices:command",
			"mcp:policies:write", "mcp:provisioning"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := w.request(client)
			request.Set("scope", test.scope)
			page := w.page(request)
			if got := ticked(page); !slices.Equal(got, test.want) {
				t.Errorf("%s: %q is selected, want %q", name, got, test.want)
			}
			for _, words := range []string{"clear the data of apps", "power off", "cannot be undone", "Acme"} {
				if !strings.Contains(page, words) {
					t.Errorf("%s: the page does not say %q", name, words)
				}
			}
		})
	}
}

func TestConsent_SaysWhatWasAllowedBefore(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	const before = "You allowed this to the application before."
	if strings.Contains(w.page(w.request(client)), before) {
		t.Error("a new client is said to have access")
	}
	w.token(client.TokenRequest(w.consent(w.request(client), "mcp:devices:read").Get("code")))
	if page := w.page(w.request(client)); strings.Count(page, before) != 1 {
		t.Errorf("after a grant of one scope the page says %d times that it was allowed", strings.Count(page, before))
	}
}

func TestConsent_MoreThanReadingTakesAFreshProof(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	w.ahead.Add(int64(account.ReauthFresh + time.Second))
	request := w.request(client)
	request.Set("scope", "mcp:devices:command mcp:policies:read")
	page := w.page(request)
	if got := ticked(page); !slices.Equal(got, []string{"mcp:devices:read", "mcp:policies:read"}) ||
		!strings.Contains(page, "Confirm your identity") {
		t.Errorf("without a fresh proof %q is selected", got)
	}
	for _, scope := range []string{"mcp:devices:command", "mcp:devices:destructive", "mcp:policies:write", "mcp:provisioning"} {
		response, _ := w.send("POST", w.server.URL+oauth.AuthorizePath,
			url.Values{"request": {request.Encode()}, "scope": {scope}, "decision": {"allow"}})
		if to := response.Header.Get("Location"); response.Status != http.StatusSeeOther ||
			!strings.HasPrefix(to, web.ProvePath+"?next=%2Foauth%2Fauthorize") || response.Onward() != "" {
			t.Errorf("%s without a fresh proof: %d to %q", scope, response.Status, to)
		}
	}
	if code := w.consent(request, "mcp:devices:read", "mcp:policies:read").Get("code"); code == "" {
		t.Error("reading takes a fresh proof")
	}
}

func TestConsent_WarnsByTheAddressOfThisRequest(t *testing.T) {
	w := newWorld(t, account.Admin)
	made := w.registerAs(`{"client_name":"Editor","redirect_uris":[
		"http://127.0.0.1/cb","https://editor.example/cb","com.example.editor://auth/cb"],"token_endpoint_auth_method":"none"}`)
	if made.AuthMethod != "none" {
		t.Fatalf("token_endpoint_auth_method %q, want none", made.AuthMethod)
	}
	w.signIn()
	const warning = "It runs on your own computer"
	for uri, want := range map[string][2]string{
		"http://127.0.0.1:4711/cb":     {warning, "a program on this computer (127.0.0.1:4711)"},
		"https://editor.example/cb":    {"", "editor.example"},
		"com.example.editor://auth/cb": {"", "the application on this device that opens com.example.editor: links"},
	} {
		t.Run(uri, func(t *testing.T) {
			request := w.request(made)
			request.Set("redirect_uri", uri)
			page := w.page(request)
			if got := strings.Contains(page, warning); got != (want[0] != "") || !strings.Contains(page, want[1]) {
				t.Errorf("%s: warned %v; the page does not say %q", uri, got, want[1])
			}
			answer, _ := w.send("POST", w.server.URL+oauth.AuthorizePath,
				url.Values{"request": {request.Encode()}, "scope": {"mcp:devices:read"}, "decision": {"allow"}})
			if to := answer.Onward(); !strings.HasPrefix(to, uri+"?") || !strings.Contains(to, "code=") {
				t.Errorf("%s: the answer goes to %q", uri, to)
			}
		})
	}
}

func TestConsent_DenialIsAPageThatNavigates(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	response, _ := w.send("POST", w.server.URL+oauth.AuthorizePath,
		url.Values{"request": {w.request(client).Encode()}, "decision": {"deny"}})
	to, err := url.Parse(response.Onward())
	if err != nil || response.Status != http.StatusOK || to.Query().Get("error") != "access_denied" ||
		to.Query().Get("state") != "s t" {
		t.Errorf("denied: %d to %q", response.Status, to)
	}
}

var hiddenUser = regexp.MustCompile(`name="user" value="([^"]+)"`)

// The page of one person is not answered by another who has signed in since, in the same browser:
// they are asked themselves.
func TestConsent_PageOfAnotherPerson(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	request := w.request(client)
	w.signIn()
	found := hiddenUser.FindStringSubmatch(w.page(request))
	if found == nil {
		t.Fatal("the page does not say whom it asks")
	}
	other := w.user
	other.ID, other.Email = resource.NewID(), "bea@acme.test"
	if err := w.db.CreateUser(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.user = other
	w.signIn()
	form := url.Values{"request": {request.Encode()}, "user": {found[1]}, "scope": {"mcp:devices:read"}}
	for _, decision := range []string{"allow", "deny"} {
		form.Set("decision", decision)
		response, page := w.send("POST", w.server.URL+oauth.AuthorizePath, form)
		if response.Status != http.StatusOK || response.Onward() != "" || !strings.Contains(page, "Signed in as bea@acme.test") {
			t.Errorf("%s on another's page: %d, leads to %q", decision, response.Status, response.Onward())
		}
	}
	form["user"], form["decision"] = []string{other.ID}, []string{"allow"}
	if page, _ := w.send("POST", w.server.URL+oauth.AuthorizePath, form); page.Onward() == "" {
		t.Error("their own page is not answered")
	}
}

func TestRegister_RefusalsDoNotKeepOthersOut(t *testing.T) {
	w := newWorld(t, account.Admin)
	for range 40 {
		if status := w.registration(`{"redirect_uris":["javascript://x"]}`); status != http.StatusBadRequest {
			t.Fatalf("a bad registration: %d", status)
		}
	}
	if w.register().ID == "" {
		t.Error("after 40 refusals a good registration fails")
	}
}

func TestRegister_AnApplicationsSchemeIsForPublicClients(t *testing.T) {
	w := newWorld(t, account.Admin)
	for body, want := range map[string]int{
		`{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback"]}`: http.StatusCreated,
		`{"redirect_uris":["cursor://x/cb"],"token_endpoint_auth_method":"none"}`:                                               http.StatusCreated,
		`{"redirect_uris":["cursor://x/cb"],"token_endpoint_auth_method":"client_secret_post"}`:                                 http.StatusBadRequest,
		`{"redirect_uris":["https://a.example/cb","javascript://x/cb"],"token_endpoint_auth_method":"none"}`:                    http.StatusBadRequest,
	} {
		t.Run(body, func(t *testing.T) {
			if status := w.registration(body); status != want {
				t.Errorf("%s: %d, want %d", body, status, want)
			}
		})
	}
}

func TestDocument_OnlyJSONAndFailuresAreKept(t *testing.T) {
	w := newWorld(t, account.Admin)
	var s *site
	typed := func(path, contentType string) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", contentType)
			_, _ = out.Write([]byte(s.document(path, redirect)))
		}
	}
	s = newSite(t, map[string]http.HandlerFunc{"/html": typed("/html", "text/html"), "/plain": typed("/plain", "text/plain"),
		"/json": typed("/json", "application/json"), "/special": typed("/special", "application/client+json; charset=utf-8")})
	w.oauth.Documents = oauth.FetcherThatTrusts(trustAll, s.roots())
	w.signIn()
	for path, want := range map[string]int{"/html": http.StatusBadRequest, "/plain": http.StatusBadRequest, "/json": http.StatusOK,
		"/special": http.StatusOK} {
		t.Run(path, func(t *testing.T) {
			if got := w.asks(s.URL + path); got.Status != want || got.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s: %d, want %d", path, got.Status, want)
			}
		})
	}
	fetched := s.requests.Load()
	w.asks(s.URL + "/html")
	if got := s.requests.Load(); got != fetched {
		t.Error("a document that could not be used is fetched again at once")
	}
	w.ahead.Add(int64(time.Minute))
	w.asks(s.URL + "/html")
	if got := s.requests.Load(); got != fetched+1 {
		t.Errorf("a minute later the document was fetched %d times more", got-fetched)
	}
}

// What was fetched while the clock was ahead, or could not be used then, is fetched again once the clock is right. A
// registration lasts on.
func TestDocument_AfterAClockThatWasAhead(t *testing.T) {
	w := newWorld(t, account.Admin)
	var s *site
	serve := func(path string) func(http.ResponseWriter, *http.Request) {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", map[string]string{"/good": "application/json", "/bad": "text/html"}[path])
			_, _ = out.Write([]byte(s.document(path, redirect)))
		}
	}
	s = newSite(t, map[string]http.HandlerFunc{"/good": serve("/good"), "/bad": serve("/bad")})
	w.oauth.Documents = oauth.FetcherThatTrusts(trustAll, s.roots())
	asks := func(when string, fetches int64) {
		t.Helper()
		before := s.requests.Load()
		for path, refused := range map[string]bool{"/good": false, "/bad": true} {
			if got := w.asks(s.URL + path); got.Status == http.StatusBadRequest != refused {
				t.Errorf("%s: %s: %d", when, path, got.Status)
			}
		}
		if got := s.requests.Load() - before; got != fetches {
			t.Errorf("%s: %d documents were fetched, want %d", when, got, fetches)
		}
	}
	const jump = 300 * 24 * time.Hour
	w.ahead.Add(int64(jump))
	asks("while the clock is ahead", 2)
	app := w.register()
	w.ahead.Add(int64(-jump))
	asks("when it is right", 2)
	asks("at once again", 0)
	if got := w.asks(app.ID); got.Status == http.StatusBadRequest {
		t.Errorf("the registered client: %d", got.Status)
	}
}

func TestRefresh_ScopeIsHonored(t *testing.T) {
	w := newWorld(t, account.Admin)
	app := w.register()
	w.signIn()
	first := w.token(app.TokenRequest(w.consent(w.request(app), "mcp:devices:read", "mcp:policies:read").Get("code")))
	rotate := func(scope string) client.Tokens {
		form := refreshRequest(first)
		form.Set("scope", scope)
		return w.token(form)
	}
	for _, scope := range []string{"mcp:devices:read mcp:devices:command", "mcp:everything"} {
		if got := rotate(scope); got.Status != http.StatusBadRequest || got.Error != "invalid_scope" {
			t.Errorf("%s: %+v", scope, got)
		}
	}
	narrow := rotate("mcp:policies:read")
	if narrow.Status != http.StatusOK || narrow.Scope != "mcp:policies:read" {
		t.Fatalf("fewer scopes: %+v", narrow)
	}
	if _, p, err := w.db.ConnectionByToken(t.Context(), access.HashSecret(narrow.Access)); err != nil ||
		p.Permissions != access.PoliciesRead {
		t.Errorf("the narrower token may %s, %v", p.Permissions, err)
	}
	first = narrow
	if whole := rotate(""); whole.Status != http.StatusOK || whole.Scope != "mcp:devices:read mcp:policies:read" {
		t.Errorf("without a scope: %+v", whole)
	}
}

func trustAll(netip.Addr) bool { return true }
