package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"
)

// tokenTimeout limits a visit to the token endpoint.
const tokenTimeout = 10 * time.Second

// errNoCredentials is why every call fails while the platform is not set up.
var errNoCredentials = errors.New("no platform credentials are configured")

// tokens hands out access tokens. The token is empty where none is needed.
type tokens interface{ token() (string, error) }

// anonymous needs no token: an emulator.
type anonymous struct{}

func (anonymous) token() (string, error) { return "", nil }

// unconfigured has no credentials to get tokens with.
type unconfigured struct{}

func (unconfigured) token() (string, error) { return "", errNoCredentials }

// serviceAccount gets tokens with a service account's key and keeps each until
// shortly before it expires.
type serviceAccount struct{ source oauth2.TokenSource }

func (s serviceAccount) token() (string, error) {
	t, err := s.source.Token()
	if err != nil {
		return "", err
	}
	return t.AccessToken, nil
}

// newTokens returns the source of tokens and the project that the credentials
// belong to.
func newTokens(cfg *Config) (tokens, string, error) {
	if err := cfg.readCredentials(); err != nil {
		return nil, "", err
	}
	switch {
	case len(cfg.Credentials) == 0 && cfg.Endpoint != "":
		return anonymous{}, "", nil
	case len(cfg.Credentials) == 0:
		return unconfigured{}, "", nil
	}
	account, err := google.JWTConfigFromJSON(cfg.Credentials,
		androidmanagement.AndroidmanagementScope, pubsub.PubsubScope)
	if err != nil {
		return nil, "", fmt.Errorf("platform: credentials: %w: give the JSON key file of a service account", err)
	}
	var file struct {
		Project string `json:"project_id"`
	}
	_ = json.Unmarshal(cfg.Credentials, &file) // was read above already
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{
		Transport: cfg.Transport, Timeout: tokenTimeout, CheckRedirect: followNone,
	})
	return serviceAccount{account.TokenSource(ctx)}, file.Project, nil
}

// tokenDenied reports whether the token endpoint evaluated the credentials and
// refused them, so that asking again is of no use.
func tokenDenied(err error) bool {
	if errors.Is(err, errNoCredentials) {
		return true
	}
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refusal.Response == nil {
		return false
	}
	status := refusal.Response.StatusCode
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}
