package serviceaccount_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// Callers that come while the endpoint is visited wait for that visit, and none longer than one may take. The next
// visit is another.
func TestAccount_SharesAVisit(t *testing.T) {
	t.Parallel()
	secret, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@example.com",
		"token_uri": "http://vendor.test/token", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
			Bytes: x509.MarshalPKCS1PrivateKey(secret)}))})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		visits, answers := 0, false
		account, err := serviceaccount.Parse(file, roundTrip(func(r *http.Request) (*http.Response, error) {
			visits++
			if !answers {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"access_token":"abc","token_type":"Bearer","expires_in":3600}`))}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if token, err := account.Token(); err == nil {
					t.Errorf("got the token %q", token)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != 10*time.Second || visits != 1 {
			t.Errorf("%d visits took %v", visits, took)
		}
		answers = true
		for range 2 { // the second time it is kept
			if token, err := account.Token(); token != "abc" || err != nil || visits != 2 {
				t.Errorf("got the token %q, %v, after %d visits", token, err, visits)
			}
		}
	})
}

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
