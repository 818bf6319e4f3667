package servertest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
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

	codeVerifier = "0123456789012345678901234567890123456789abc"
)

// Browser is a portal user with a browser, which keeps cookies and follows no
// redirects.
type Browser struct {
	env     *Env
	User    account.User
	browser *http.Client
	// address is where the person's requests come from, by the word of a proxy
	// that the environment's replicas trust: limits by address are each person's own.
	address string
}

// Browser makes a portal user.
func (l *Env) Browser(c company.Company, role account.Role, policies ...string) *Browser {
	l.TB.Helper()
	users := account.Users{Store: l.Admin().Users, Passwords: account.NewPasswords(1), Now: l.Now}
	u, err := users.Create(l.TB.Context(), account.NewUserRequest{CompanyID: c.ID, Email: resource.NewID() + "@" + c.Slug + ".test",
		Role: role, Policies: policies, Password: Password})
	if err != nil {
		l.TB.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		l.TB.Fatal(err)
	}
	address := fmt.Sprintf("2001:db8:%x:%x::1", rand.Uint32N(1<<16), rand.Uint32N(1<<16))
	return &Browser{l, u, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, address}
}

// Change changes the person's account.
func (p *Browser) Change(change func(*account.User)) {
	p.env.TB.Helper()
	_, err := p.env.Admin().Users.UpdateUser(p.env.TB.Context(), p.User.CompanyID, p.User.ID, func(u *account.User) error {
		change(u)
		return nil
	})
	if err != nil {
		p.env.TB.Fatal(err)
	}
}

// CheapPassword stores Password with a hash that costs next to nothing, for
// tests of many wrong passwords. A check takes the cost from the stored hash.
func (p *Browser) CheapPassword() {
	p.env.TB.Helper()
	salt, encode := []byte("one salt for all"), base64.RawStdEncoding.EncodeToString
	sum := argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)
	hash := fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encode(salt), encode(sum))
	p.Change(func(u *account.User) { u.PasswordHash = hash })
}

// Send makes a request with the browser; a form makes it a POST. Headers are
// names and values in turn.
func (p *Browser) Send(address string, form url.Values, headers ...string) Answer {
	p.env.TB.Helper()
	if form == nil {
		return p.do(http.MethodGet, address, "", headers)
	}
	return p.do(http.MethodPost, address, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...))
}

// SendJSON posts JSON.
func (p *Browser) SendJSON(address, body string) Answer {
	p.env.TB.Helper()
	return p.do(http.MethodPost, address, body, []string{"Content-Type", "application/json"})
}

// Upload posts a form with a file, as it is read.
func (p *Browser) Upload(address, contentType string, body io.Reader, headers ...string) Answer {
	p.env.TB.Helper()
	return p.stream(http.MethodPost, address, body, append([]string{"Content-Type", contentType}, headers...))
}

func (p *Browser) do(method, address, body string, headers []string) Answer {
	p.env.TB.Helper()
	return p.stream(method, address, strings.NewReader(body), headers)
}

func (p *Browser) stream(method, address string, body io.Reader, headers []string) Answer {
	p.env.TB.Helper()
	request, err := http.NewRequestWithContext(p.env.TB.Context(), method, address, body)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", p.address)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := p.browser.Do(request)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	return Answer{response.StatusCode, response.Header, text}
}

// SignIn signs the person in at an address of the service.
func (p *Browser) SignIn(base string) {
	p.env.TB.Helper()
	p.Send(base+web.SignInPath, url.Values{"email": {p.User.Email}, "password": {Password}}).Want(p.env.TB, http.StatusSeeOther)
}

// Register registers a public client and returns its id.
func (p *Browser) Register(base string) string {
	p.env.TB.Helper()
	return p.RegisterAs(base, `{"client_name":"Test","redirect_uris":["`+ClientRedirect+`"],"token_endpoint_auth_method":"none"}`).ID
}

// Registration is what a registered client learns.
type Registration struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// RegisterAs registers a client by its metadata.
func (p *Browser) RegisterAs(base, metadata string) (r Registration) {
	p.env.TB.Helper()
	p.SendJSON(base+oauthserver.RegisterPath, metadata).Want(p.env.TB, http.StatusCreated).JSON(p.env.TB, &r)
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
func (p *Browser) Consents(base string, request url.Values, scopes ...string) string {
	p.env.TB.Helper()
	answer := p.Send(base+oauthserver.AuthorizePath, url.Values{"request": {request.Encode()}, "scope": scopes, "decision": {"allow"}})
	to, err := url.Parse(answer.Onward())
	if err != nil || !strings.HasPrefix(to.String(), ClientRedirect+"?") || to.Query().Get("code") == "" {
		p.env.TB.Fatalf("consent: %d to %q: %s", answer.Status, to, answer.Body)
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
func (p *Browser) Redeem(base, client, code string) Tokens {
	return p.Token(base, RedeemForm(client, code))
}

// RedeemForm is a public client's token request for a code.
func RedeemForm(client, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code},
		"redirect_uri": {ClientRedirect}, "code_verifier": {codeVerifier}}
}

// Swap swaps a refresh token.
func (p *Browser) Swap(base string, t Tokens) Tokens {
	return p.Token(base, url.Values{"grant_type": {"refresh_token"}, "client_id": {t.Client}, "refresh_token": {t.Refresh}})
}

// Token asks the token endpoint.
func (p *Browser) Token(base string, form url.Values) Tokens {
	p.env.TB.Helper()
	answer := p.Send(base+oauthserver.TokenPath, form)
	t := Tokens{Status: answer.Status, Client: form.Get("client_id")}
	answer.JSON(p.env.TB, &t)
	return t
}

// Connect lets the person connect a new client with the scopes, all steps at
// one address.
func (p *Browser) Connect(base string, scopes ...string) Tokens {
	p.env.TB.Helper()
	p.SignIn(base)
	client := p.Register(base)
	t := p.Redeem(base, client, p.Consents(base, Asks(base, client, scopes...), scopes...))
	if t.Status != http.StatusOK {
		p.env.TB.Fatalf("token: %d %s", t.Status, t.Error)
	}
	return t
}

// ConnectionOf is the connection that an access token belongs to.
func (l *Env) ConnectionOf(token string) oauth.Connection {
	l.TB.Helper()
	c, _, err := l.DB().ConnectionByToken(l.TB.Context(), access.HashSecret(token))
	if err != nil {
		l.TB.Fatal(err)
	}
	return c
}

// Cookies are what the person's browser sends to an address.
func (p *Browser) Cookies(address string) []*http.Cookie {
	p.env.TB.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.env.TB.Fatal(err)
	}
	return p.browser.Jar.Cookies(u)
}
