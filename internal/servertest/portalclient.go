package servertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/port"
)

// OnLocalhost gives a replica a public address with a host name, which
// passkeys need.
func OnLocalhost(tb testing.TB) func(*config.Service, *service.Options) {
	tb.Helper()
	number := port.Reserve(tb)
	return func(c *config.Service, _ *service.Options) {
		c.Listen, c.PublicURL = fmt.Sprintf("127.0.0.1:%d", number), fmt.Sprintf("http://localhost:%d", number)
	}
}

// PortalClient is a browser without scripts, which follows redirects.
type PortalClient struct {
	TB     testing.TB
	URL    string
	Client *http.Client
}

// Page is what came back, after redirects.
type Page struct {
	Status int
	Path   string
	Header http.Header
	Body   string
}

// SignedOut is a browser that is not signed in.
func (r *Replica) SignedOut(tb testing.TB) *PortalClient {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	need(tb, err)
	return &PortalClient{TB: tb, URL: r.PublicURL(), Client: &http.Client{Jar: jar}}
}

// PortalClient is the browser of an environment user who has signed in.
func (r *Replica) PortalClient(tb testing.TB, u account.User) *PortalClient {
	tb.Helper()
	p := r.SignedOut(tb)
	p.Post("/signin", "email", u.Email, "password", Password, "next", "/account").Want(tb, 200)
	return p
}

// Get opens a page.
func (v *PortalClient) Get(path string) Page {
	v.TB.Helper()
	return v.do("GET", path, nil)
}

// Post sends a form of names and values in turn.
func (v *PortalClient) Post(path string, fields ...string) Page {
	v.TB.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return v.do("POST", path, form)
}

func (v *PortalClient) do(method, path string, form url.Values, headers ...string) Page {
	v.TB.Helper()
	request, err := http.NewRequestWithContext(v.TB.Context(), method, v.URL+path, strings.NewReader(form.Encode()))
	need(v.TB, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.Client.Do(request)
	if err != nil {
		v.TB.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	need(v.TB, err)
	return Page{answer.StatusCode, answer.Request.URL.RequestURI(), answer.Header, string(body)}
}

// From sends a form as a page of another origin would.
func (v *PortalClient) From(origin, path string, form url.Values) Page {
	v.TB.Helper()
	return v.do("POST", path, form, "Origin", origin, "Sec-Fetch-Site", "cross-site")
}

// Want fails the test unless the status is as wanted.
func (a Page) Want(tb testing.TB, status int) Page {
	tb.Helper()
	if a.Status != status {
		tb.Fatalf("%s: status %d, want %d: %.1500s", a.Path, a.Status, status, a.Body)
	}
	return a
}

// Field is the value of a hidden input of the page.
func (a Page) Field(tb testing.TB, name string) string {
	tb.Helper()
	_, rest, found := strings.Cut(a.Body, `name="`+name+`" value="`)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		tb.Fatalf("%s has no field %s", a.Path, name)
	}
	return value
}

// Away opens an address elsewhere and follows it back.
func (v *PortalClient) Away(address string) Page {
	v.TB.Helper()
	there := *v
	there.URL = ""
	return there.do("GET", address, nil)
}
