package fcm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/fcm/v1"
)

// tokenTimeout limits a visit to the token endpoint.
const tokenTimeout = 10 * time.Second

// tokens hands out access tokens; empty where none is needed.
type tokens struct{ source oauth2.TokenSource }

func (t tokens) token() (string, error) {
	if t.source == nil {
		return "", nil // an emulator
	}
	got, err := t.source.Token()
	if err != nil {
		return "", err
	}
	return got.AccessToken, nil
}

// newTokens reads the service account, which also names the project.
func newTokens(cfg *Config, transport http.RoundTripper) (tokens, error) {
	if cfg.CredentialsFile == "" {
		return tokens{}, nil
	}
	text, err := os.ReadFile(cfg.CredentialsFile)
	if err != nil {
		return tokens{}, fmt.Errorf("push: credentials: %w: give the path of a service account's key file", err)
	}
	account, err := google.JWTConfigFromJSON(text, fcm.FirebaseMessagingScope)
	if err != nil {
		return tokens{}, fmt.Errorf("push: credentials: %w: give the JSON key file of a service account", err)
	}
	var file struct {
		Project string `json:"project_id"`
	}
	_ = json.Unmarshal(text, &file) // was read above already
	cfg.Project = cmp.Or(cfg.Project, file.Project)
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient,
		&http.Client{Transport: transport, Timeout: tokenTimeout, CheckRedirect: followNone})
	return tokens{account.TokenSource(ctx)}, nil
}
