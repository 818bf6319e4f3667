package conformance_test

import (
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/test/port"
)

// The authorization server passes the suite's scenarios with a registered
// public client and a person who signs in and consents.
func TestAuthorizationServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := strconv.Itoa(port.Reserve(t))
	browser := w.browser()
	var registered client.OAuthClient
	if err := script.Attempt(func() {
		registered = client.NewBrowser(w.service.PublicURL()).Register(t.Context(),
			client.PublicClient("Conformance", "http://127.0.0.1:"+number+"/callback"))
	}); err != nil {
		t.Fatal(err)
	}
	see, done := browser.watch(t)
	code, out := node(t, see, nil, suite, "authorization", "--url", w.service.PublicURL(), "--client-id", registered.ID,
		"--resource", w.endpoint(), "-p", number, "--spec-version", "2026-07-28")
	done()
	if code != 0 {
		t.Errorf("exit %d:\n%s", code, complaints(out))
	}
}
