package servertest

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/script"
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

// PortalClient is client.Browser for tests: what fails, fails them.
type PortalClient struct {
	*client.Browser
	TB testing.TB
}

// Page is what came back, after redirects.
type Page client.Page

// step is a step of a browser, whose failure fails the test.
func step[T any](tb testing.TB, take func() T) (result T) {
	tb.Helper()
	need(tb, script.Attempt(func() { result = take() }))
	return result
}

// SignedOut is a browser that is not signed in.
func (r *Replica) SignedOut(tb testing.TB) *PortalClient {
	return &PortalClient{client.NewBrowser(r.PublicURL()), tb}
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
	return Page(step(v.TB, func() client.Page { return v.Browser.Get(v.TB.Context(), path) }))
}

// Post sends a form of names and values in turn.
func (v *PortalClient) Post(path string, fields ...string) Page {
	v.TB.Helper()
	return Page(step(v.TB, func() client.Page { return v.Browser.Post(v.TB.Context(), path, fields...) }))
}

// Submit sends a form. Headers are names and values in turn.
func (v *PortalClient) Submit(path string, form url.Values, headers ...string) Page {
	v.TB.Helper()
	return Page(step(v.TB, func() client.Page { return v.Browser.Submit(v.TB.Context(), path, form, headers...) }))
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
	return step(tb, func() string { return client.Page(a).Field(name) })
}

// Options are the options that the page gives to navigator.credentials.
func (a Page) Options(tb testing.TB) string {
	tb.Helper()
	return step(tb, func() string { return client.Page(a).Attribute(`data-options="`) })
}
