package oauth_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/surface/oauth"
)

// site is a client's web site, which publishes metadata documents.
type site struct {
	*httptest.Server
	requests atomic.Int64
}

func newSite(t *testing.T, pages map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if page, ok := pages[r.URL.Path]; ok {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s
}

func (s *site) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// document is a page with the metadata of the client at path.
func (s *site) document(path, redirect string) string {
	return `{"client_id":"` + s.URL + path + `","client_name":"Published","redirect_uris":["` + redirect + `"]}`
}

func (w *world) asks(id string) client.Page {
	w.t.Helper()
	response, body := w.send("GET", w.server.URL+oauth.AuthorizePath+"?"+w.request(client.OAuthClient{ID: id}).Encode(), nil)
	if response.Status >= 400 && !strings.Contains(body, "Nothing was granted") {
		w.t.Errorf("%d: %s", response.Status, body)
	}
	return response
}

func TestClients_ByMetadataDocument(t *testing.T) {
	w := newWorld(t, account.Admin)
	var s *site
	serve := func(body func() string, cache string) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Cache-Control", cache)
			out.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = fmt.Fprint(out, body())
		}
	}
	s = newSite(t, map[string]http.HandlerFunc{
		"/client.json":    serve(func() string { return s.document("/client.json", redirect) }, "max-age=300"),
		"/foreign.json":   serve(func() string { return s.document("/client.json", redirect) }, ""),
		"/elsewhere.json": serve(func() string { return s.document("/elsewhere.json", "https://other.example/cb") }, ""),
		"/nameless.json": serve(func() string {
			return `{"client_id":"` + s.URL + `/nameless.json","redirect_uris":["` + redirect + `"]}`
		}, ""),
		"/page.json": serve(func() string { return "<html>" }, ""),
	})
	w.oauth.Documents = oauth.FetcherThatTrusts(func(netip.Addr) bool { return true }, s.roots())
	w.signIn()

	good := s.URL + "/client.json"
	published := client.OAuthClient{ID: good}
	_, page := w.send("GET", w.server.URL+oauth.AuthorizePath+"?"+w.request(published).Encode(), nil)
	if host := strings.TrimPrefix(s.URL, "https://"); !strings.Contains(page, "Published by") || !strings.Contains(page, host) {
		t.Error("the page does not say who publishes the client")
	}
	answer := w.consent(w.request(published), "mcp:devices:read")
	tokens := w.token(published.TokenRequest(answer.Get("code")))
	if tokens.Status != 200 {
		t.Errorf("tokens: %d %+v", tokens.Status, tokens)
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("the document was fetched %d times within its time", n)
	}
	w.ahead.Add(int64(6 * time.Minute))
	if got := w.asks(good); got.Status != http.StatusOK || s.requests.Load() != 2 {
		t.Errorf("after its time: %d, fetched %d times", got.Status, s.requests.Load())
	}
	for _, path := range []string{"/foreign.json", "/elsewhere.json", "/nameless.json", "/page.json", "/missing.json"} {
		if got := w.asks(s.URL + path); got.Status < 400 || got.Header.Get("Location") != "" {
			t.Errorf("%s: %d to %q", path, got.Status, got.Header.Get("Location"))
		}
	}
	s.Close()
	w.ahead.Add(int64(time.Hour))
	if got := w.token(refreshRequest(tokens)); got.Status != 200 {
		t.Errorf("a refresh while the document's host is away: %d %+v", got.Status, got)
	}
}

func TestDocuments_AreFetchedSafely(t *testing.T) {
	w := newWorld(t, account.Admin)
	var s *site
	s = newSite(t, map[string]http.HandlerFunc{
		"/client.json": func(out http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(out, s.document("/client.json", redirect))
		},
		"/moved.json": func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "/client.json", http.StatusFound)
		},
		"/long.json": func(out http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(out, strings.TrimSuffix(s.document("/long.json", redirect), "}")+`,"x":"`+strings.Repeat("x", 5<<10)+`"}`)
		},
		"/slow.json": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	byName := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	w.oauth.Documents = oauth.FetcherThatTrusts(nil, s.roots()) // public addresses only
	for _, id := range []string{s.URL + "/client.json", byName + "/client.json", "https://169.254.169.254/latest/meta-data",
		"https://[::1]/c", "https://[::ffff:127.0.0.1]/c", "https://0.0.0.0/c", "https://0/c"} {
		if got := w.asks(id); got.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", id, got.Status)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Fatalf("%d requests reached an address of our own network", n)
	}
	w.oauth.Documents = oauth.FetcherThatTrusts(func(netip.Addr) bool { return true }, s.roots())
	for _, path := range []string{"/moved.json", "/long.json", "/slow.json"} {
		before := s.requests.Load()
		if got := w.asks(s.URL + path); got.Status != http.StatusBadRequest || s.requests.Load() != before+1 {
			t.Errorf("%s: %d after %d requests", path, got.Status, s.requests.Load()-before)
		}
	}
}

// Strangers can make the service fetch only so much.
func TestDocuments_FetchesAreLimited(t *testing.T) {
	w := newWorld(t, account.Admin)
	var got client.Page
	for i := range 601 {
		request := w.request(client.OAuthClient{ID: fmt.Sprintf("https://192.0.2.1/%d.json", i)})
		got, _ = w.send("GET", w.server.URL+oauth.AuthorizePath+"?"+request.Encode(), nil)
		if i < 600 && got.Status != http.StatusBadRequest {
			t.Fatalf("the %d. document: %d", i+1, got.Status)
		}
	}
	if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("the 601st document of an hour: %d", got.Status)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"https://192.0.2.1/x.json"}}
	if answer := w.token(form); answer.Status != http.StatusBadRequest {
		t.Errorf("the token endpoint fetches none: %d %s", answer.Status, answer.Body)
	}
}
