// Package portalclient is a browser without scripts, for programs that use the portal as a
// person does: it signs in, sends forms and answers with a passkey of its own. What fails ends the script that it is part of.
package portalclient

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/passkey/virtual"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/web"
)

// Client is a browser without scripts. One goroutine uses it at a time.
type Client struct {
	Base     string // the portal's address, without a closing slash
	HTTP     *http.Client
	Password string
	Passkey  *virtual.Authenticator // nil: the user has none
}

// Page is what came back, after redirects.
type Page struct {
	Status int
	Path   string // with the query
	Body   string
}

// New is a client of the portal at an address, who has not signed in.
func New(base, password string) *Client {
	jar, _ := cookiejar.New(nil) // never fails without options
	return &Client{Base: base, HTTP: &http.Client{Jar: jar}, Password: password}
}

// SignIn opens a session with the user's password.
func (v *Client) SignIn(ctx context.Context, email string) {
	p := v.Post(ctx, web.SignInPath, "email", email, "password", v.Password, "next", "/account")
	if p.Status != http.StatusOK || p.Path != "/account" {
		script.Fail("%s cannot sign in: %d at %s", email, p.Status, p.Path)
	}
}

func (v *Client) Get(ctx context.Context, path string) Page {
	return v.Do(ctx, http.MethodGet, path, "", "")
}

// Post sends a form of names and values in turn.
func (v *Client) Post(ctx context.Context, path string, fields ...string) Page {
	return v.Do(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", FormOf(fields).Encode())
}

// FormOf makes a form of names and values in turn.
func FormOf(fields []string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

// Do makes one request and follows redirects.
func (v *Client) Do(ctx context.Context, method, path, kind, body string) Page {
	request := script.Must(http.NewRequestWithContext(ctx, method, v.Base+path, strings.NewReader(body)))
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := v.HTTP.Do(request)
	script.Need(err)
	return script.Must(ReadPage(response))
}

// ReadPage reads a page and closes the response.
func ReadPage(response *http.Response) (Page, error) {
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Page{response.StatusCode, response.Request.URL.RequestURI(), string(text)}, err
}

// Attribute is the value of the first attribute that begins with the text.
func (p Page) Attribute(begin string) string {
	_, rest, found := strings.Cut(p.Body, begin)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		script.Fail("%s (%d) has no %s", p.Path, p.Status, begin)
	}
	return html.UnescapeString(value)
}

func (p Page) Field(name string) string { return p.Attribute(`name="` + name + `" value="`) }

// Answered has the user's passkey answer what the page asks of it, by a
// registration or a proof, and returns the page's token.
func (p Page) Answered(sign func(options string) (string, error)) (token, signed string) {
	options := p.Attribute(`data-options="`)
	return p.Field("token"), script.Must(sign(options))
}

// AddPasskey adds a passkey to the account.
func (v *Client) AddPasskey(ctx context.Context) {
	v.Passkey = script.Must(virtual.New(v.Base))
	token, signed := v.Get(ctx, "/account/passkeys/new").Answered(v.Passkey.Create)
	p := v.Post(ctx, "/account/passkeys", "token", token, "name", "Key", "answer", signed)
	if p.Status != http.StatusOK {
		script.Fail("a passkey cannot be added: %d", p.Status)
	}
}

// byPasskey answers, with the user's passkey, what one address asks for at another.
func (v *Client) byPasskey(ctx context.Context, asks, takes string) Page {
	token, signed := v.Get(ctx, asks).Answered(v.Passkey.Get)
	return v.Post(ctx, takes, "next", "/account", "token", token, "answer", signed)
}

// SignInByPasskey opens another session.
func (v *Client) SignInByPasskey(ctx context.Context) {
	v.HTTP.Jar, _ = cookiejar.New(nil)
	p := v.byPasskey(ctx, web.SignInPath, web.SignInPath+"/passkey")
	if p.Path != "/account" {
		script.Fail("the passkey does not sign in: %d at %s", p.Status, p.Path)
	}
}

// Prove proves the user's identity again.
func (v *Client) Prove(ctx context.Context) {
	var p Page
	if v.Passkey == nil {
		p = v.Post(ctx, web.ProvePath, "next", "/account", "password", v.Password)
	} else {
		p = v.byPasskey(ctx, web.ProveAddress("/account"), web.ProvePath+"/passkey")
	}
	if p.Path != "/account" {
		script.Fail("the identity was not proved: %d at %s", p.Status, p.Path)
	}
}

// Decide signs that what an address asks about may be done. Where the page offers no
// such form, it is returned as it is: it says why.
func (v *Client) Decide(ctx context.Context, address string) Page {
	p := v.Get(ctx, script.Must(url.Parse(address)).Path)
	for _, form := range strings.Split(p.Body, "<form")[1:] {
		if strings.Contains(form, `name="decision" value="APPROVE"`) {
			return v.sign(ctx, Page{p.Status, p.Path, form})
		}
	}
	return p
}

// typedName is the name that a form wants typed.
var typedName = regexp.MustCompile(`The name is (.*?)\. Case and`)

// sign answers a form that a passkey signs; a name that is to be typed is typed before.
func (v *Client) sign(ctx context.Context, form Page) Page {
	action, fields := form.Attribute(`action="`), []string{"decision", "APPROVE"}
	if name := typedName.FindStringSubmatch(form.Body); name != nil {
		fields = append(fields, "confirmation", html.UnescapeString(name[1]))
		form = v.Post(ctx, action, fields...)
	}
	token, signed := form.Answered(v.Passkey.Get)
	return v.Post(ctx, action, append(fields, "token", token, "answer", signed)...)
}

// Shown is the part of a page that an expression finds.
func (p Page) Shown(expression *regexp.Regexp) string {
	found := expression.FindString(html.UnescapeString(p.Body))
	if found == "" {
		script.Fail("the page does not show what was made: %d at %s", p.Status, p.Path)
	}
	return found
}
