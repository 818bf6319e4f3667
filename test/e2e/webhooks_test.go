package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// hookView is what the command line prints of webhooks.
type hookView struct {
	ID, URL, Secret, State string
	Events                 []string
}

// inbox is a receiver that verifies what it gets.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	secret string
	events []event.View
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		defer in.mu.Unlock()
		verifier, err := standard.NewWebhook(in.secret)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		var got event.View
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		in.events = append(in.events, got)
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) trust(secret string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.secret = secret
}

func (in *inbox) got(n int, last event.Type) func() error {
	return func() error {
		in.mu.Lock()
		defer in.mu.Unlock()
		if len(in.events) != n || in.events[n-1].Type != last {
			return fmt.Errorf("the receiver has %+v, want %d events with %s at the end", in.events, n, last)
		}
		return nil
	}
}

// A webhook that the command line makes gets events from the running service, signed for the
// published library, also during a stop; the other commands do what they say.
func TestWebhooks_CommandLineAndService(t *testing.T) {
	t.Parallel()
	env, in := servertest.New(t), newInbox(t)
	const networks = "127.0.0.0/8"
	env.Company("acme", access.Settings{})
	env.Start(func(c *config.Service, _ *service.Options) {
		c.WebhookNetworks.WebhookNetworks = []string{networks}
	})
	var made hookView
	if err := env.TryCLI(&made, "webhook", "create", "--company", "acme", "--url", in.URL); err == nil {
		t.Error("http was taken without the setting")
	}
	env.CLI(&made, "webhook", "create", "--company", "acme", "--url", in.URL, "--event", "key.created", "--event", "automation.stopped",
		"--webhook-networks", networks)
	if made.URL != in.URL || len(made.Events) != 2 {
		t.Errorf("made %+v", made)
	}
	in.trust(made.Secret)
	key := func() {
		env.CLI(new(any), "key", "create", "--company", "acme", "--name", "k", "--permission", "DEVICES_READ")
	}
	key()
	begun := time.Now()
	env.Eventually("the event of a key", in.got(1, event.KeyCreated))
	t.Logf("it took %s", time.Since(begun))
	env.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a test")
	env.Eventually("the event of the stop", in.got(2, event.AutomationStopped))
	var sent struct{ Outcome, Type string }
	env.CLI(&sent, "webhook", "test", "--company", "acme", made.ID, "--webhook-networks", networks)
	if sent.Outcome != "DELIVERED" || sent.Type != "webhook.test" {
		t.Errorf("the test is %+v", sent)
	}
	var rotated hookView
	env.CLI(&rotated, "webhook", "rotate", "--company", "acme", made.ID)
	in.trust(rotated.Secret)
	key()
	env.Eventually("the event after the rotation", in.got(4, event.KeyCreated))
	var tried []struct{ Type, Outcome, After string }
	env.CLI(&tried, "webhook", "deliveries", "--company", "acme", made.ID)
	if len(tried) != 4 || tried[0].Type != "key.created" || tried[3].After == "" {
		t.Fatalf("deliveries are %+v", tried)
	}
	env.CLI(new(any), "webhook", "replay", "--company", "acme", made.ID, "--after", tried[0].After)
	env.Eventually("the event again", in.got(5, event.KeyCreated))
	if in.events[4].ID != in.events[3].ID {
		t.Error("the repeated event has another id")
	}
	env.CLI(new(any), "webhook", "rotate", "--company", "acme", made.ID, "--finish")
	if err := env.TryCLI(new(any), "webhook", "enable", "--company", "acme", made.ID); err == nil {
		t.Error("an enabled webhook was enabled")
	}
	var all []hookView
	env.CLI(&all, "webhook", "list", "--company", "acme")
	if len(all) != 1 || all[0].State != "ENABLED" || all[0].Secret != "" {
		t.Errorf("the list is %+v", all)
	}
	env.CLI(new(any), "webhook", "delete", "--company", "acme", made.ID)
	env.CLI(&all, "webhook", "list", "--company", "acme")
	if len(all) != 0 {
		t.Errorf("after the deletion the list is %+v", all)
	}
}
