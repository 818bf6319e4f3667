package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/operation"
)

// FuzzAddresses looks for a path that is answered in an unforeseen way, or
// whose id, escaped into one segment, would mean something else.
func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{
		"/assets/a1", "/assets/enterprises/acme/assets/a1", "/assets/enterprises%2Facme%2Fassets%2Fa1", "/assets//a1",
		"/assets/../a1", "/assets/%2e%2e/a1", "/assets/enterprises/acme%2Fassets%2Fa1", "/assets/count", "/assets/%00",
		"/assets/%ff/commands",
		"//assets/a1", "/assets/a1/", "/assets/a%2F%2Fb", "/assets/enterprises/enterprises/enterprises/enterprises",
	} {
		f.Add(seed)
	}
	s := newFuzzed(f)
	f.Fuzz(func(t *testing.T, path string) {
		target, err := url.ParseRequestURI("/api/v1" + path)
		if err != nil {
			return
		}
		first, code := s.ask(target)
		switch code {
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			if first != "" {
				t.Fatalf("%q: %d, yet the handler ran with %q", path, code, first)
			}
		case http.StatusOK:
			if first == "count" || path == "/openapi.json" || target.Path == "/api/v1/openapi.json" {
				return
			}
			if first == "" || first == "." || first == ".." {
				t.Fatalf("%q: the id is %q", path, first)
			}
			again, err := url.ParseRequestURI("/api/v1/assets/" + url.PathEscape(first))
			if err != nil {
				t.Fatal(err)
			}
			if second, code := s.ask(again); second != first || code != http.StatusOK {
				t.Fatalf("%q: the id is %q, escaped %q (%d)", path, first, second, code)
			}
		case http.StatusBadRequest:
			if target.RawQuery == "" {
				t.Fatalf("%q: 400", path)
			}
		default:
			t.Fatalf("%q: %d", path, code)
		}
	})
}

type fuzzed struct {
	*service
	id string
}

func newFuzzed(tb testing.TB) *fuzzed {
	tb.Helper()
	s := &fuzzed{service: newService(tb)}
	s.handle = func(_ context.Context, _ operation.Call, id string) (result, error) {
		s.id = id
		return result{ID: "x"}, nil
	}
	return s
}

// ask returns the id that the handler was given, and the status.
func (s *fuzzed) ask(target *url.URL) (string, int) {
	s.id = ""
	r := &http.Request{Method: http.MethodGet, URL: target, Header: http.Header{"X-Api-Key": {"good"}}, Body: http.NoBody}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(context.Background()))
	return s.id, w.Code
}

// A body is never more than the reader allows, whatever is sent.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"text":"a"}`, ``, `{`, strings.Repeat("[", 300)} {
		f.Add(seed, "application/json")
	}
	s := newFuzzed(f)
	f.Fuzz(func(t *testing.T, body, contentType string) {
		w := s.send("POST", launchPath, body, "Content-Type", contentType)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code == http.StatusBadRequest && s.id != "" {
			t.Fatal("refused, yet the handler ran")
		}
		s.id = ""
	})
}
