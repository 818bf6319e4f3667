package platform

import (
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/oauth2"
	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/serviceaccount"
)

// errNoCredentials is why every call fails while the platform is not set up.
var errNoCredentials = errors.New("no platform credentials are configured")

// newToken returns what gets access tokens, and the project that the credentials
// belong to.
func newToken(cfg *Config) (token func() (string, error), project string, err error) {
	if err := cfg.readCredentials(); err != nil {
		return nil, "", err
	}
	if !cfg.configured() {
		return func() (string, error) { return "", errNoCredentials }, "", nil
	}
	var account serviceaccount.Account // without credentials that of an emulator
	if len(cfg.Credentials) > 0 {
		account, err = serviceaccount.Parse(cfg.Credentials, cfg.Transport, androidmanagement.AndroidmanagementScope, pubsub.PubsubScope)
		if err != nil {
			return nil, "", fmt.Errorf("platform: %w", err)
		}
	}
	return account.Token, account.Project, nil
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
