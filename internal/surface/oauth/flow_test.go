package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/script"
	oauthserver "github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/web"
)

const password = "correct horse battery"

// world is an authorization server with one company and one person.
type world struct {
	t       *testing.T
	db      *database.DB
	server  *httptest.Server
	oauth   *oauthserver.Server
	user    account.User
	browser *client.Browser
	ahead   atomic.Int64 // how far the server's clock is ahead, in nanoseconds
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func newWorld(t *testing.T, role account.Role) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t}
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "m.db")), Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.db = db
	mux := http.NewServeMux()
	w.server = httptest.NewServer(web.Secure(mux, oauthserver.TokenPath, oauthserver.RegisterPath, oauthserver.RevokePath))
	t.Cleanup(w.server.Close)

	passwords := account.NewPasswords(2)
	log := slog.New(slog.DiscardHandler)
	sessions := web.Sessions{Store: db, Browsers: account.Browsers{Sealer: clear{}}, Now: w.now}
	address := func(*http.Request) string { return "192.0.2.1" }
	server := &oauthserver.Server{Issuer: w.server.URL, Resource: w.server.URL + "/mcp", Store: db, Throttle: db, Now: w.now, Log: log,
		Documents: oauthserver.NewDocumentFetcher(func(netip.Addr) bool { return false }), ClientAddress: address}
	w.oauth = server
	server.Mount(mux)
	oauthserver.Consent{Server: server, Sessions: sessions, Companies: db}.Mount(mux)
	web.SignIn{SignIn: account.SignIn{Users: db, Sessions: db, Passwords: passwords, Reserved: passwords, Throttle: db,
		Refused: db.SignInFailed, Now: time.Now}, Passkeys: account.Passkeys{Store: db}, Federation: account.Federation{Providers: db},
		Sessions: sessions, ClientAddress: address, Log: log}.Mount(mux)

	c := company.Company{ID: resource.NewID(), Slug: "acme", Name: "Acme", InactiveAfter: time.Hour, CreatedAt: time.Now(),
		Settings: access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true,
			OAuthConnections: true}}
	if err := db.CreateCompany(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	hash, err := passwords.Hash(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	rights, _ := role.Rights()
	w.user = account.User{ID: resource.NewID(), CompanyID: c.ID, Email: "ada@acme.test", Name: "Ada", Role: role, Rights: rights,
		PasswordHash: hash, CreatedAt: time.Now()}
	if err := db.CreateUser(t.Context(), w.user); err != nil {
		t.Fatal(err)
	}
	w.browser = w.stranger()
	return w
}

// clear seals nothing.
type clear struct{}

func (clear) Seal(_ string, data []byte) []byte { return data }

func (clear) Open(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

// stranger is a browser that is not signed in and follows no redirects.
func (w *world) stranger() *client.Browser {
	b := client.NewBrowser(w.server.URL)
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// step is a step of the browser, whose failure fails the test.
func step[T any](w *world, take func(context.Context) T) (result T) {
	w.t.Helper()
	if err := script.Attempt(func() { result = take(w.t.Context()) }); err != nil {
		w.t.Fatal(err)
	}
	return result
}

// send makes a request; a form makes it a POST. Headers are names and values in turn.
func (w *world) send(method, address string, form url.Values, headers ...string) (page client.Page, body string) {
	w.t.Helper()
	page = step(w, func(ctx context.Context) client.Page {
		if form != nil {
			return w.browser.Submit(ctx, address, form, headers...)
		}
		return w.browser.Send(ctx, method, address, http.NoBody, headers...)
	})
	return page, page.Body
}

// registration is the status of the answer to a client's metadata.
func (w *world) registration(metadata string) int {
	w.t.Helper()
	return step(w, func(ctx context.Context) client.Page {
		return w.browser.Send(ctx, "POST", oauthserver.RegisterPath, strings.NewReader(metadata), "Content-Type", "application/json")
	}).Status
}

// register registers a public client.
func (w *world) register() client.OAuthClient {
	return w.registerAs(client.PublicClient("Helper", redirect))
}

// registerAs registers a client by its metadata.
func (w *world) registerAs(metadata string) client.OAuthClient {
	w.t.Helper()
	return step(w, func(ctx context.Context) client.OAuthClient { return w.browser.Register(ctx, metadata) })
}

func (w *world) signIn() {
	w.t.Helper()
	response, _ := w.send("POST", w.server.URL+"/signin", url.Values{"email": {w.user.Email}, "password": {password}})
	if response.Status != http.StatusSeeOther {
		w.t.Fatalf("sign-in: %d", response.Status)
	}
}

const redirect = client.RedirectURI

func (w *world) request(c client.OAuthClient) url.Values {
	return c.AuthorizationRequest(w.server.URL, "mcp:devices:read")
}

// consent answers the question and returns the parameters with which the browser is sent back.
func (w *world) consent(request url.Values, scopes ...string) url.Values {
	w.t.Helper()
	return step(w, func(ctx context.Context) url.Values { return w.browser.Consent(ctx, request, scopes...) })
}

func (w *world) token(form url.Values) client.Tokens {
	w.t.Helper()
	answer := step(w, func(ctx context.Context) client.Tokens { return w.browser.Token(ctx, form) })
	if answer.Header.Get("Cache-Control") != "no-store" {
		w.t.Error("a token answer may be cached")
	}
	return answer
}

// refreshRequest is the form that exchanges a refresh token for other tokens.
func refreshRequest(t client.Tokens) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {t.Client.ID}, "refresh_token": {t.Refresh}}
}

func TestFlow_SignInConsentTokenRefreshReplay(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	request := w.request(client)

	response, _ := w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
	if to := response.Header.Get("Location"); response.Status != http.StatusSeeOther ||
		!strings.HasPrefix(to, "/signin?next=%2Foauth%2Fauthorize") {
		t.Fatalf("a stranger is sent to %q (%d)", to, response.Status)
	}
	w.signIn()
	response, page := w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
	for _, want := range []string{"Helper", "Acme", "app.example.com", "Unverified", "Wipe devices"} {
		if !strings.Contains(page, want) {
			t.Errorf("the consent page (%d) does not say %q", response.Status, want)
		}
	}
	if policy := response.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self';") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}

	answer := w.consent(request, "mcp:devices:read", "mcp:policies:write")
	if answer.Get("state") != "s t" || answer.Get("iss") != w.server.URL || answer.Get("code") == "" {
		t.Fatalf("answer %v", answer)
	}
	wrong := client.TokenRequest(answer.Get("code"))
	wrong.Set("code_verifier", strings.Repeat("x", 43))
	if got := w.token(wrong); got.Status != 400 || got.Error != "invalid_grant" {
		t.Errorf("wrong verifier: %+v", got)
	}
	first := w.token(client.TokenRequest(answer.Get("code")))
	if first.Status != 200 || first.Scope != "mcp:devices:read mcp:policies:read mcp:policies:write" {
		t.Fatalf("tokens: %+v", first)
	}
	rotate := refreshRequest(first)
	second := w.token(rotate)
	if second.Status != 200 || second.Access == first.Access {
		t.Fatalf("refresh: %+v", second)
	}
	if _, _, err := w.db.ConnectionByToken(t.Context(), access.HashSecret(second.Access)); err != nil {
		t.Fatal(err)
	}
	w.ahead.Add(int64(oauth.ReuseWindow + time.Second))
	if got := w.token(rotate); got.Status != 400 || got.Error != "invalid_grant" {
		t.Errorf("replayed refresh: %+v", got)
	}
	if _, _, err := w.db.ConnectionByToken(t.Context(), access.HashSecret(second.Access)); err == nil {
		t.Error("a replay left the connection alive")
	}
}

// While changes in the portal are stopped, the token endpoint takes no code, and says why.
func TestToken_TakesNoCodeWhileChangesAreStopped(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	answer := w.consent(w.request(client), "mcp:devices:read")
	if _, err := w.db.UpdateCompany(t.Context(), w.user.CompanyID, company.Change(func(c *company.Company) {
		c.Settings.Stop = access.Stop{At: w.now(), Reason: "a stolen account", All: true}
	})); err != nil {
		t.Fatal(err)
	}
	page, body := w.send("POST", oauthserver.TokenPath, client.TokenRequest(answer.Get("code")))
	if page.Status != 400 || !strings.Contains(body, `"invalid_grant"`) || !strings.Contains(body, "changes are stopped") ||
		strings.Contains(body, "stolen") {
		t.Errorf("a code during the stop: %d %s", page.Status, body)
	}
}

// full is a throttle without room.
type full struct{}

func (full) Spend(_ context.Context, _ string, limit int, window time.Duration, now time.Time) (int, bool, time.Time, error) {
	return limit, false, now.Add(window), nil
}

// The endpoints of tokens have a limit, also for who is an application by its own word.
func TestToken_IsLimited(t *testing.T) {
	w := newWorld(t, account.Admin)
	w.oauth.Throttle = full{}
	for _, path := range []string{oauthserver.TokenPath, oauthserver.RevokePath} {
		page, _ := w.send("POST", path, url.Values{"client_id": {"https://example.com/app"}, "token": {"x"}})
		if page.Status != 429 || page.Header.Get("Retry-After") != "3600" {
			t.Errorf("%s: %d, Retry-After %q", path, page.Status, page.Header.Get("Retry-After"))
		}
	}
}

// broken counts nothing: the database is away, or its disk is full.
type broken struct{}

func (broken) Spend(context.Context, string, int, time.Duration, time.Time) (int, bool, time.Time, error) {
	return 0, false, time.Time{}, errDisk
}

var errDisk = errors.New("no space left on /var/lib/muster")

// A client that cannot refresh because of a failure of our own is told to try again: after server_error, some have their
// person sign in again.
func TestToken_FailureIsTemporary(t *testing.T) {
	w := newWorld(t, account.Admin)
	var log strings.Builder
	w.oauth.Throttle, w.oauth.Log = broken{}, slog.New(slog.NewTextHandler(&log, nil))
	for _, path := range []string{oauthserver.TokenPath, oauthserver.RevokePath, oauthserver.RegisterPath} {
		log.Reset()
		page, body := w.send("POST", path, url.Values{"client_id": {"https://example.com/app"}, "grant_type": {"refresh_token"},
			"refresh_token": {"x"}, "token": {"x"}})
		if page.Status != 503 || page.Header.Get("Retry-After") != "5" || !strings.Contains(body, `"temporarily_unavailable"`) ||
			strings.Contains(body, "/var/lib") {
			t.Errorf("%s: %d, Retry-After %q, %s", path, page.Status, page.Header.Get("Retry-After"), body)
		}
		if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), errDisk.Error()) {
			t.Errorf("%s: the log has %q", path, log.String())
		}
	}
}

