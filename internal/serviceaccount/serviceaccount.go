// Package serviceaccount calls Google's APIs as a service account. An access token is
// obtained before a call and travels in its context, so that a token that cannot be
// had is not taken for a call that failed.
package serviceaccount

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// tokenTimeout limits a visit to the token endpoint.
const tokenTimeout = 10 * time.Second

// Account gets access tokens and keeps each until shortly before it expires. The zero
// Account needs none, as at an emulator.
type Account struct {
	Project string // that it belongs to
	source  oauth2.TokenSource
}

// Parse reads the JSON key of an account. Tokens come through transport; nil: Go's own.
func Parse(key []byte, transport http.RoundTripper, scopes ...string) (Account, error) {
	account, err := google.JWTConfigFromJSON(key, scopes...)
	if err != nil {
		return Account{}, fmt.Errorf("credentials: %w: give the JSON key file of a service account", err)
	}
	var file struct {
		Project string `json:"project_id"`
	}
	_ = json.Unmarshal(key, &file) // was read above already
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient,
		&http.Client{Transport: transport, Timeout: tokenTimeout, CheckRedirect: FollowNone})
	return Account{file.Project, &shared{source: account.TokenSource(ctx)}}, nil
}

// shared lets all that ask at the same time wait for one visit. The source of oauth2 keeps
// a lock during a visit: each would make its own, one after another.
type shared struct {
	source   oauth2.TokenSource
	mu       sync.Mutex
	underWay *visit // nil: none
}

// visit is what one call of the source returns. Its result may be read after done is closed.
type visit struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// Token implements oauth2.TokenSource.
func (s *shared) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	v := s.underWay
	if v != nil {
		s.mu.Unlock()
		<-v.done
		return v.token, v.err
	}
	v = &visit{done: make(chan struct{})}
	s.underWay = v
	s.mu.Unlock()
	v.token, v.err = s.source.Token()
	s.mu.Lock()
	s.underWay = nil
	s.mu.Unlock()
	close(v.done)
	return v.token, v.err
}

// Token returns an access token; empty where none is needed. It waits for at most tokenTimeout.
func (a Account) Token() (string, error) {
	if a.source == nil {
		return "", nil
	}
	got, err := a.source.Token()
	if err != nil {
		return "", err
	}
	return got.AccessToken, nil
}

type tokenKey struct{}

// WithToken makes Transport put the token on the requests of ctx.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// Transport puts the token of a request's context on it.
type Transport struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if token, _ := r.Context().Value(tokenKey{}).(string); token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return t.Next.RoundTrip(r)
}

// FollowNone makes a redirect the answer: to follow one would be a second attempt.
func FollowNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
