package oauth_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	oauthserver "github.com/musterhq/muster/internal/surface/oauth"
)

// oneClient knows one client and lets everyone through.
type oneClient struct{ oauth.Store }

func (oneClient) OAuthClient(_ context.Context, id string) (oauth.Client, error) {
	if id != "mc_1" {
		return oauth.Client{}, fault.New(fault.NotFound, "no such client")
	}
	return oauth.Client{ID: id, RedirectURIs: []string{"https://app.example.com/cb?own=1", "http://127.0.0.1/cb"}}, nil
}

func (oneClient) Spend(context.Context, string, int, time.Duration, time.Time) (int, bool, time.Time, error) {
	return 1, true, time.Time{}, nil
}

// Whatever the parameters: an answer goes to a registered address or nowhere,
// carries our issuer once, and only a request with PKCE for our resource passes.
func FuzzAuthorize(f *testing.F) {
	const issuer = "https://muster.example"
	for _, seed := range []string{
		"client_id=mc_1&redirect_uri=https%3A%2F%2Fapp.example.com%2Fcb%3Fown%3D1&response_type=code&state=s" +
			"&code_challenge_method=S256&code_challenge=" + strings.Repeat("a", 43),
		"client_id=mc_1&redirect_uri=http%3A%2F%2F127.0.0.1%3A4711%2Fcb&response_type=code" +
			"&scope=mcp%3Adevices%3Aread&resource=https%3A%2F%2Fmuster.example%2Fmcp%2F",
		"client_id=https%3A%2F%2F127.0.0.1%2Fc.json&iss=x&iss=y", "state=a&state=b",
		"client_id=mc_1&redirect_uri=https%3A%2F%2Fevil.example",
	} {
		f.Add(seed)
	}
	server := &oauthserver.Server{Issuer: issuer, Resource: issuer + "/mcp", Store: oneClient{}, Throttle: oneClient{}, Now: time.Now,
		Documents: oauthserver.NewDocumentFetcher(func(netip.Addr) bool { return false }), Log: slog.New(slog.DiscardHandler),
		ClientAddress: func(*http.Request) string { return "192.0.2.1" }}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil || strings.HasPrefix(query.Get("client_id"), "https:") {
			return // no names are looked up here
		}
		to, err := server.ParseAuthorization(httptest.NewRequest("GET", "/", nil), query)
		if err != nil && to == "" {
			return
		}
		u, parseErr := url.Parse(to)
		if parseErr != nil {
			t.Fatalf("%q leads to %q", text, to)
		}
		https := u.Scheme == "https" && u.Host == "app.example.com" && u.Path == "/cb" && u.Query().Get("own") == "1"
		loopback := u.Scheme == "http" && u.Hostname() == "127.0.0.1" && u.Path == "/cb"
		if !https && !loopback || len(u.Query()["iss"]) != 1 || u.Query().Get("iss") != issuer {
			t.Fatalf("%q leads to %q", text, to)
		}
		if err == nil && (len(query.Get("code_challenge")) != 43 || query.Get("code_challenge_method") != "S256" ||
			query.Get("response_type") != "code") {
			t.Fatalf("%q passes", text)
		}
		if errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}
