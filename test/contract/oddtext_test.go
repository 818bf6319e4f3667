package contract_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A text that is not UTF-8 or has the character NUL is refused or finds nothing, on both
// engines: wherever strangers, users, keys and agents can send one.
func TestOddText_IsRefusedOrFindsNothing(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		base := replica.PublicURL()
		acme := env.Company("acme", servertest.Everything())
		portal := replica.PortalClient(t, env.Browser(acme, account.Admin).User)
		stranger := env.Browser(acme, account.Viewer)
		client := replica.As(env.Key(acme, access.All))
		for _, odd := range []string{"a\x00b", "\xff\xfe", "a\xed\xa0\x80"} {
			escaped := url.PathEscape(odd)
			for _, path := range []string{"/users/", "/access/keys/", "/access/connections/", "/activity?by=", "/activity?device=",
				"/activity?actor=", "/devices?q=", "/devices?policy=",
				"/devices/", "/policies/", "/proposals/", "/authorizations/"} {
				if page := portal.Get(path + escaped); page.Status >= 500 {
					t.Errorf("GET %s%s: %d", path, escaped, page.Status)
				}
			}
			for _, path := range []string{"/users/X", "/users/X/delete", "/account/sessions/X/end", "/account/passkeys/X/remove",
				"/access/keys/X/revoke", "/access/connections/X/revoke",
				"/access/controls/X/cancel", "/access/controls/X/confirm", "/authorizations/X", "/views/X/delete"} {
				if page := portal.Post(strings.Replace(path, "X", escaped, 1), "name", odd); page.Status >= 500 {
					t.Errorf("POST %s with %q: %d", path, odd, page.Status)
				}
			}
			for _, path := range []string{"/oauth/token", "/oauth/revoke", "/signin", "/signin/company", "/invitation"} {
				form := url.Values{"grant_type": {"refresh_token"}, "client_id": {odd}, "refresh_token": {odd}, "token": {odd},
					"email": {odd}, "password": {odd}}
				if got := stranger.Send(base+path, form); got.Status >= 500 {
					t.Errorf("POST %s with %q: %d %s", path, odd, got.Status, got.Body)
				}
			}
			client.Get("/assets/"+escaped).Want(t, http.StatusNotFound)
			key := replica.As(env.Key(acme, access.All)) // each has ten calls
			for n, name := range []string{"lock", "reboot", "wipe", "upload-log"} {
				command := key.Post("/assets/"+escaped+"/commands/"+name, `{}`)
				if command.Status >= 500 || command.Header.Get("RateLimit") == "" {
					t.Errorf("command %d, %s, to %q: %d %q %s", n, name, odd, command.Status, command.Header.Get("RateLimit"), command.Body)
				}
			}
			client.Get("/assets?status="+escaped).Want(t, http.StatusBadRequest)
			for _, path := range []string{"/agent/v1/checkin", "/agent/v1/wake"} {
				answer := servertest.Send(t, "POST", base+path, "{}", "Muster-Device", strings.ReplaceAll(odd, "\x00", "\xfe"),
					"Muster-Time", "1", "Muster-Seq", "1", "Muster-Sig", "x")
				if answer.Status >= 500 {
					t.Errorf("%s with %q: %d", path, odd, answer.Status)
				}
			}
		}
		for _, name := range []string{`a\u0000b`, `a\u0085b`, `a\nb`} {
			body := `{"client_name":"` + name + `","redirect_uris":["https://a.example/cb"]}`
			if got := stranger.SendJSON(base+"/oauth/register", body); got.Status != http.StatusBadRequest {
				t.Errorf("a client is registered as %s: %d %s", name, got.Status, got.Body)
			}
		}
		if log := string(env.Log.Text()); strings.Contains(log, "level=ERROR") {
			t.Error("an error is in the log")
		}
	})
}
