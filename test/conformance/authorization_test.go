package conformance_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/port"
)

// The authorization server passes the suite's scenarios with a registered
// public client and a person who signs in and consents.
func TestAuthorizationServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := strconv.Itoa(port.Reserve(t))
	client := w.register(t, "http://127.0.0.1:"+number+"/callback")
	browser := w.browser()
	see, done := browser.watch(t)
	code, out := node(t, see, nil, suite, "authorization", "--url", w.service.PublicURL(), "--client-id", client,
		"--resource", w.endpoint(), "-p", number, "--spec-version", "2026-07-28")
	done()
	if code != 0 {
		t.Errorf("exit %d:\n%s", code, complaints(out))
	}
}

// register makes a client as RFC 7591 has it.
func (w *world) register(t *testing.T, redirect string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": "Conformance", "redirect_uris": []string{redirect},
		"token_endpoint_auth_method": "none"})
	if err != nil {
		t.Fatal(err)
	}
	answer := servertest.Send(t, "POST", w.service.PublicURL()+"/oauth/register", string(body), "Content-Type", "application/json")
	id, _ := answer.Members(t)["client_id"].(string)
	if id == "" {
		t.Fatalf("registration answers %d: %s", answer.Status, answer.Body)
	}
	return id
}