// lost is a store that cannot be read.
type lost struct{ oauth.Store }

func (lost) OAuthClient(context.Context, string) (oauth.Client, error) {
	return oauth.Client{}, errDisk
}

// unconsented is a store in which no consent can be looked up.
type unconsented struct{ oauth.Store }

func (unconsented) ConsentedScopes(context.Context, string, string) (access.Permission, error) {
	return 0, errDisk
}

// A failure of our own does not make a request one that cannot be trusted.
func TestAuthorize_FailureIsTemporary(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	store := w.oauth.Store
	w.oauth.Store = unconsented{store}
	page, body := w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+w.request(client).Encode(), nil)
	if to := page.Header.Get("Location"); !strings.HasPrefix(to, redirect) || !strings.Contains(to, "error=temporarily_unavailable") ||
		strings.Contains(to, "space") {
		t.Errorf("to a client that is known: %d %s, to %q", page.Status, body, to)
	}
	w.oauth.Store = lost{store}
	page, body = w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+w.request(client).Encode(), nil)
	if page.Status != 503 || page.Header.Get("Retry-After") != "5" {
		t.Errorf("to a client that cannot be read: %d, Retry-After %q", page.Status, page.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, "Try again in a moment") || strings.Contains(body, "cannot be trusted") ||
		strings.Contains(body, "/var/lib") {
		t.Errorf("the page says %s", body)
	}
}

