package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/surface/web"
)

// TestStatic: a file is kept for a year under its fingerprint, and asked for each time
// under any other address.
func TestStatic(t *testing.T) {
	t.Parallel()
	get := func(path string, header ...string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		web.Static().ServeHTTP(answer, r)
		return answer.Result()
	}
	own := web.File("app.css")
	for path, want := range map[string]string{own: "public, max-age=31536000, immutable", "/static/app.css": "no-cache",
		"/static/0123456789abcdef/app.css": "no-cache"} {
		answer := get(path)
		if got := answer.Header.Get("Cache-Control"); answer.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %d, %q; want %q", path, answer.StatusCode, got, want)
		}
		if again := get(path, "If-None-Match", answer.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s once more: %d", path, again.StatusCode)
		}
	}
	if got := get(own, "Accept-Encoding", "gzip").Header.Get("Content-Encoding"); got != "gzip" {
		t.Errorf("the stylesheet is sent as %q", got)
	}
	for _, path := range []string{web.File("none.css"), "/static/", "/static/a/b/app.css", strings.TrimSuffix(own, "app.css")} {
		if answer := get(path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}
