package contract_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/test/needs"
)

// checklist is what the MCP authorization specification (2026-07-28) asks of a
// resource server and an authorization server, row by row, with the test of
// each: over HTTP against the whole service, or, where a client's own web site
// is needed, in the package of the authorization server.
var checklist = []struct {
	row       int
	asks      string
	proof     func(t *testing.T, s *authSite)
	elsewhere string // the name of a test in internal/surface/oauth
}{
	{1, "R MUST: resource metadata (RFC 9728) with its authorization server, at the path's and the root's address",
		row01ResourceMetadata, ""},
	{2, "R MUST: resource_metadata in the 401's challenge", row02ChallengeNamesMetadata, ""},
	{3, "R SHOULD: scope in the 401's challenge, minimal scopes_supported, no offline_access", row03MinimalScopes, ""},
	{4, "R MUST: tokens are validated, 401 for bad ones, none taken from the query", row04TokensAreValidated, ""},
	{5, "R MUST NOT: take other servers' tokens, or pass ours on", row05NoPassthrough, ""},
	{6, "R SHOULD: 403 insufficient_scope with all scopes of the operation and resource_metadata", row06InsufficientScope, ""},
	{7, "R MUST: scopes have a hierarchy", row07ScopeHierarchy, ""},
	{8, "R MUST: Origin is validated, and every request authenticated", row08OriginAndEveryRequest, ""},
	{9, "A MUST: OAuth 2.1 for public and confidential clients, RFC 8414 metadata with the very issuer", row09ServerMetadataAndClients, ""},
	{10, "A MUST: PKCE, S256 only, advertised", row10ProofKey, ""},
	{11, "A MUST: exact redirect URIs, but for a loopback's port; https or loopback only", row11Redirects, ""},
	{12, "A MUST: refresh tokens rotate, reuse revokes the family", row12Rotation, ""},
	{13, "A SHOULD: access tokens live shortly", row13ShortLife, ""},
	{14, "A SHOULD/MUST: clients by metadata document", nil, "TestClients_ByMetadataDocument"},
	{15, "A SHOULD: no request forgery by that document", nil, "TestDocuments_AreFetchedSafely"},
	{16, "A MUST/SHOULD: consent shows the redirect's host and warns of clients on the own machine", row16ConsentPage, ""},
	{17, "A MAY: dynamic registration, limited, expiring, its name not trusted", row17Registration, ""},
	{18, "A SHOULD/MUST: iss in answers and errors, advertised", row18Issuer, ""},
	{19, "A: resource indicators bind; others are refused, none means ours", row19Resource, ""},
	{20, "A SHOULD: a code is good once, for a minute; its replay revokes; nothing is cached", row20SingleUseCodes, ""},
	{21, "A MUST: our own consent for each client, each time", row21ConsentEachTime, ""},
	{22, "R MUST: handles are no credentials: proposals belong to connection and user", row22Handles, ""},
}

// authSite is what the rows share: one service; each makes its own company.
type authSite struct {
	*servertest.Env
	replica *servertest.Replica
	base    string // the public URL
}

func newAuthSite(t *testing.T) *authSite {
	t.Helper()
	env := servertest.New(t)
	replica := env.Start()
	return &authSite{env, replica, replica.PublicURL()}
}

func TestAuthorization_Checklist(t *testing.T) {
	t.Parallel()
	tenant := newAuthSite(t)
	sources, err := filepath.Glob("../../internal/surface/oauth/*_test.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no tests of the authorization server: %v", err)
	}
	var text strings.Builder
	for _, file := range sources {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(body)
	}
	for i, row := range checklist {
		if row.row != i+1 {
			t.Errorf("row %d is missing", i+1)
		}
		if row.proof == nil {
			if !strings.Contains(text.String(), "func "+row.elsewhere+"(t *testing.T)") {
				t.Errorf("row %d: there is no test %s", row.row, row.elsewhere)
			}
			continue
		}
		t.Run(row.asks, func(t *testing.T) {
			t.Parallel()
			row.proof(t, tenant)
		})
	}
	if len(checklist) != 22 {
		t.Errorf("%d rows", len(checklist))
	}
}

// person makes a company with everything on and a person in it.
func (s *authSite) person(t *testing.T, role account.Role) *servertest.Browser {
	t.Helper()
	return s.Browser(s.Company(servertest.UniqueSlug(), servertest.Everything()), role)
}

