package conformance_test

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/servertest"
)

// browser is the person's browser: it keeps cookies, follows the service's
// redirects, and fills in the forms that it is shown.
type browser struct {
	*world
	client *http.Client
}

func (w *world) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{w, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// visit opens an authorize address as a client asks, signs in if it must, and
// allows what is ticked, or the scopes of choose instead. It returns the
// client's address to which the person is sent back.
func (b *browser) visit(address string, choose []string) (string, error) {
	signedIn := false
	for range 5 {
		response, page, err := fetch(b.client, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		switch {
		case response.StatusCode == http.StatusSeeOther:
			address, err = follow(address, response)
			if err != nil || !strings.HasPrefix(address, b.service.PublicURL()) {
				return address, err
			}
		case strings.Contains(page, `name="password"`) && !signedIn:
			signedIn = true
			form := url.Values{"email": {b.person.Email}, "password": {password}, "next": inputs(page, "next", false)}
			if response, page, err = fetch(b.client, http.MethodPost, address, form); err != nil ||
				response.StatusCode != http.StatusSeeOther {
				return "", fmt.Errorf("sign-in: %w: %s", errors.Join(err, errors.New(response.Status)), page)
			}
			if address, err = follow(address, response); err != nil {
				return "", err
			}
		case strings.Contains(page, `name="decision"`):
			form := url.Values{"request": inputs(page, "request", false), "scope": inputs(page, "scope", true), "decision": {"allow"}}
			if choose != nil {
				form["scope"] = choose
			}
			if response, page, err = fetch(b.client, http.MethodPost, address, form); err != nil || response.StatusCode != http.StatusOK {
				return "", fmt.Errorf("consent: %w: %s", errors.Join(err, errors.New(response.Status)), page)
			}
			back := servertest.Answer{Body: []byte(page)}.Onward()
			if back == "" {
				return "", fmt.Errorf("consent leads nowhere: %s", page)
			}
			return back, nil
		default:
			return "", fmt.Errorf("%s answers %s: %s", address, response.Status, page)
		}
	}
	return "", errors.New("the service sends the browser round in circles")
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
					_, _, err = fetch(http.DefaultClient, http.MethodGet, back, nil)
				}
				if err != nil {
					t.Errorf("the browser: %v", err)
				}
			})
		})
	}, visiting.Wait
}

func follow(from string, response *http.Response) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	to, err := base.Parse(response.Header.Get("Location"))
	if err != nil {
		return "", err
	}
	return to.String(), nil
}

var inputTag = regexp.MustCompile(`<input[^>]*>`)

// inputs are the values of a form's inputs of a name; ticked ones alone if so
// wanted.
func inputs(page, name string, ticked bool) []string {
	var values []string
	for _, tag := range inputTag.FindAllString(page, -1) {
		if attribute(tag, "name") == name && (!ticked || slices.Contains(strings.Fields(strings.TrimRight(tag, ">/")), "checked")) {
			values = append(values, attribute(tag, "value"))
		}
	}
	return values
}

func attribute(tag, name string) string {
	_, after, _ := strings.Cut(tag, " "+name+`="`)
	value, _, _ := strings.Cut(after, `"`)
	return html.UnescapeString(value)
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
