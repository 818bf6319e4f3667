package client

import (
	"context"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/script"
)

// Browser is a browser without scripts, which keeps cookies. It is for programs that use the portal as a person does: the
// demo, drills and tests. What fails ends the script that it is part of (package script). Goroutines may share it.
type Browser struct {
	URL    string // of the service, without a slash at its end
	HTTP   *http.Client
	Header http.Header // that each request has; may be nil
}

// NewBrowser returns a browser without cookies, which follows redirects.
func NewBrowser(address string) *Browser {
	jar, _ := cookiejar.New(nil) // never fails without options
	return &Browser{URL: address, HTTP: &http.Client{Jar: jar}}
}

// Via returns a browser with the same cookies, which sends over a transport.
func (b *Browser) Via(transport http.RoundTripper) *Browser {
	own := *b.HTTP
	own.Transport = transport
	return &Browser{b.URL, &own, b.Header}
}

// Get opens a page. An address that begins with a slash is of the service; so it is with Post, Submit and Send.
func (b *Browser) Get(ctx context.Context, address string) Page {
	return b.Send(ctx, http.MethodGet, address, http.NoBody)
}

// Post sends a form of names and values in turn.
func (b *Browser) Post(ctx context.Context, address string, fields ...string) Page {
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.Submit(ctx, address, form)
}

// Submit sends a form. Headers are names and values in turn.
func (b *Browser) Submit(ctx context.Context, address string, form url.Values, headers ...string) Page {
	return b.Send(ctx, http.MethodPost, address, strings.NewReader(form.Encode()),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// Send makes one request. Headers are names and values in turn.
func (b *Browser) Send(ctx context.Context, method, address string, body io.Reader, headers ...string) Page {
	if strings.HasPrefix(address, "/") {
		address = b.URL + address
	}
	request := script.Must(http.NewRequestWithContext(ctx, method, address, body))
	maps.Copy(request.Header, b.Header)
	setHeaders(request, headers)
	answer, last, err := exchange(b.HTTP, request, request.URL.Host)
	if err != nil {
		script.Fail("%s %s: %w", method, address, err)
	}
	return Page{answer.Status, last.URL.RequestURI(), answer.Header, string(answer.Body)}
}

// Page is what came back, after redirects.
type Page struct {
	Status int
	Path   string // with the query
	Header http.Header
	Body   string
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

// Field is the value of a form's field.
func (p Page) Field(name string) string { return p.Attribute(`name="` + name + `" value="`) }

// Answered has a passkey answer what the page asks of it, by a registration or a proof, and returns the page's token.
func (p Page) Answered(sign func(options string) (string, error)) (token, signed string) {
	return p.Field("token"), script.Must(sign(p.Attribute(`data-options="`)))
}

// Shown is the part of a page that an expression finds.
func (p Page) Shown(expression *regexp.Regexp) string {
	found := expression.FindString(html.UnescapeString(p.Body))
	if found == "" {
		script.Fail("the page does not show what was made: %d at %s", p.Status, p.Path)
	}
	return found
}

var refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0;url=([^"]*)"`)

// Onward is the address that the page leads to by itself; empty: none.
func (p Page) Onward() string {
	if found := refresh.FindStringSubmatch(p.Body); found != nil {
		return html.UnescapeString(found[1])
	}
	return ""
}
