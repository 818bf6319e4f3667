package servertest

import (
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
	"github.com/musterhq/muster/internal/surface/web"
)

// Password is every test person's.
const Password = "correct horse battery"

const formType = "application/x-www-form-urlencoded"

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

// at is the browser for which an address is the service's.
func (b *Browser) at(base string) *client.Browser {
	return &client.Browser{URL: base, HTTP: b.browser.HTTP, Header: b.browser.Header}
}

// Register registers a public OAuth client.
func (b *Browser) Register(base string) client.OAuthClient {
	b.env.TB.Helper()
	return b.RegisterAs(base, client.PublicClient("Test", client.RedirectURI))
}

// RegisterAs registers an OAuth client by its metadata.
func (b *Browser) RegisterAs(base, metadata string) client.OAuthClient {
	b.env.TB.Helper()
	return step(b.env.TB, func() client.OAuthClient { return b.at(base).Register(b.env.TB.Context(), metadata) })
}

// Consents answers the question of the consent page and returns the code.
func (b *Browser) Consents(base string, request url.Values, scopes ...string) string {
	b.env.TB.Helper()
	answer := step(b.env.TB, func() url.Values { return b.at(base).Consent(b.env.TB.Context(), request, scopes...) })
	if answer.Get("code") == "" {
		b.env.TB.Fatalf("the consent gives no code: %v", answer)
	}
	return answer.Get("code")
}

// Redeem swaps a code for tokens.
func (b *Browser) Redeem(base string, c client.OAuthClient, code string) client.Tokens {
	b.env.TB.Helper()
	return b.Token(base, c.TokenRequest(code))
}

// Swap swaps a refresh token.
func (b *Browser) Swap(base string, t client.Tokens) client.Tokens {
	b.env.TB.Helper()
	return b.Token(base, url.Values{"grant_type": {"refresh_token"}, "client_id": {t.Client.ID}, "refresh_token": {t.Refresh}})
}

// Token asks the token endpoint.
func (b *Browser) Token(base string, form url.Values) client.Tokens {
	b.env.TB.Helper()
	return step(b.env.TB, func() client.Tokens { return b.at(base).Token(b.env.TB.Context(), form) })
}

// Connect lets the person connect a new client with the scopes, all steps at
// one address.
func (b *Browser) Connect(base string, scopes ...string) client.Tokens {
	b.env.TB.Helper()
	b.SignIn(base)
	return step(b.env.TB, func() client.Tokens { return b.at(base).Connect(b.env.TB.Context(), "Test", scopes...) })
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
