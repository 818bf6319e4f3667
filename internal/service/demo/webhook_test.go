package demo_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/service/demo"
)

// The demo's webhooks may send to the networks that its settings name.
func TestDemo_WebhookNetworks(t *testing.T) {
	t.Parallel()
	const receiver = "http://127.0.0.1:9/hook"
	settings := demo.Settings{Data: t.TempDir(), Listen: "127.0.0.1:0"}
	settings.WebhookNetworks.WebhookNetworks = []string{"127.0.0.0/8"}
	if err := demo.Use(t.Context(), settings, time.Now, slog.New(slog.DiscardHandler), func(ctx context.Context, r *demo.Running) error {
		v := client.NewPerson(r.Service.PublicURL(), r.User, r.Password)
		v.SignIn(ctx)
		once := v.Get(ctx, "/settings/webhooks/new").Field("once")
		made := v.Post(ctx, "/settings/webhooks", "url", receiver, "all", "true", "once", once)
		if made.Status != http.StatusOK {
			t.Errorf("the webhook is answered %d, want 200", made.Status)
		}
		list := v.Get(ctx, "/settings/webhooks")
		if !strings.Contains(list.Body, "127.0.0.1") {
			t.Error("the list lacks the webhook")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
