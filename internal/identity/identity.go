// Package identity asks a company's own OpenID Connect provider who somebody is.
package identity

import (
	"context"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Client implements access.ProviderClient. The provider's description and keys
// are asked for at each sign-in: sign-ins are few, and keys change.
type Client struct {
	// RedirectURL is where the provider sends people back to.
	RedirectURL string
	HTTP        *http.Client
	Now         func() time.Time
}

// timeout bounds each conversation with a provider.
const timeout = 15 * time.Second

func (c Client) provider(ctx context.Context, p access.IdentityProvider, secret string) (*oidc.Provider, oauth2.Config, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, c.HTTP), p.Issuer)
	if err != nil {
		return nil, oauth2.Config{}, fault.New(fault.Provider, "%s does not answer as an OpenID Connect provider at %s", p.Name, p.Issuer).Because(err)
	}
	return provider, oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: provider.Endpoint(),
		RedirectURL: c.RedirectURL, Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}, nil
}

// Address implements access.ProviderClient.
func (c Client) Address(ctx context.Context, p access.IdentityProvider, secret, state, nonce, verifier string, anew bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, config, err := c.provider(ctx, p, secret)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	if anew {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return config.AuthCodeURL(state, options...), nil
}

// Exchange implements access.ProviderClient.
func (c Client) Exchange(ctx context.Context, p access.IdentityProvider, secret, code, nonce, verifier string) (access.Claims, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	provider, config, err := c.provider(ctx, p, secret)
	if err != nil {
		return access.Claims{}, err
	}
	refused := func(cause error) error {
		return fault.New(fault.Refused, "%s did not confirm who you are: start again", p.Name).Because(cause)
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, c.HTTP), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return access.Claims{}, refused(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := provider.VerifierContext(oidc.ClientContext(ctx, c.HTTP), &oidc.Config{ClientID: p.ClientID, Now: c.Now}).Verify(ctx, raw)
	if err != nil {
		return access.Claims{}, refused(err)
	}
	if nonce == "" || verified.Nonce != nonce {
		return access.Claims{}, refused(nil)
	}
	var claims struct {
		Email         string `json:"email"`
		EmailVerified bool   `json:"email_verified"`
		Name          string `json:"name"`
		AuthTime      int64  `json:"auth_time"`
	}
	if err := verified.Claims(&claims); err != nil {
		return access.Claims{}, refused(err)
	}
	found := access.Claims{Subject: verified.Subject, Email: claims.Email, EmailVerified: claims.EmailVerified, Name: claims.Name}
	if claims.AuthTime > 0 {
		found.AuthTime = time.Unix(claims.AuthTime, 0)
	}
	return found, nil
}
