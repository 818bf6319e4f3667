package contract_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	oauthserver "github.com/musterhq/muster/internal/surface/oauth"
)

func basicAuth(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

func row11Redirects(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	for _, uri := range []string{"http://app.example.com/cb", "https://app.example.com/cb#x", "javascript://x/cb",
		"https://u@app.example.com/cb", "/cb"} {
		answer := ada.SendJSON(s.base+oauthserver.RegisterPath, `{"redirect_uris":["`+uri+`"]}`).Want(t, http.StatusBadRequest)
		if answer.Members(t)["error"] != "invalid_redirect_uri" {
			t.Errorf("%s: %s", uri, answer.Body)
		}
	}
	app := ada.RegisterAs(s.base,
		`{"redirect_uris":["`+client.RedirectURI+`","http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`)
	for uri, good := range map[string]bool{
		client.RedirectURI: true, "http://127.0.0.1/cb": true, "http://127.0.0.1:49152/cb": true,
		client.RedirectURI + "/": false, client.RedirectURI + "?x=1": false, "https://app.example.com:8443/cb": false,
		"https://evil.example/cb": false, "http://127.0.0.1:49152/other": false, "http://localhost:49152/cb": false, "": false,
	} {
		t.Run(uri, func(t *testing.T) {
			request := app.AuthorizationRequest(s.base)
			request.Set("redirect_uri", uri)
			answer := ada.Send(s.base+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
			if good && answer.Status != http.StatusOK {
				t.Errorf("redirect %q: %d", uri, answer.Status)
			}
			if !good && (answer.Status != http.StatusBadRequest || answer.Header.Get("Location") != "") {
				t.Errorf("redirect %q: %d to %q", uri, answer.Status, answer.Header.Get("Location"))
			}
		})
	}
	// The token request must name the very same address.
	code := ada.Consents(s.base, app.AuthorizationRequest(s.base), "mcp:devices:read")
	form := app.TokenRequest(code)
	form.Set("redirect_uri", "http://127.0.0.1/cb")
	if got := ada.Token(s.base, form); got.Error != "invalid_grant" {
		t.Errorf("another redirect at the token endpoint: %+v", got)
	}
}

func row12Rotation(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	first := ada.Connect(s.base, "mcp:devices:read")
	second := ada.Swap(s.base, first)
	if second.Status != http.StatusOK || second.Refresh == first.Refresh || second.Access == first.Access {
		t.Fatalf("rotation: %+v", second)
	}
	servertest.WithToken(t, s.base, second.Access).Call("count_assets", nil).OK(t, nil)
	s.Advance(oauth.ReuseWindow + time.Second)
	if got := ada.Swap(s.base, first); got.Status != http.StatusBadRequest || got.Error != "invalid_grant" {
		t.Errorf("a used refresh token: %+v", got)
	}
	for what, token := range map[string]string{"first": first.Access, "second": second.Access} {
		if got := servertest.WithToken(t, s.base, token).Call("count_assets", nil); got.Status != http.StatusUnauthorized {
			t.Errorf("after reuse the %s access token: %d", what, got.Status)
		}
	}
	if got := ada.Swap(s.base, second); got.Error != "invalid_grant" {
		t.Errorf("after reuse the living refresh token: %+v", got)
	}
	other := ada.Connect(s.base, "mcp:devices:read")
	other.Client = ada.Register(s.base)
	if got := ada.Swap(s.base, other); got.Error != "invalid_grant" {
		t.Errorf("another client's refresh token: %+v", got)
	}
}

func row13ShortLife(t *testing.T, _ *authSite) {
	s := newAuthSite(t) // with a clock of its own
	ada := s.person(t, account.Admin)
	token := ada.Connect(s.base, "mcp:devices:read")
	assistant := servertest.WithToken(t, s.base, token.Access)
	const spare = 30 * time.Second // the clock of tests goes on, too
	s.Advance(15*time.Minute - spare)
	assistant.Call("count_assets", nil).OK(t, nil)
	s.Advance(spare)
	if got := challenge(t, assistant.Call("count_assets", nil).Answer); got["error"] != "invalid_token" {
		t.Errorf("after a quarter of an hour: %v", got)
	}
	if next := ada.Swap(s.base, token); next.Status != http.StatusOK {
		t.Errorf("refresh: %+v", next)
	}
}

func row16ConsentPage(t *testing.T, s *authSite) {
	ada := s.person(t, account.Operator)
	ada.SignIn(s.base)
	local := ada.RegisterAs(s.base,
		`{"client_name":"<b>Claude</b> \u202emoc.live","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`)
	request := local.AuthorizationRequest(s.base)
	request.Set("redirect_uri", "http://127.0.0.1:49152/cb")
	page := string(ada.Send(s.base+oauthserver.AuthorizePath+"?"+request.Encode(), nil).Want(t, http.StatusOK).Body)
	for _, want := range []string{"127.0.0.1:49152", "runs on your own computer", "&lt;b&gt;Claude&lt;/b&gt; moc.live", "Unverified",
		"Wipe devices", "You do not have this permission", ada.User.Email} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	web := ada.Register(s.base)
	answer := ada.Send(s.base+oauthserver.AuthorizePath+"?"+web.AuthorizationRequest(s.base).Encode(), nil).Want(t, http.StatusOK)
	if page := string(answer.Body); !strings.Contains(page, "app.example.com") || strings.Contains(page, "your own computer") {
		t.Error("a client on the web: its host is not shown, or a warning is")
	}
	policy := answer.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "form-action 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

func row17Registration(t *testing.T, _ *authSite) {
	s := newAuthSite(t)
	ada, eve := s.person(t, account.Admin), s.person(t, account.Admin)
	ada.SignIn(s.base)
	unused, used := ada.Register(s.base), ada.Register(s.base)
	ada.Redeem(s.base, used, ada.Consents(s.base, used.AuthorizationRequest(s.base), "mcp:devices:read"))
	const metadata = `{"redirect_uris":["https://app.example.com/cb"]}`
	for range 30 {
		eve.SendJSON(s.base+oauthserver.RegisterPath, metadata).Want(t, http.StatusCreated)
	}
	limited := eve.SendJSON(s.base+oauthserver.RegisterPath, metadata).Want(t, http.StatusTooManyRequests)
	if limited.Header.Get("Retry-After") == "" || limited.Members(t)["error"] != "temporarily_unavailable" {
		t.Errorf("the 31st: %v %s", limited.Header, limited.Body)
	}
	ada.SendJSON(s.base+oauthserver.RegisterPath, metadata).Want(t, http.StatusCreated) // another network's limit is another
	for body, code := range map[string]string{
		`[]`: "invalid_client_metadata", `{"redirect_uris":[]}`: "invalid_redirect_uri", `{}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/"],"grant_types":["implicit"]}`:                            "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"private_key_jwt"}`:        "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"client_name":"` + strings.Repeat("x", 101) + `"}`:      "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"redirect_uris":["https://b.example/"]}`:                "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"client_uri":"` + strings.Repeat("x", 16<<10) + `"}`:    "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"` + strings.Repeat(`,"https://a.example/"`, 10) + `]}`:    "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/` + strings.Repeat("x", 2048) + `"],"client_name":"Long"}`: "invalid_redirect_uri",
	} {
		t.Run(fmt.Sprintf("%.60s", body), func(t *testing.T) {
			if got := s.person(t, account.Viewer).SendJSON(s.base+oauthserver.RegisterPath, body).Want(t,
				http.StatusBadRequest); got.Members(t)["error"] != code {
				t.Errorf("%.80s: %s", body, got.Body)
			}
		})
	}
	s.Advance(24 * time.Hour)
	ada.SignIn(s.base)
	for client, want := range map[client.OAuthClient]int{unused: http.StatusBadRequest, used: http.StatusOK} {
		if got := ada.Send(s.base+oauthserver.AuthorizePath+"?"+client.AuthorizationRequest(s.base).Encode(), nil); got.Status != want {
			t.Errorf("a day later: %d, want %d", got.Status, want)
		}
	}
}

func row18Issuer(t *testing.T, s *authSite) {
	if s.metadata(t, oauthserver.ServerPath)["authorization_response_iss_parameter_supported"] != true {
		t.Error("iss is not advertised")
	}
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	client := ada.Register(s.base)
	ask := s.base + oauthserver.AuthorizePath
	request := client.AuthorizationRequest(s.base)
	wrong := client.AuthorizationRequest(s.base, "mcp:everything")
	for what, answer := range map[string]servertest.Answer{
		"success": ada.Send(ask, url.Values{"request": {request.Encode()}, "scope": {"mcp:devices:read"}, "decision": {"allow"}}),
		"denied":  ada.Send(ask, url.Values{"request": {request.Encode()}, "decision": {"deny"}}),
		"nothing": ada.Send(ask, url.Values{"request": {request.Encode()}, "decision": {"allow"}}),
		"error":   ada.Send(ask+"?"+wrong.Encode(), nil),
	} {
		t.Run(what, func(t *testing.T) {
			got := sentBack(t, answer)
			if got.Get("iss") != s.base || got.Get("state") != "s t" || (got.Get("code") == "") == (got.Get("error") == "") {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
}

func row19Resource(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	client := ada.Register(s.base)
	for resource, good := range map[string]bool{
		s.base + "/mcp": true, s.base + "/mcp/": true, strings.Replace(s.base, "http://", "HTTP://", 1) + "/mcp": true, "": true,
		"https://elsewhere.example/mcp": false, s.base + "/api/v1": false, s.base: false, s.base + "/mcp#x": false, "mcp": false,
	} {
		t.Run(resource, func(t *testing.T) {
			request := client.AuthorizationRequest(s.base)
			request.Set("resource", resource)
			if resource == "" {
				request.Del("resource")
			}
			answer := ada.Send(s.base+oauthserver.AuthorizePath+"?"+request.Encode(), nil)
			if good {
				answer.Want(t, http.StatusOK)
			} else if got := sentBack(t, answer); got.Get("error") != "invalid_target" {
				t.Errorf("resource %q: %v", resource, got)
			}
			form := client.TokenRequest(ada.Consents(s.base, client.AuthorizationRequest(s.base), "mcp:devices:read"))
			if resource != "" {
				form.Set("resource", resource)
			}
			if got := ada.Token(s.base, form); good && got.Status != http.StatusOK || !good && got.Error != "invalid_target" {
				t.Errorf("resource %q at the token endpoint: %+v", resource, got)
			}
		})
	}
}

func row20SingleUseCodes(t *testing.T, _ *authSite) {
	s := newAuthSite(t)
	ada := s.person(t, account.Admin)
	ada.SignIn(s.base)
	client := ada.Register(s.base)
	ask := func() string { return ada.Consents(s.base, client.AuthorizationRequest(s.base), "mcp:devices:read") }
	late := ask()
	s.Advance(time.Minute)
	if got := ada.Redeem(s.base, client, late); got.Error != "invalid_grant" {
		t.Errorf("after a minute: %+v", got)
	}
	code := ask()
	answer := ada.Send(s.base+oauthserver.TokenPath, client.TokenRequest(code)).Want(t, http.StatusOK)
	if answer.Header.Get("Cache-Control") != "no-store" || answer.Members(t)["expires_in"] != float64(900) ||
		answer.Members(t)["token_type"] != "Bearer" {
		t.Errorf("%v %s", answer.Header, answer.Body)
	}
	token := fmt.Sprint(answer.Members(t)["access_token"])
	s.Advance(10 * time.Minute) // long after its time the replay is still reported
	if got := ada.Redeem(s.base, client, code); got.Error != "invalid_grant" {
		t.Errorf("a replay: %+v", got)
	}
	if got := servertest.WithToken(t, s.base, token).Call("count_assets", nil); got.Status != http.StatusUnauthorized {
		t.Errorf("after the replay the token: %d", got.Status)
	}
}

func row21ConsentEachTime(t *testing.T, s *authSite) {
	ada := s.person(t, account.Admin)
	token := ada.Connect(s.base, "mcp:devices:read")
	for range 2 {
		page := ada.Send(s.base+oauthserver.AuthorizePath+"?"+token.Client.AuthorizationRequest(s.base, "mcp:devices:read").Encode(), nil)
		if page.Status != http.StatusOK || !strings.Contains(string(page.Body), `value="allow"`) {
			t.Errorf("a known client is not asked for again: %d to %q", page.Status, page.Header.Get("Location"))
		}
	}
	// prompt=none and another site's form do not answer for the person either.
	silent := token.Client.AuthorizationRequest(s.base, "mcp:devices:read")
	silent.Set("prompt", "none")
	ada.Send(s.base+oauthserver.AuthorizePath+"?"+silent.Encode(), nil).Want(t, http.StatusOK)
	forged := url.Values{"request": {token.Client.AuthorizationRequest(s.base).Encode()}, "scope": {"mcp:devices:read"},
		"decision": {"allow"}}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"}} {
		ada.Send(s.base+oauthserver.AuthorizePath, forged, headers...).Want(t, http.StatusForbidden)
	}
}

func row22Handles(t *testing.T, s *authSite) {
	acme := s.Company(servertest.UniqueSlug(), servertest.Everything())
	p := s.Policy(acme, "Handles", policy.Platform)
	ada, bob := s.Browser(acme, account.Admin), s.Browser(acme, account.Admin)
	mine := ada.Connect(s.base, "mcp:policies:write")
	assistant := servertest.WithToken(t, s.base, mine.Access)
	var proposal struct{ ProposalID string }
	assistant.Call("update_policy_settings",
		map[string]any{"policyId": p.ID, "changes": []any{map[string]any{"setting": "CAMERA", "value": "BLOCK"}}}).OK(t, &proposal)
	handle := map[string]any{"proposalId": proposal.ProposalID}
	for who, stranger := range map[string]servertest.Assistant{
		"the same person's other connection": servertest.WithToken(t, s.base, ada.Connect(s.base, "mcp:policies:write").Access),
		"another person":                     servertest.WithToken(t, s.base, bob.Connect(s.base, "mcp:policies:write").Access),
		"an API key":                         servertest.WithKey(t, s.base, s.Key(acme, access.All)),
		"another company": servertest.WithToken(t, s.base,
			s.person(t, account.Admin).Connect(s.base, "mcp:policies:write").Access),
	} {
		t.Run(who, func(t *testing.T) {
			for _, tool := range []string{"get_policy_proposal", "apply_policy_proposal"} {
				if e := stranger.Call(tool, handle).Failed(t); e.Code != "not_found" || e.Status != http.StatusNotFound {
					t.Errorf("%s by %s: %+v", tool, who, e)
				}
			}
		})
	}
	// The connection is the same after its tokens were swapped, and after the
	// person consented to more.
	swapped := ada.Swap(s.base, mine)
	servertest.WithToken(t, s.base, swapped.Access).Call("get_policy_proposal", handle).OK(t, nil)
	again := ada.Redeem(s.base, mine.Client, ada.Consents(s.base, mine.Client.AuthorizationRequest(s.base), "mcp:policies:write",
		"mcp:devices:read"))
	servertest.WithToken(t, s.base, again.Access).Call("apply_policy_proposal", handle).OK(t, nil)
}
