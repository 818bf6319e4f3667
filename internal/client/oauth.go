package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/script"
)

// RedirectURI is the redirect URI of an OAuthClient. There is no page: the code is read from the address.
const RedirectURI = "https://app.example.com/cb"

// codeVerifier is the secret of RFC 7636 that an OAuthClient proves at the token endpoint.
const codeVerifier = "0123456789012345678901234567890123456789abc"

// OAuthClient is an OAuth client of the service. Each answer of the authorization server is JSON; another answer ends the script.
type OAuthClient struct {
	ID         string `json:"client_id"`
	Secret     string `json:"client_secret"` // empty: the client is public
	AuthMethod string `json:"token_endpoint_auth_method"`
}

// Tokens is an answer of the token endpoint.
type Tokens struct {
	Page    `json:"-"`
	Client  OAuthClient `json:"-"` // its id alone
	Access  string      `json:"access_token"`
	Refresh string      `json:"refresh_token"`
	Scope   string      `json:"scope"`
	Error   string      `json:"error"` // empty: there are tokens
}

// PublicClient is the metadata of a client without a secret, for Register.
func PublicClient(name, redirectURI string) string {
	return `{"client_name":"` + name + `","redirect_uris":["` + redirectURI + `"],"token_endpoint_auth_method":"none"}`
}

// Register registers a client by its metadata (RFC 7591).
func (b *Browser) Register(ctx context.Context, metadata string) (c OAuthClient) {
	p := b.Send(ctx, http.MethodPost, "/oauth/register", strings.NewReader(metadata), "Content-Type", "application/json")
	if p.Status != http.StatusCreated {
		script.Fail("the registration of a client is answered %d: %s", p.Status, p.Body)
	}
	script.Need(json.Unmarshal([]byte(p.Body), &c))
	return c
}

// AuthorizationRequest is the client's request with PKCE for scopes at the service's address.
func (c OAuthClient) AuthorizationRequest(service string, scopes ...string) url.Values {
	sum := sha256.Sum256([]byte(codeVerifier))
	return url.Values{"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {RedirectURI}, "state": {"s t"},
		"scope": {strings.Join(scopes, " ")}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"}, "resource": {service + "/mcp"}}
}

// Consent grants scopes to an authorization request on the consent page, and returns the parameters that the client gets.
func (b *Browser) Consent(ctx context.Context, request url.Values, scopes ...string) url.Values {
	p := b.Submit(ctx, "/oauth/authorize", url.Values{"request": {request.Encode()}, "scope": scopes, "decision": {"allow"}})
	to := script.Must(url.Parse(p.Onward()))
	if p.Status != http.StatusOK || !strings.HasPrefix(p.Onward(), RedirectURI+"?") {
		script.Fail("the consent is answered %d, and leads to %q: %s", p.Status, to, p.Body)
	}
	return to.Query()
}

// TokenRequest is the form that exchanges a code for tokens.
func (c OAuthClient) TokenRequest(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID}, "code": {code}, "redirect_uri": {RedirectURI},
		"code_verifier": {codeVerifier}}
}

// Token sends a form to the token endpoint.
func (b *Browser) Token(ctx context.Context, form url.Values) Tokens {
	t := Tokens{Page: b.Submit(ctx, "/oauth/token", form), Client: OAuthClient{ID: form.Get("client_id")}}
	script.Need(json.Unmarshal([]byte(t.Body), &t))
	return t
}

// Connect registers a public client, and has the user who is signed in grant scopes to it.
func (b *Browser) Connect(ctx context.Context, name string, scopes ...string) Tokens {
	c := b.Register(ctx, PublicClient(name, RedirectURI))
	granted := b.Consent(ctx, c.AuthorizationRequest(b.URL, scopes...), scopes...)
	t := b.Token(ctx, c.TokenRequest(granted.Get("code")))
	if t.Status != http.StatusOK {
		script.Fail("the code of a client is answered %d: %s", t.Status, t.Error)
	}
	return t
}
