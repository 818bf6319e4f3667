// Package identity asks a company's own OpenID Connect provider who a person is.
package identity

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outbound"
)

// Client implements account.ProviderClient. A provider's description and keys
// are kept for an hour; a token that is signed with a key that is not among
// them makes go-oidc ask for the keys again.
type Client struct {
	redirectURL string // where providers send people back to
	http        *http.Client
	allow       func(netip.Addr) bool
	now         func() time.Time
	known       *descriptions
}

// The limits of the requests to providers.
const (
	timeout  = 10 * time.Second // of each request and of each conversation
	maxBody  = 1 << 20          // bytes
	perHost  = 4                // requests at a time
	inAll    = 32
	maxClaim = 500 // bytes of a claim that is kept
)

// New returns a client whose providers are at public addresses, or in one of
// the private networks.
func New(redirectURL string, private []netip.Prefix, now func() time.Time) *Client {
	allow := outbound.Within(private)
	return &Client{redirectURL: redirectURL, allow: allow, now: now, known: &descriptions{kept: map[string]keptDescription{}},
		http: outbound.NewClient(outbound.Options{Allow: allow, Timeout: timeout, MaxBody: maxBody, PerHost: perHost, Total: inAll})}
}

// Check implements account.ProviderClient.
func (c *Client) Check(ctx context.Context, p account.IdentityProvider) error {
	c.known.drop(p.Issuer)
	_, err := c.provider(ctx, p)
	return err
}

// provider returns the provider's description.
func (c *Client) provider(ctx context.Context, p account.IdentityProvider) (description, error) {
	if d, ok := c.known.get(p.Issuer, c.now()); ok {
		return d, nil
	}
	unusable := func(why string, cause error) error {
		return fault.New(fault.Provider, "cannot use %s at %s: %s", p.Name, p.Issuer, why).Because(cause)
	}
	issuer, err := url.Parse(p.Issuer)
	if err == nil {
		err = outbound.CheckScheme(issuer.Scheme, issuer.Hostname(), c.allow)
	}
	if err != nil {
		return description{}, unusable("its address must be https; the operator can allow http on loopback with MUSTER_PRIVATE_PROVIDERS",
			err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, c.http), p.Issuer)
	if err != nil {
		return description{}, unusable("it does not answer as an OpenID Connect provider at a public address; "+
			"check the issuer, or ask the operator to add its network to MUSTER_PRIVATE_PROVIDERS", reach(err))
	}
	d := description{Provider: provider}
	var more struct {
		NamesIssuer bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return description{}, unusable("its description cannot be read", nil)
	}
	d.namesIssuer = more.NamesIssuer
	to, err := url.Parse(provider.Endpoint().AuthURL)
	if err == nil {
		err = outbound.CheckScheme(to.Scheme, to.Hostname(), c.allow)
	}
	if err != nil || to.Host == "" {
		return description{}, unusable("its authorization endpoint must be https", err)
	}
	c.known.put(p.Issuer, d, c.now())
	return d, nil
}

func (c *Client) config(d description, p account.IdentityProvider, secret string) oauth2.Config {
	return oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: d.Endpoint(),
		RedirectURL: c.redirectURL, Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
}

// Address implements account.ProviderClient.
func (c *Client) Address(ctx context.Context, p account.IdentityProvider, signIn account.ProviderSignIn) (string, error) {
	d, err := c.provider(ctx, p)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(signIn.Nonce), oauth2.S256ChallengeOption(signIn.PKCE)}
	if signIn.Proves != "" {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	config := c.config(d, p, "")
	return config.AuthCodeURL(signIn.State, options...), nil
}

// Exchange implements account.ProviderClient.
func (c *Client) Exchange(ctx context.Context, p account.IdentityProvider, secret string, signIn account.ProviderSignIn,
	back account.Return) (account.Claims, error) {
	d, err := c.provider(ctx, p)
	if err != nil {
		return account.Claims{}, err
	}
	refused := func(why string, cause error) error {
		return fault.New(fault.Refused, "%s did not confirm who you are (%s): start again", p.Name, why).Because(cause)
	}
	// RFC 9207: the answer of another provider is not taken for this one's.
	if back.Issuer != p.Issuer && (back.Issuer != "" || d.namesIssuer) {
		return account.Claims{}, refused("the answer names another issuer", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := c.config(d, p, secret)
	token, err := config.Exchange(oidc.ClientContext(ctx, c.http), back.Code, oauth2.VerifierOption(signIn.PKCE))
	if err != nil {
		return account.Claims{}, refused("it refused the code", reach(err))
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := d.Verifier(&oidc.Config{ClientID: p.ClientID, Now: c.now}).Verify(ctx, raw)
	if err != nil {
		return account.Claims{}, refused("its token is not valid", err)
	}
	if signIn.Nonce == "" || verified.Nonce != signIn.Nonce {
		return account.Claims{}, refused("its token is for another sign-in", nil)
	}
	return claimsOf(verified, c.now())
}

// reach returns the part of an error that says why a request failed. The rest
// quotes what the other server answered, which must not get into the log: the
// address may be one that a stranger chose.
func reach(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed
	}
	return nil
}

func claimsOf(token *oidc.IDToken, now time.Time) (account.Claims, error) {
	var claims struct {
		Email         string `json:"email"`
		EmailVerified bool   `json:"email_verified"`
		Name          string `json:"name"`
		AuthTime      int64  `json:"auth_time"`
	}
	if err := token.Claims(&claims); err != nil || token.Subject == "" || len(token.Subject) > maxClaim {
		return account.Claims{}, fault.New(fault.Refused, "the provider's token cannot be read: check its claims sub, email, "+
			"email_verified and auth_time")
	}
	found := account.Claims{Subject: token.Subject, Email: claims.Email, EmailVerified: claims.EmailVerified, Name: claims.Name}
	if claims.AuthTime > 0 {
		// A clock that is ahead must not make the proof last longer.
		if found.AuthTime = time.Unix(claims.AuthTime, 0); found.AuthTime.After(now) {
			found.AuthTime = now
		}
	}
	return found, nil
}

// description is what a provider published about itself.
type description struct {
	*oidc.Provider
	namesIssuer bool // its answers name it (RFC 9207)
}

// How long descriptions are kept, and how many.
const (
	keepDescription = time.Hour
	maxDescriptions = 256
)

// descriptions keeps what providers published. It is safe for concurrent use.
type descriptions struct {
	mu   sync.Mutex
	kept map[string]keptDescription // by issuer
}

type keptDescription struct {
	description
	since time.Time
}

func (s *descriptions) get(issuer string, now time.Time) (description, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.kept[issuer]
	return d.description, ok && access.Holds(d.since, keepDescription, now)
}

func (s *descriptions) put(issuer string, d description, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxDescriptions {
		for other := range s.kept { // any one: each can be asked for again
			delete(s.kept, other)
			break
		}
	}
	s.kept[issuer] = keptDescription{d, now}
}

func (s *descriptions) drop(issuer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, issuer)
}
