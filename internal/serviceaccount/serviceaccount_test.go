package serviceaccount_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/serviceaccount"
)

func TestParse_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "{}", `{"type":"authorized_user"}`} {
		if _, err := serviceaccount.Parse([]byte(key), nil, "scope"); err == nil ||
			!strings.Contains(err.Error(), "give the JSON key file of a service account") {
			t.Errorf("%q: %v", key, err)
		}
	}
	if token, err := (serviceaccount.Account{}).Token(); token != "" || err != nil {
		t.Errorf("an emulator got the token %q, %v", token, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransport_CarriesTheToken(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"": "", "abc": "Bearer abc"} {
		got := "nothing sent"
		transport := serviceaccount.Transport{Next: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Authorization")
			return &http.Response{Body: http.NoBody}, nil
		})}
		request, err := http.NewRequestWithContext(serviceaccount.WithToken(t.Context(), token), http.MethodGet, "http://example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got != want || request.Header.Get("Authorization") != "" {
			t.Errorf("the header is %q, want %q; the caller's request has %q", got, want, request.Header.Get("Authorization"))
		}
	}
}
