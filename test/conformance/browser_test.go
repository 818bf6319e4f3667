package conformance_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/script"
)

// browser is the person's browser: it keeps cookies, follows the service's
// redirects, and fills in the forms that it is shown.
type browser struct {
	*world
	*client.Browser
}

func (w *world) browser() *browser {
	b := client.NewBrowser("")
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{w, b}
}

// visit opens an authorize address as a client asks, signs in if it must, and
// allows what is ticked, or the scopes of choose instead. It returns the
// client's address to which the person is sent back.
func (b *browser) visit(address string, choose []string) (back string, err error) {
	err = script.Attempt(func() { back = b.sentBack(address, choose) })
	return back, err
}

func (b *browser) sentBack(address string, choose []string) string {
	ctx, signedIn := context.Background(), false
	for range 5 {
		page := b.Get(ctx, address)
		switch {
		case page.Status == http.StatusSeeOther:
			if address = follow(address, page); !strings.HasPrefix(address, b.service.PublicURL()) {
				return address
			}
		case strings.Contains(page.Body, `name="password"`) && !signedIn:
			signedIn = true
			page = b.Post(ctx, address, "email", b.person.Email, "password", password, "next", page.Field("next"))
			if page.Status != http.StatusSeeOther {
				script.Fail("sign-in: %d: %s", page.Status, page.Body)
			}
			address = follow(address, page)
		case strings.Contains(page.Body, `name="decision"`):
			form := url.Values{"request": {page.Field("request")}, "scope": ticked(page.Body), "decision": {"allow"}}
			if choose != nil {
				form["scope"] = choose
			}
			page = b.Submit(ctx, address, form)
			if page.Status != http.StatusOK || page.Onward() == "" {
				script.Fail("consent: %d: %s", page.Status, page.Body)
			}
			return page.Onward()
		default:
			script.Fail("%s answers %d: %s", address, page.Status, page.Body)
		}
	}
	script.Fail("the service sends the browser round in circles")
	return ""
}

// watch waits for a program to print an authorize address, and answers it as a
// person who was asked to open it would, once. done waits for that.
func (b *browser) watch(t *testing.T) (see func(sofar string), done func()) {
	address := regexp.MustCompile(regexp.QuoteMeta(b.service.PublicURL()) + `/oauth/authorize\?\S+\s`)
	var once sync.Once
	var visiting sync.WaitGroup
	return func(sofar string) {
		found := strings.TrimSpace(address.FindString(colors.ReplaceAllString(sofar, "")))
		if found == "" {
			return
		}
		once.Do(func() {
			visiting.Go(func() {
				back, err := b.visit(found, nil)
				if err == nil {
					err = script.Attempt(func() { client.NewBrowser("").Get(context.Background(), back) })
				}
				if err != nil {
					t.Errorf("the browser: %v", err)
				}
			})
		})
	}, visiting.Wait
}

func follow(from string, page client.Page) string {
	return script.Must(script.Must(url.Parse(from)).Parse(page.Header.Get("Location"))).String()
}

var tickedScope = regexp.MustCompile(`<input[^>]* name="scope" value="([^"]*)"[^>]* checked[^>]*>`)

// ticked are the scopes that are ticked on the consent page.
func ticked(page string) (scopes []string) {
	for _, found := range tickedScope.FindAllStringSubmatch(page, -1) {
		scopes = append(scopes, html.UnescapeString(found[1]))
	}
	return scopes
}

// serve lets a script use the browser: /visit?to=ADDRESS[&scope=…] answers
// where the client's person is sent; /raise?scope=… widens every live
// connection of the company, as an administrator does.
func (b *browser) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/visit", func(w http.ResponseWriter, r *http.Request) {
		back, err := b.visit(r.FormValue("to"), r.Form["scope"])
		answer(w, back, err)
	})
	mux.HandleFunc("/raise", func(w http.ResponseWriter, r *http.Request) {
		answer(w, "raised", b.raise(t, r.FormValue("scope")))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, text)
}

func (b *browser) raise(t *testing.T, scope string) error {
	more, err := access.ParseScopes(strings.Fields(scope))
	if err != nil {
		return err
	}
	connections, err := b.Admin().Connections.Connections(t.Context(), b.Company.ID)
	if err != nil {
		return err
	}
	for _, c := range connections {
		_, err := b.Admin().Connections.UpdateConnection(t.Context(), b.Company.ID, c.ID, func(o *oauth.Connection) error {
			o.Scopes |= more
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
