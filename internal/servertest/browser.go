package servertest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
	oauthserver "github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/web"
)

const (
	// Password is every test person's.
	Password = "correct horse battery"
	// ClientRedirect is where the test clients' codes go; nothing is there.
	ClientRedirect = "https://app.example.com/cb"

	formType     = "application/x-www-form-urlencoded"
	codeVerifier = "0123456789012345678901234567890123456789abc"
)

// Browser is a portal user with a browser, which keeps cookies and follows no
// redirects.
type Browser struct {
	env  *Env
	User account.User
	// browser says where the person's requests come from as a proxy does that the environment's
	// replicas trust: limits by address are each person's own.
	browser *client.Browser
}

// Browser makes a portal user.
func (e *Env) Browser(c company.Company, role account.Role, policies ...string) *Browser {
	e.TB.Helper()
	users := account.Users{Store: e.Admin().Users, Passwords: account.NewPasswords(1), Now: e.Now}
	u, err := users.Create(e.TB.Context(), account.NewUserRequest{CompanyID: c.ID, Email: resource.NewID() + "@" + c.Slug + ".test",
		Role: role, Policies: policies, Password: Password})
	need(e.TB, err)
	browser := client.NewBrowser("")
	browser.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browser.Header = http.Header{"X-Forwarded-For": {fmt.Sprintf("2001:db8:%x:%x::1", rand.Uint32N(1<<16), rand.Uint32N(1<<16))}}
	return &Browser{e, u, browser}
}

// Change changes the person's account.
func (b *Browser) Change(change func(*account.User)) {
	b.env.TB.Helper()
	_, err := b.env.Admin().Users.UpdateUser(b.env.TB.Context(), b.User.CompanyID, b.User.ID, func(u *account.User) error {
		change(u)
		return nil
	})
	need(b.env.TB, err)
}

// CheapPassword stores Password with a hash that costs next to nothing, for
// tests of many wrong passwords. A check takes the cost from the stored hash.
func (b *Browser) CheapPassword() {
	b.env.TB.Helper()
	salt, encode := []byte("one salt for all"), base64.RawStdEncoding.EncodeToString
	sum := argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)
	hash := fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encode(salt), encode(sum))
	b.Change(func(u *account.User) { u.PasswordHash = hash })
}

// Send makes a request with the browser; a form makes it a POST. Headers are
// names and values in turn.
func (b *Browser) Send(address string, form url.Values, headers ...string) Answer {
	b.env.TB.Helper()
	if form == nil {
		return b.send(http.MethodGet, address, http.NoBody, headers)
	}
	return b.Upload(address, formType, strings.NewReader(form.Encode()), headers...)
}

// SendJSON posts JSON.
func (b *Browser) SendJSON(address, body string) Answer {
	b.env.TB.Helper()
	return b.Upload(address, "application/json", strings.NewReader(body))
}

// Upload posts a form with a file, as it is read.
func (b *Browser) Upload(address, contentType string, body io.Reader, headers ...string) Answer {
	b.env.TB.Helper()
	return b.send(http.MethodPost, address, body, append([]string{"Content-Type", contentType}, headers...))
}

func (b *Browser) send(method, address string, body io.Reader, headers []string) Answer {
	b.env.TB.Helper()
	return answered(b.env.TB, func() client.Page { return b.browser.Send(b.env.TB.Context(), method, address, body, headers...) })
}

// SignIn signs the person in at an address of the service.
func (b *Browser) SignIn(base string) {
	b.env.TB.Helper()
	b.Send(base+web.SignInPath, url.Values{"email": {b.User.Email}, "password": {Password}}).Want(b.env.TB, http.StatusSeeOther)
}

// Register registers a public client and returns its id.
func (b *Browser) Register(base string) string {
	b.env.TB.Helper()
	return b.RegisterAs(base, `{"client_name":"Test","redirect_uris":["`+ClientRedirect+`"],"token_endpoint_auth_method":"none"}`).ID
}

// Registration is what a registered client learns.
type Registration struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// RegisterAs registers a client by its metadata.
func (b *Browser) RegisterAs(base, metadata string) (r Registration) {
	b.env.TB.Helper()
	b.SendJSON(base+oauthserver.RegisterPath, metadata).Want(b.env.TB, http.StatusCreated).JSON(b.env.TB, &r)
	return r
}

// Asks is a client's authorization request; public is the service's public URL.
func Asks(public, client string, scopes ...string) url.Values {
	sum := sha256.Sum256([]byte(codeVerifier))
	return url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {ClientRedirect}, "state": {"s"},
		"scope": {strings.Join(scopes, " ")}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"}, "resource": {public + "/mcp"}}
}

// Consents answers the question of the consent page and returns the code.
func (b *Browser) Consents(base string, request url.Values, scopes ...string) string {
	b.env.TB.Helper()
	answer := b.Send(base+oauthserver.AuthorizePath, url.Values{"request": {request.Encode()}, "scope": scopes, "decision": {"allow"}})
	to, err := url.Parse(answer.Onward())
	if err != nil || !strings.HasPrefix(to.String(), ClientRedirect+"?") || to.Query().Get("code") == "" {
		b.env.TB.Fatalf("consent: %d to %q: %s", answer.Status, to, answer.Body)
	}
	return to.Query().Get("code")
}

// Tokens is what the token endpoint gives.
type Tokens struct {
	Status  int    `json:"-"`
	Client  string `json:"-"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

// Redeem swaps a code for tokens.
func (b *Browser) Redeem(base, client, code string) Tokens {
	return b.Token(base, RedeemForm(client, code))
}

// RedeemForm is a public client's token request for a code.
func RedeemForm(client, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code},
		"redirect_uri": {ClientRedirect}, "code_verifier": {codeVerifier}}
}

// Swap swaps a refresh token.
func (b *Browser) Swap(base string, t Tokens) Tokens {
	return b.Token(base, url.Values{"grant_type": {"refresh_token"}, "client_id": {t.Client}, "refresh_token": {t.Refresh}})
}

// Token asks the token endpoint.
func (b *Browser) Token(base string, form url.Values) Tokens {
	b.env.TB.Helper()
	answer := b.Send(base+oauthserver.TokenPath, form)
	t := Tokens{Status: answer.Status, Client: form.Get("client_id")}
	answer.JSON(b.env.TB, &t)
	return t
}

// Connect lets the person connect a new client with the scopes, all steps at
// one address.
func (b *Browser) Connect(base string, scopes ...string) Tokens {
	b.env.TB.Helper()
	b.SignIn(base)
	client := b.Register(base)
	t := b.Redeem(base, client, b.Consents(base, Asks(base, client, scopes...), scopes...))
	if t.Status != http.StatusOK {
		b.env.TB.Fatalf("token: %d %s", t.Status, t.Error)
	}
	return t
}

// ConnectionOf is the connection that an access token belongs to.
func (e *Env) ConnectionOf(token string) oauth.Connection {
	e.TB.Helper()
	c, _, err := e.DB().ConnectionByToken(e.TB.Context(), access.HashSecret(token))
	need(e.TB, err)
	return c
}

// Cookies are what the person's browser sends to an address.
func (b *Browser) Cookies(address string) []*http.Cookie {
	b.env.TB.Helper()
	u, err := url.Parse(address)
	need(b.env.TB, err)
	return b.browser.HTTP.Jar.Cookies(u)
}
