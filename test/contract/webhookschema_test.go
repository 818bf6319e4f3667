package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/webhook"
)

// The OpenAPI document has each type of event that a webhook gets, also that of a test, and
// what a receiver gets is what the document says of its type and of no other.
func TestOpenAPI_WebhookBodiesHaveTheirSchema(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant := env.NewTenant("acme")
	const loopback = "127.0.0.0/8"
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.WebhookNetworks.WebhookNetworks = []string{loopback} })
	var mu sync.Mutex
	bodies := map[string][]byte{} // by their types
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(body, []byte(webhook.Test)) {
			bodies[string(webhook.Test)] = body
		} else {
			bodies[string(event.KeyCreated)] = body
		}
	}))
	t.Cleanup(receiver.Close)
	var made struct{ ID string }
	env.CLI(&made, "webhook", "create", "--company", "acme", "--url", receiver.URL, "--event", string(event.KeyCreated),
		"--webhook-networks", loopback)
	env.CLI(new(any), "webhook", "test", "--company", "acme", made.ID, "--webhook-networks", loopback)
	env.CLI(new(any), "key", "create", "--company", tenant.Company.Slug, "--name", "k", "--permission", "DEVICES_READ")
	env.Eventually("both arrive", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(bodies) < 2 {
			return errors.New(strings.Join(slices.Sorted(maps.Keys(bodies)), ", "))
		}
		return nil
	})
	document := rest.OpenAPI(replica.Registry(), "")
	var has struct{ Webhooks map[string]any }
	if err := json.Unmarshal(document, &has); err != nil {
		t.Fatal(err)
	}
	want := append(event.Type("").Values(), string(webhook.Test))
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(has.Webhooks)); !slices.Equal(got, want) {
		t.Errorf("the document has the webhooks %v, want %v", got, want)
	}
	for _, kind := range slices.Sorted(maps.Keys(bodies)) {
		for _, as := range []string{string(webhook.Test), string(event.KeyCreated)} {
			schema := schemaAt(t, document, "/webhooks/"+as+"/post/requestBody/content/application~1json/schema")
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(bodies[kind]))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != (kind == as) {
				t.Errorf("%s as %s: %v\n%s", kind, as, err, bodies[kind])
			}
		}
	}
}
