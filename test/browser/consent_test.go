package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/oauth"
)

// The consent page is sound at both widths and in both themes, and its answer
// reaches the client although the client's callback leads on to another origin.
func TestConsent_LooksWellAndReachesTheClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, servertest.Everything())
	var code string
	onward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<main>arrived</main>") }))
	t.Cleanup(onward.Close)
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("code"); got != "" {
			code = got
		}
		http.Redirect(w, r, onward.URL, http.StatusFound)
	}))
	t.Cleanup(client.Close)
	acme, err := s.env.DB().CompanyBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	registered := s.env.Browser(acme, account.Viewer).RegisterAs(s.replica.PublicURL(),
		`{"client_name":"Claude <b>Desktop</b> of `+strings.Repeat("W", 50)+`","redirect_uris":["`+client.URL+
			`/cb"],"token_endpoint_auth_method":"none"}`)
	request := registered.AuthorizationRequest(s.replica.PublicURL(), access.All.Scopes()...)
	request.Set("redirect_uri", client.URL+"/cb")
	s.tab.SignIn(s.admin.Email, servertest.Password)
	ask := oauth.AuthorizePath + "?" + request.Encode()
	s.tab.Go(ask)
	for _, width := range []int64{1440, 390} {
		s.tab.Size(width, 1000)
		s.sound(t, fmt.Sprintf("consent-%d", width))
		if wide := s.tab.Eval(`String(document.documentElement.scrollWidth)`); wide != fmt.Sprint(width) {
			t.Errorf("the page is %s pixels wide in a window of %d", wide, width)
		}
		if cut := s.tab.Eval(`(() => { const edge = document.querySelector(".card").getBoundingClientRect().right;
			return [...document.querySelectorAll(".card header *")].filter((e) => e.getBoundingClientRect().right > edge)
				.map((e) => e.innerText).join("\n") })()`); cut != "" {
			t.Errorf("a long name of the application cuts off, at %d pixels: %s", width, cut)
		}
	}
	if on := s.tab.Eval(`String(document.querySelector("input[value='mcp:devices:destructive']").checked)`); on != "false" {
		t.Error("destruction is selected")
	}
	s.tab.Click("button[value=allow]")
	s.tab.Waits(`document.body?.innerText.includes("arrived")`)
	if code == "" {
		t.Error("the client got no code")
	}
	// The next request says what was allowed before, and denying reaches the client too.
	code = ""
	s.tab.Go(ask)
	s.tab.Size(390, 1000)
	s.sound(t, "consent-denied-390")
	s.tab.Click("button[value=deny]")
	s.tab.Waits(`document.body?.innerText.includes("arrived")`)
	if code != "" {
		t.Errorf("after a denial the client has the code %q", code)
	}
}
