package drill

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/passkey/virtual"
	"github.com/musterhq/muster/internal/surface/web"
)

// visitor is a browser without scripts, signed in to the portal.
type visitor struct {
	base     string
	client   *http.Client
	password string
	passkey  *virtual.Authenticator // nil: the user has none
}

// page is what came back, after redirects.
type page struct {
	status int
	path   string
	body   string
}

func (d *drill) visitor(password string) *visitor {
	jar, _ := cookiejar.New(nil) // never fails without options
	return &visitor{base: d.Service.PublicURL(), client: &http.Client{Jar: jar}, password: password}
}

// signIn opens a session of the demo's administrator.
func (d *drill) signIn(ctx context.Context) (*visitor, error) {
	v := d.visitor(d.Password)
	p, err := v.post(ctx, web.SignInPath, "email", d.User, "password", d.Password, "next", "/account")
	if err == nil && (p.status != http.StatusOK || p.path != "/account") {
		err = fmt.Errorf("the administrator cannot sign in: %d at %s", p.status, p.path)
	}
	return v, err
}

func (v *visitor) get(ctx context.Context, path string) (page, error) {
	return v.do(ctx, http.MethodGet, path, "", "")
}

// post sends a form of names and values in turn.
func (v *visitor) post(ctx context.Context, path string, fields ...string) (page, error) {
	return v.do(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", formOf(fields).Encode())
}

func formOf(fields []string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

func (v *visitor) do(ctx context.Context, method, path, kind, body string) (page, error) {
	request, err := http.NewRequestWithContext(ctx, method, v.base+path, strings.NewReader(body))
	if err != nil {
		return page{}, err
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := v.client.Do(request)
	if err != nil {
		return page{}, err
	}
	return ofPortal(response)
}

// ofPortal reads a page.
func ofPortal(response *http.Response) (page, error) {
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return page{response.StatusCode, response.Request.URL.RequestURI(), string(text)}, err
}

// attribute is the value of the first attribute that begins with the text.
func (p page) attribute(begin string) (string, error) {
	_, rest, found := strings.Cut(p.body, begin)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		return "", fmt.Errorf("%s (%d) has no %s", p.path, p.status, begin)
	}
	return html.UnescapeString(value), nil
}

func (p page) field(name string) (string, error) { return p.attribute(`name="` + name + `" value="`) }

// answered has the visitor's passkey answer what the page asks of it, by a
// registration or a proof, and returns the page's token.
func (p page) answered(sign func(options string) (string, error)) (token, signed string, err error) {
	options, err := p.attribute(`data-options="`)
	if err == nil {
		token, err = p.field("token")
	}
	if err == nil {
		signed, err = sign(options)
	}
	return token, signed, err
}

// addPasskey adds a passkey to the account.
func (v *visitor) addPasskey(ctx context.Context) error {
	passkey, err := virtual.New(v.base)
	if err != nil {
		return err
	}
	p, err := v.get(ctx, "/account/passkeys/new")
	if err != nil {
		return err
	}
	token, signed, err := p.answered(passkey.Create)
	if err != nil {
		return err
	}
	p, err = v.post(ctx, "/account/passkeys", "token", token, "name", "Key", "answer", signed)
	if err == nil && p.status != http.StatusOK {
		err = fmt.Errorf("a passkey cannot be added: %d", p.status)
	}
	v.passkey = passkey
	return err
}

// byPasskey answers, with the visitor's passkey, what one address asks for at another.
func (v *visitor) byPasskey(ctx context.Context, asks, takes string) (page, error) {
	p, err := v.get(ctx, asks)
	if err != nil {
		return p, err
	}
	token, signed, err := p.answered(v.passkey.Get)
	if err != nil {
		return p, err
	}
	return v.post(ctx, takes, "next", "/account", "token", token, "answer", signed)
}

// signInByPasskey opens another session.
func (v *visitor) signInByPasskey(ctx context.Context) error {
	v.client.Jar, _ = cookiejar.New(nil)
	p, err := v.byPasskey(ctx, web.SignInPath, web.SignInPath+"/passkey")
	if err == nil && p.path != "/account" {
		err = fmt.Errorf("the passkey does not sign in: %d at %s", p.status, p.path)
	}
	return err
}

// prove proves the visitor's identity again.
func (v *visitor) prove(ctx context.Context) (err error) {
	var p page
	if v.passkey == nil {
		p, err = v.post(ctx, web.ProvePath, "next", "/account", "password", v.password)
	} else {
		p, err = v.byPasskey(ctx, web.ProveAddress("/account"), web.ProvePath+"/passkey")
	}
	if err == nil && p.path != "/account" {
		err = fmt.Errorf("the identity was not proved: %d at %s", p.status, p.path)
	}
	return err
}

// decide signs that what an address asks about may be done. Where the page offers no
// such form, it is returned as it is: it says why.
func (v *visitor) decide(ctx context.Context, address string) (page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return page{}, err
	}
	p, err := v.get(ctx, u.Path)
	if err != nil {
		return p, err
	}
	for _, form := range strings.Split(p.body, "<form")[1:] {
		if strings.Contains(form, `name="decision" value="APPROVE"`) {
			return v.sign(ctx, page{p.status, p.path, form})
		}
	}
	return p, nil
}

// typedName is the name that a form wants typed.
var typedName = regexp.MustCompile(`The name is (.*?)\. Case and`)

// sign answers a form that a passkey signs; a name that is to be typed is typed before.
func (v *visitor) sign(ctx context.Context, form page) (page, error) {
	action, err := form.attribute(`action="`)
	if err != nil {
		return form, err
	}
	fields := []string{"decision", "APPROVE"}
	if name := typedName.FindStringSubmatch(form.body); name != nil {
		fields = append(fields, "confirmation", html.UnescapeString(name[1]))
		if form, err = v.post(ctx, action, fields...); err != nil {
			return form, err
		}
	}
	token, signed, err := form.answered(v.passkey.Get)
	if err != nil {
		return form, err
	}
	return v.post(ctx, action, append(fields, "token", token, "answer", signed)...)
}

// notes are what the portal says about a form: the page after it shows them.
var notes = regexp.MustCompile(`(?s)<div class="note"[^>]*data-tone="(bad|warn|ok|idle)"[^>]*>.*?<p>(.*?)</p>`)

// unseen is what a browser that runs scripts does not show.
var unseen = regexp.MustCompile(`(?s)<noscript>.*?</noscript>`)

// outcome is the outcome of a form of the portal, as an answer.
func (p page) outcome() answer {
	got := answer{text: p.body}
	for _, found := range notes.FindAllStringSubmatch(unseen.ReplaceAllString(p.body, ""), -1) {
		if text := html.UnescapeString(found[2]); found[1] == "bad" || found[1] == "warn" {
			got.detail += strings.Join(strings.Fields(text), " ") + " "
		}
	}
	switch {
	case p.status == http.StatusTooManyRequests:
		got.code = string(fault.RateLimited)
	case strings.HasPrefix(p.path, web.ProvePath):
		got.code = "fresh proof"
	case strings.Contains(got.detail, "takes effect in 24 hours"):
		got.code = "delay of 24 hours"
	case strings.Contains(got.detail, "must be older than"), strings.Contains(got.detail, "got rights less than"):
		got.code = "age of the approver"
	case strings.Contains(got.detail, "second administrator"):
		got.code = "second administrator"
	case strings.Contains(got.detail, "second person must decide"):
		got.code = "second person"
	case p.status == http.StatusForbidden && strings.Contains(p.body, stopReason):
		got.code = "stop"
	case strings.HasPrefix(p.path, web.SignInPath):
		got.code = "end of the session"
	case strings.Contains(got.detail, "company's limit"), strings.Contains(got.detail, "calls a minute"):
		got.code = string(fault.RateLimited)
	case strings.Contains(got.detail, "not enrolled"), strings.Contains(got.detail, "no longer managed"), strings.Contains(got.detail, "does not work on"),
		strings.Contains(got.detail, "needs a"):
		got.code = string(fault.Unsupported)
	case p.status >= http.StatusBadRequest || got.detail != "":
		got.code = "refused in the portal"
	}
	return got
}

var errNothingShown = errors.New("the page does not show what was made")

// shown is the part of a page that an expression finds.
func (p page) shown(expression *regexp.Regexp) (string, error) {
	found := expression.FindString(html.UnescapeString(p.body))
	if found == "" {
		return "", fmt.Errorf("%w: %d at %s", errNothingShown, p.status, p.path)
	}
	return found, nil
}