func TestConsent_GrantsNoMoreThanTheUserMay(t *testing.T) {
	w := newWorld(t, account.Viewer)
	client := w.register()
	w.signIn()
	answer := w.consent(w.request(client), "mcp:devices:read", "mcp:devices:destructive", "mcp:policies:write")
	if got := w.token(client.TokenRequest(answer.Get("code"))); got.Scope != "mcp:devices:read mcp:policies:read" {
		t.Errorf("granted %q", got.Scope)
	}
	if answer := w.consent(w.request(client), "mcp:devices:destructive"); answer.Get("error") != "access_denied" &&
		answer.Get("code") == "" {
		t.Errorf("answer %v", answer)
	}
}

func TestAuthorize_BadRequestsAreNotRedirected(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	signedIn := &world{t: t, server: w.server, user: w.user, browser: w.stranger()}
	signedIn.signIn()
	for name, test := range map[string]struct {
		key, value string
		code       string // at the redirect; empty: a page of ours, no redirect
	}{
		"unknown client":     {"client_id", "mc_nobody", ""},
		"private document":   {"client_id", "https://127.0.0.1:1/c.json", ""},
		"foreign redirect":   {"redirect_uri", "https://evil.example/cb", ""},
		"redirect's path":    {"redirect_uri", redirect + "/x", ""},
		"no redirect":        {"redirect_uri", "", ""},
		"token response":     {"response_type", "token", "unsupported_response_type"},
		"no PKCE":            {"code_challenge", "", "invalid_request"},
		"plain PKCE":         {"code_challenge_method", "plain", "invalid_request"},
		"short challenge":    {"code_challenge", "abc", "invalid_request"},
		"foreign resource":   {"resource", "https://elsewhere.example/mcp", "invalid_target"},
		"unknown scope":      {"scope", "mcp:everything", "invalid_scope"},
		"case of the scope":  {"scope", "MCP:devices:read", "invalid_scope"},
		"older client":       {"resource", "", "signin"},
		"trailing slash":     {"resource", w.server.URL + "/mcp/", "signin"},
		"no scope asked for": {"scope", "", "signin"},
	} {
		t.Run(name, func(t *testing.T) {
			request := w.request(client)
			request.Set(test.key, test.value)
			if test.value == "" {
				request.Del(test.key)
			}
			response, body := w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
			location := response.Header.Get("Location")
			switch test.code {
			case "":
				if response.Status < 400 || location != "" || !strings.Contains(body, "Nothing was granted") {
					t.Errorf("%s: %d to %q", name, response.Status, location)
				}
			case "signin":
				if !strings.HasPrefix(location, "/signin") {
					t.Errorf("%s: %d to %q", name, response.Status, location)
				}
			default:
				// Before the person is signed in, the page has a link and does not redirect.
				if location != "" || response.Onward() != "" || response.Status != http.StatusBadRequest ||
					!strings.Contains(body, "Nothing was granted") {
					t.Errorf("%s: a stranger is sent to %q (%d)", name, location, response.Status)
				}
				answer, _ := signedIn.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
				to, _ := url.Parse(answer.Header.Get("Location"))
				if q := to.Query(); q.Get("error") != test.code || q.Get("iss") != w.server.URL || q.Get("state") != "s t" {
					t.Errorf("%s: %d to %q", name, response.Status, location)
				}
			}
		})
	}
}