func (s *authSite) metadata(t *testing.T, path string) map[string]any {
	t.Helper()
	status, body := servertest.Fetch(t, s.base+path)
	var document map[string]any
	if err := json.Unmarshal([]byte(body), &document); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, body)
	}
	return document
}

func texts(v any) []string {
	var all []string
	list, _ := v.([]any)
	for _, each := range list {
		all = append(all, each.(string))
	}
	return all
}

// challenge reads the parameters of a Bearer challenge.
func challenge(t *testing.T, answer servertest.Answer) map[string]string {
	t.Helper()
	header := answer.Header.Get("WWW-Authenticate")
	if !strings.HasPrefix(header, "Bearer ") {
		t.Fatalf("%d has no Bearer challenge: %q", answer.Status, header)
	}
	found := map[string]string{}
	for _, match := range regexp.MustCompile(`([a-z_]+)="([^"]*)"`).FindAllStringSubmatch(header, -1) {
		found[match[1]] = match[2]
	}
	return found
}

func row01ResourceMetadata(t *testing.T, s *authSite) {
	for _, path := range []string{oauth.ResourcePath + "/mcp", oauth.ResourcePath} {
		document := s.metadata(t, path)
		if document["resource"] != s.base+"/mcp" || !slices.Equal(texts(document["authorization_servers"]), []string{s.base}) ||
			!slices.Equal(texts(document["bearer_methods_supported"]), []string{"header"}) {
			t.Errorf("%s: %v", path, document)
		}
	}
}

func row02ChallengeNamesMetadata(t *testing.T, s *authSite) {
	anonymous := servertest.Assistant{TB: t, URL: s.base, Protocol: servertest.ModernProtocol}
	for _, answer := range []servertest.Answer{anonymous.Request("tools/list", nil).Answer,
		anonymous.Legacy().Request("initialize", nil).Answer} {
		got := challenge(t, answer.Want(t, http.StatusUnauthorized))
		if got["resource_metadata"] != s.base+oauth.ResourcePath+"/mcp" || got["error"] != "" {
			t.Errorf("challenge %v", got)
		}
	}
	path := strings.TrimPrefix(challenge(t, anonymous.Request("tools/list", nil).Answer)["resource_metadata"], s.base)
	if s.metadata(t, path)["resource"] != s.base+"/mcp" {
		t.Error("the challenge leads to another resource")
	}
}

func row03MinimalScopes(t *testing.T, s *authSite) {
	anonymous := servertest.Assistant{TB: t, URL: s.base, Protocol: servertest.ModernProtocol}
	challenged := strings.Fields(challenge(t, anonymous.Request("tools/list", nil).Answer)["scope"])
	minimal := []string{"mcp:devices:read", "mcp:policies:read"}
	if listed := texts(s.metadata(t, oauth.ResourcePath+"/mcp")["scopes_supported"]); !slices.Equal(listed, minimal) ||
		!slices.Equal(challenged, minimal) {
		t.Errorf("the metadata lists %v, the challenge asks for %v", listed, challenged)
	}
	if all := texts(s.metadata(t, oauth.ServerPath)["scopes_supported"]); len(all) != 6 || slices.Contains(all, "offline_access") {
		t.Errorf("the authorization server knows %v", all)
	}
}

