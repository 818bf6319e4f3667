// Package serviceaccount calls Google's APIs as a service account. An access token is
// obtained before a call and travels in its context, so that a token that cannot be
// had is not taken for a call that failed.
package serviceaccount

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/sync/singleflight"
)

// tokenTimeout limits a visit to the token endpoint.
const tokenTimeout = 10 * time.Second

// Account gets access tokens and keeps each until shortly before it expires. The zero
// Account needs none, as at an emulator.
type Account struct {
	Project string // that it belongs to
	source  oauth2.TokenSource
	// visits lets all that ask at the same time wait for one visit. The source keeps a lock during a
	// visit: each would make its own, one after another.
	visits *singleflight.Group
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
	return Account{file.Project, account.TokenSource(ctx), &singleflight.Group{}}, nil
}

// Token returns an access token; empty where none is needed. It waits for at most tokenTimeout.
func (a Account) Token() (string, error) {
	if a.source == nil {
		return "", nil
	}
	got, err, _ := a.visits.Do("", func() (any, error) { return a.source.Token() })
	if err != nil {
		return "", err
	}
	return got.(*oauth2.Token).AccessToken, nil
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