func TestAuthorize_RepeatedParametersAreRefused(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	twice := w.request(client)
	twice.Add("state", "again")
	if response, _ := w.send("GET", w.server.URL+oauthserver.AuthorizePath+"?"+twice.Encode(), nil); response.Status != 400 {
		t.Errorf("a parameter twice: %d", response.Status)
	}
	form := client.TokenRequest("x")
	response, _ := w.send("POST", w.server.URL+oauthserver.TokenPath+"?"+form.Encode(), url.Values{})
	if response.Status != http.StatusUnauthorized {
		t.Errorf("parameters in the query: %d", response.Status)
	}
	form.Add("code", "y")
	if _, body := w.send("POST", w.server.URL+oauthserver.TokenPath, form); !strings.Contains(body, "the parameter code is given twice") {
		t.Errorf("the code twice: %s", body)
	}
}

func TestMetadata(t *testing.T) {
	w := newWorld(t, account.Admin)
	var server map[string]any
	_, body := w.send("GET", w.server.URL+oauthserver.ServerPath, nil)
	if err := json.Unmarshal([]byte(body), &server); err != nil {
		t.Fatal(err)
	}
	if server["issuer"] != w.server.URL || server["authorization_response_iss_parameter_supported"] != true ||
		server["client_id_metadata_document_supported"] != true {
		t.Errorf("server metadata %v", server)
	}
	if methods := server["code_challenge_methods_supported"].([]any); len(methods) != 1 || methods[0] != "S256" {
		t.Errorf("challenge methods %v", methods)
	}
	for _, path := range []string{oauthserver.ResourcePath, oauthserver.ResourcePath + "/mcp"} {
		var resource map[string]any
		_, body := w.send("GET", w.server.URL+path, nil)
		if err := json.Unmarshal([]byte(body), &resource); err != nil || resource["resource"] != w.server.URL+"/mcp" {
			t.Errorf("%s: %v, %v", path, resource, err)
		}
	}
	for path, allow := range map[string]string{oauthserver.ServerPath: "GET, HEAD", oauthserver.ResourcePath + "/mcp": "GET, HEAD",
		oauthserver.RegisterPath: "POST", oauthserver.TokenPath: "POST", oauthserver.RevokePath: "POST"} {
		response, body := w.send("DELETE", w.server.URL+path, nil)
		if got := response.Header.Get("Allow"); response.Status != http.StatusMethodNotAllowed || got != allow {
			t.Errorf("DELETE %s: %d, Allow %q, want 405, %q: %s", path, response.Status, got, allow, body)
		}
	}
}

func TestSignIn_IsThrottledAndLocal(t *testing.T) {
	w := newWorld(t, account.Admin)
	response, _ := w.send("POST", w.server.URL+"/signin",
		url.Values{"email": {w.user.Email}, "password": {password}, "next": {"//evil.example/"}})
	if to := response.Header.Get("Location"); to != "/" {
		t.Errorf("sign-in leads to %q", to)
	}
	last := 0
	for range 6 {
		response, _ := w.send("POST", w.server.URL+"/signin", url.Values{"email": {w.user.Email}, "password": {"wrong password"}})
		last = response.Status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the seventh attempt in a minute: %d", last)
	}
}

func TestConsent_OtherOriginsAreRefused(t *testing.T) {
	w := newWorld(t, account.Admin)
	client := w.register()
	w.signIn()
	form := url.Values{"request": {w.request(client).Encode()}, "scope": {"mcp:devices:read"}, "decision": {"allow"}}
	response, _ := w.send("POST", w.server.URL+oauthserver.AuthorizePath, form, "Sec-Fetch-Site", "cross-site",
		"Origin", "https://evil.example")
	if response.Status != http.StatusForbidden {
		t.Errorf("another site's form: %d", response.Status)
	}
}