func row04TokensAreValidated(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	good := ada.Connect(s.base, "mcp:devices:read")
	servertest.WithToken(t, s.base, good.Access).Call("count_assets", nil).OK(t, nil)
	for what, token := range map[string]string{
		"nonsense": "nonsense", "a refresh token": good.Refresh, "an API key that does not exist": "mk_" + strings.Repeat("a", 8) + "_" +
			strings.Repeat("a", 49),
		"a cut token": good.Access[:len(good.Access)-1], "another's token": "mat_" + strings.Repeat("a", 49),
		"a JSON web token": "eyJhbGciOiJub25lIn0.eyJhdWQiOiJtY3AifQ.",
	} {
		t.Run(what, func(t *testing.T) {
			answer := servertest.WithToken(t, s.base, token).Call("count_assets", nil).Answer
			if got := challenge(t, answer.Want(t, http.StatusUnauthorized)); got["error"] != "invalid_token" {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
	for _, query := range []string{"?access_token=" + good.Access, "?api_key=x", "?x=1&access_token=" + good.Access} {
		if status := post(t, s.base+mcp.Path+query, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	both := servertest.WithToken(t, s.base, good.Access)
	both.Header.Set("X-Api-Key", "mk_x")
	both.Call("count_assets", nil).Want(t, http.StatusBadRequest)
	twice := servertest.WithToken(t, s.base, good.Access)
	twice.Header.Add("Authorization", "Bearer other")
	twice.Call("count_assets", nil).Want(t, http.StatusBadRequest)
	// REST knows keys alone (contract 5.1).
	bearer := s.replica.As("").Do("GET", "/assets/count", nil, "Authorization", "Bearer "+good.Access)
	bearer.Want(t, http.StatusUnauthorized)
}

func post(t *testing.T, address, body string) int {
	t.Helper()
	return servertest.Send(t, "POST", address, body, "Content-Type", "application/json").Status
}

func row05NoPassthrough(t *testing.T, s *authSite) {
	needs.Zbar().Of(t)
	tenant := s.NewTenant(servertest.UniqueSlug())
	device := tenant.Devices(s.replica, servertest.FullyManaged(), 1)[0]
	token := s.Browser(tenant.Company, account.Admin).Connect(s.base, "mcp:devices:command")
	servertest.WithToken(t, s.base, token.Access).Call("lock_device", map[string]any{"assetId": device.AssetID}).OK(t, nil)
	calls, err := json.Marshal(s.Emulator.Calls(0, ""))
	if err != nil || !strings.Contains(string(calls), "issueCommand") {
		t.Fatalf("the command never reached the vendor: %v", err)
	}
	for what, secret := range map[string]string{"access": token.Access, "refresh": token.Refresh} {
		if strings.Contains(string(calls), secret) || strings.Contains(string(s.Log.Text()), secret) {
			t.Errorf("the %s token went to the vendor or the log", what)
		}
	}
}

func row06InsufficientScope(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	assistant := servertest.WithToken(t, s.base, ada.Connect(s.base, "mcp:devices:read").Access)
	for tool, want := range map[string]string{
		"update_policy_settings":      "mcp:devices:read mcp:policies:read mcp:policies:write",
		"create_provisioning_qr_code": "mcp:devices:read mcp:policies:read mcp:provisioning",
		"change_device_policy":        "mcp:devices:read mcp:devices:command mcp:policies:read",
		"wipe_device":                 "mcp:devices:read mcp:devices:destructive",
	} {
		t.Run(tool, func(t *testing.T) {
			answer := assistant.Call(tool, nil).Answer
			got := challenge(t, answer.Want(t, http.StatusForbidden))
			if got["error"] != "insufficient_scope" || got["scope"] != want ||
				got["resource_metadata"] != s.base+oauth.ResourcePath+"/mcp" {
				t.Errorf("%s: %v, want %s", tool, got, want)
			}
			// An earlier client cannot ask for more by itself: it receives a tool error.
			if e := assistant.Legacy().Call(tool, nil).Failed(t); e.Code != "forbidden" || e.Status != http.StatusForbidden {
				t.Errorf("%s for an earlier client: %+v", tool, e)
			}
		})
	}
	// What asking for more would not change is no matter of scopes.
	viewer := servertest.WithToken(t, s.base, s.person(t, account.Viewer).Connect(s.base, "mcp:devices:read").Access)
	if e := viewer.Call("wipe_device", nil).Failed(t); e.Code != "forbidden" {
		t.Errorf("a viewer's wipe: %+v", e)
	}
}

func row07ScopeHierarchy(t *testing.T, s *authSite) {
	for scope, reads := range map[string]string{
		"mcp:policies:write": "list_policies", "mcp:provisioning": "list_policies",
		"mcp:devices:command": "count_assets", "mcp:devices:destructive": "count_assets",
	} {
		ada := s.person(t, account.Admin)
		servertest.WithToken(t, s.base, ada.Connect(s.base, scope).Access).Call(reads, nil).OK(t, nil)
	}
}

func row08OriginAndEveryRequest(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	assistant := servertest.WithToken(t, s.base, ada.Connect(s.base, "mcp:devices:read").Access)
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for origin, want := range map[string]int{
		"https://evil.example": 403, "null": 403, s.base + ".evil.example": 403, "http://127.0.0.1:1": 403, s.base: 200,
	} {
		if got := assistant.Legacy().Send(body, "Origin", origin); got.Status != want {
			t.Errorf("Origin %s: %d, want %d", origin, got.Status, want)
		}
	}
	if got := assistant.Legacy().Send(body, "Sec-Fetch-Site", "cross-site"); got.Status != http.StatusForbidden {
		t.Errorf("another site without Origin: %d", got.Status)
	}
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+mcp.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "evil.example"
	rebound.Header.Set("Origin", "http://evil.example")
	response, err := http.DefaultClient.Do(rebound)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a rebound name: %d", response.StatusCode)
	}
	anonymous := servertest.Assistant{TB: t, URL: s.base, Protocol: servertest.ModernProtocol}
	for _, method := range []string{"initialize", "server/discover", "tools/list", "tools/call", "ping", "notifications/initialized"} {
		anonymous.Request(method, nil).Want(t, http.StatusUnauthorized)
	}
}

func row09ServerMetadataAndClients(t *testing.T, s *authSite) {
	document := s.metadata(t, oauth.ServerPath)
	if document["issuer"] != s.base || document["client_id_metadata_document_supported"] != true ||
		!slices.Equal(texts(document["grant_types_supported"]), []string{"authorization_code", "refresh_token"}) ||
		!slices.Equal(texts(document["response_types_supported"]), []string{"code"}) {
		t.Errorf("metadata %v", document)
	}
	for member, path := range map[string]string{"authorization_endpoint": oauth.AuthorizePath, "token_endpoint": oauth.TokenPath,
		"registration_endpoint": oauth.RegisterPath, "revocation_endpoint": oauth.RevokePath} {
		if document[member] != s.base+path {
			t.Errorf("%s is %v", member, document[member])
		}
	}
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	client := ada.RegisterAs(s.base, `{"client_name":"Server","redirect_uris":["`+client.RedirectURI+
		`"],"token_endpoint_auth_method":"client_secret_basic"}`)
	if client.Secret == "" {
		t.Fatal("a confidential client has no secret")
	}
	form := func(code string) url.Values { return client.TokenRequest(code) }
	code := func() string { return ada.Consents(s.base, client.AuthorizationRequest(s.base), "mcp:devices:read") }
	first := code()
	for _, secret := range []string{"", "wrong"} {
		f := form(first)
		f.Set("client_secret", secret)
		answer := ada.Send(s.base+oauth.TokenPath, f).Want(t, http.StatusUnauthorized)
		if answer.Members(t)["error"] != "invalid_client" || answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("with the secret %q: %s", secret, answer.Body)
		}
	}
	withSecret := form(first)
	withSecret.Set("client_secret", client.Secret)
	ada.Send(s.base+oauth.TokenPath, withSecret).Want(t, http.StatusOK)
	basic := form(code())
	basic.Del("client_id")
	ada.Send(s.base+oauth.TokenPath, basic, "Authorization", basicAuth(client.ID, client.Secret)).Want(t, http.StatusOK)
}

func row10ProofKey(t *testing.T, s *authSite) {
	if methods := texts(s.metadata(t, oauth.ServerPath)["code_challenge_methods_supported"]); !slices.Equal(methods, []string{"S256"}) {
		t.Errorf("methods %v", methods)
	}
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	client := ada.Register(s.base)
	for what, change := range map[string]func(url.Values){
		"no challenge": func(q url.Values) { q.Del("code_challenge") }, "plain": func(q url.Values) {
			q.Set("code_challenge_method", "plain")
		},
		"no method": func(q url.Values) { q.Del("code_challenge_method") }, "a short challenge": func(q url.Values) {
			q.Set("code_challenge", "abc")
		},
	} {
		t.Run(what, func(t *testing.T) {
			request := client.AuthorizationRequest(s.base)
			change(request)
			if got := sentBack(t, ada.Send(s.base+oauth.AuthorizePath+"?"+request.Encode(), nil)); got.Get("error") != "invalid_request" {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
	code := ada.Consents(s.base, client.AuthorizationRequest(s.base), "mcp:devices:read")
	for _, verifier := range []string{"", strings.Repeat("x", 43)} {
		form := client.TokenRequest(code)
		form.Set("code_verifier", verifier)
		if got := ada.Token(s.base, form); got.Error != "invalid_grant" {
			t.Errorf("verifier %q: %+v", verifier, got)
		}
	}
	if got := ada.Redeem(s.base, client, code); got.Status != http.StatusOK {
		t.Errorf("the right verifier: %+v", got)
	}
}

// sentBack is what a redirect to the client carries, or a page that leads there.
func sentBack(t *testing.T, answer servertest.Answer) url.Values {
	t.Helper()
	location := answer.Header.Get("Location")
	if answer.Status == http.StatusOK {
		location = answer.Onward()
	}
	to, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, client.RedirectURI+"?") {
		t.Fatalf("%d to %q: %s", answer.Status, location, answer.Body)
	}
	return to.Query()
}
