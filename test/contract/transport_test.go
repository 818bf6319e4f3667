package contract_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// lateBody is the beginning of a request's body whose rest is not sent in time.
type lateBody struct{ begun io.Reader }

func (b lateBody) Read(p []byte) (int, error) {
	if n, err := b.begun.Read(p); err == nil {
		return n, nil
	}
	return 0, os.ErrDeadlineExceeded
}

func (lateBody) Close() error { return nil }

// A body that is not sent in time is 408 on every surface, and no fault of ours.
func TestTransport_LateBodyIsRequestTimeout(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	acme := env.Company("acme", access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true})
	replica := env.Start()
	key := env.Key(acme, access.All)
	const form, json = "application/x-www-form-urlencoded", "application/json"
	for path, begin := range map[string]struct{ media, body string }{
		"/signin":                             {form, "email=a%40b.example&pass"},
		"/signin/company":                     {form, "email=a"},
		"/oauth/token":                        {form, "grant_type="},
		"/oauth/register":                     {json, "{"},
		"/mcp":                                {json, `{"jsonrpc":"2.0",`},
		"/api/v1/policies":                    {json, `{"fromPolicyId":`},
		"/api/v1/assets/x/commands/lost-mode": {json, `{"message":`},
		"/agent/v2/enroll":                    {json, `{"token":`},
	} {
		t.Run(path, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, replica.PublicURL()+path, lateBody{strings.NewReader(begin.body)})
			request.Header.Set("Content-Type", begin.media)
			request.Header.Set("Accept", "application/json, text/event-stream")
			if path == "/mcp" || strings.HasPrefix(path, "/api/") {
				request.Header.Set("X-API-Key", key)
			}
			w := httptest.NewRecorder()
			func() {
				defer func() {
					if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // a panic's value
						t.Errorf("%s: panic: %v", path, cause)
					}
				}()
				replica.Handler().ServeHTTP(w, request)
			}()
			if w.Code != http.StatusRequestTimeout {
				t.Errorf("%s: %d %s, want 408", path, w.Code, w.Body)
			}
		})
	}
	if bytes.Contains(env.Log.Text(), []byte("level=ERROR")) {
		t.Errorf("logged an error")
	}
}

// Every answer forbids guessing its type; with a public address of https, it
// makes browsers stay with https.
func TestTransport_HeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{"https://muster.example": "max-age=31536000", "http://muster.example": ""} {
		t.Run(public, func(t *testing.T) {
			replica := servertest.New(t).Start(func(c *config.Service, _ *service.Options) { c.PublicURL = public })
			for _, path := range []string{"/", "/signin", "/mcp", "/healthz", "/readyz", "/metrics", "/api/v1/assets",
				"/api/v1/openapi.json", "/api/docs",
				"/.well-known/oauth-authorization-server", "/agent/v1/nothing", "/agent/v2/nothing", "/nothing"} {
				w := httptest.NewRecorder()
				replica.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, public+path, nil))
				if got := w.Header().Get("Strict-Transport-Security"); got != want {
					t.Errorf("%s%s: Strict-Transport-Security is %q, want %q", public, path, got, want)
				}
				if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
					t.Errorf("%s%s: X-Content-Type-Options is %q", public, path, got)
				}
			}
		})
	}
}

// What programs read about the process takes no other method, and says so.
func TestTransport_ProbesTakeNoOtherMethod(t *testing.T) {
	t.Parallel()
	replica := servertest.New(t).Start()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "OPTIONS": 405, "DELETE": 405} {
			w := httptest.NewRecorder()
			replica.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
			if allow := w.Header().Get("Allow"); w.Code != want || want == 405 && allow != "GET, HEAD" {
				t.Errorf("%s %s: status %d with Allow %q, want %d", method, path, w.Code, allow, want)
			}
		}
	}
}

// The document names the public address, whatever name it is asked for by: a copy of it
// that was saved on the server is of use elsewhere.
func TestOpenAPI_NamesThePublicURL(t *testing.T) {
	t.Parallel()
	replica := servertest.New(t).Start(func(c *config.Service, _ *service.Options) { c.PublicURL = "https://muster.example.com" })
	for _, path := range []string{"/openapi.json", "/api/v1/openapi.json"} {
		_, text := servertest.Fetch(t, "http://"+replica.Addr().String()+path)
		var document struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Servers) != 1 ||
			document.Servers[0].URL != "https://muster.example.com/api/v1" {
			t.Errorf("%s names %+v, %v", path, document.Servers, err)
		}
	}
}
