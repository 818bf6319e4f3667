package conformance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/musterhq/muster/test/port"
)

// The authorization server passes the suite's scenarios with a registered
// public client and a person who signs in and consents.
func TestAuthorizationServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := strconv.Itoa(port.Reserve(t))
	client := w.register(t, "http://127.0.0.1:"+number+"/callback")
	browser := w.browser(t)
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
	response, err := http.Post(w.service.PublicURL()+"/oauth/register", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var made struct {
		ClientID string `json:"client_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || made.ClientID == "" {
		t.Fatalf("registration answers %s: %v", response.Status, err)
	}
	return made.ClientID
}
