package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

const (
	metaKey      = "muster/idempotencyKey"
	metaReplayed = "muster/idempotencyReplayed"
)

// A tool call with an idempotency key is run once, whatever surface and replica the
// repetition comes by.
func TestIdempotencyKey_MeansTheSameOnEverySurface(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica, other := env.Start(), env.Start()
		tenant := env.NewTenant("acme")
		phone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		key := tenant.Key(tenant.Company, access.All)
		assistant := servertest.WithKey(t, replica.PublicURL(), key).Saying(metaKey, "k-1")
		target := map[string]any{"assetId": phone.AssetID}

		first := assistant.Call("reboot_device", target).OK(t, nil)
		again := servertest.WithKey(t, other.PublicURL(), key).Saying(metaKey, "k-1").Call("reboot_device", target).OK(t, nil)
		if first.Meta[metaReplayed] != nil || again.Meta[metaReplayed] != true ||
			string(again.StructuredContent) != string(first.StructuredContent) {
			t.Errorf("the repetition: %v %s, first %v %s", again.Meta, again.StructuredContent, first.Meta, first.StructuredContent)
		}
		by := replica.As(key).Post("/assets/"+phone.AssetID+"/commands/reboot", nil, "Idempotency-Key", "k-1").Want(t, http.StatusOK)
		if by.Header.Get("Idempotency-Replayed") != "true" || string(by.Body) != string(first.StructuredContent) {
			t.Errorf("over REST: replayed %q, %s", by.Header.Get("Idempotency-Replayed"), by.Body)
		}
		replica.As(key).Post("/assets/"+phone.AssetID+"/commands/lock", nil, "Idempotency-Key", "k-2").Want(t, http.StatusOK)
		if got := assistant.Saying(metaKey, "k-2").Call("lock_device", target).OK(t, nil); got.Meta[metaReplayed] != true {
			t.Errorf("what REST began, as a tool: %v", got.Meta)
		}
		if e := assistant.Call("lock_device", target).Failed(t); e.Code != "idempotency_key_reused" ||
			e.Status != http.StatusUnprocessableEntity {
			t.Errorf("another tool with the key: %+v", e)
		}
		for what, value := range map[string]any{"empty": "", "too long": strings.Repeat("k", 256), "a blank": "a b",
			"a number": 7, "null": nil} {
			if e := assistant.Saying(metaKey, value).Call("sync_policy", target).Failed(t); e.Code != "invalid_arguments" ||
				!strings.Contains(e.Message, metaKey) {
				t.Errorf("%s: %+v", what, e)
			}
		}
		if got := replica.As(key).History(phone.AssetID); len(got) != 2 {
			t.Errorf("the history has %d commands, want 2: %+v", len(got), got)
		}
		if got := assistant.Saying(metaKey, "k-3").Call("get_asset", target).OK(t, nil); got.Meta[metaReplayed] != nil {
			t.Errorf("a read: %v", got.Meta)
		}
	})
}

// A repeated answer is whole: the picture of a QR code, and an error.
func TestIdempotencyKey_RepeatsPicturesAndErrors(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	tenant := s.NewTenant(servertest.UniqueSlug())
	assistant := servertest.WithKey(t, s.base, s.Key(tenant.Company, access.All)).Saying(metaKey, "qr")
	first := assistant.Call("create_provisioning_qr_code", map[string]any{"policyId": tenant.Policy.ID}).OK(t, nil)
	again := assistant.Call("create_provisioning_qr_code", map[string]any{"policyId": tenant.Policy.ID}).OK(t, nil)
	if again.Meta[metaReplayed] != true || len(again.Content) != 2 || again.Content[1] != first.Content[1] ||
		again.Content[0] != first.Content[0] {
		t.Errorf("the repeated code: %v, %d blocks", again.Meta, len(again.Content))
	}
	missing := map[string]any{"assetId": "8k2v0r6m4q1x7t9c3w5y2n8b6d"}
	assistant = assistant.Saying(metaKey, "missing")
	e, repeated := assistant.Call("lock_device", missing).Failed(t), assistant.Call("lock_device", missing)
	if got := repeated.Failed(t); got != e || repeated.Meta[metaReplayed] != true {
		t.Errorf("the repeated error: %+v, first %+v, %v", got, e, repeated.Meta)
	}
}

// An API key is a bearer token for tools, and for nothing else.
func TestKey_AsBearerTokenForToolsAlone(t *testing.T) {
	t.Parallel()
	s := newAuthSite(t)
	acme := s.Company(servertest.UniqueSlug(), servertest.Everything())
	key := s.Key(acme, access.DevicesRead)
	servertest.WithToken(t, s.base, key).Call("count_assets", nil).OK(t, nil)
	wrong := key[:len(key)-1] + "!"
	for what, token := range map[string]string{"another key": "mk_" + strings.Repeat("0", 58),
		"damaged": strings.Replace(wrong, "!", "-", 1)} {
		got := servertest.WithToken(t, s.base, token).Call("count_assets", nil)
		if got.Status != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` ||
			!strings.Contains(string(got.Body), "API key") {
			t.Errorf("%s: %d %q %s", what, got.Status, got.Header.Get("WWW-Authenticate"), got.Body)
		}
	}
	both := servertest.WithToken(t, s.base, key)
	both.Header["X-Api-Key"] = []string{key}
	if got := both.Call("count_assets", nil); got.Status != http.StatusBadRequest {
		t.Errorf("both headers: %d", got.Status)
	}
	if got := s.replica.As("").Do("GET", "/assets", nil, "Authorization", "Bearer "+key); got.Status != http.StatusUnauthorized {
		t.Errorf("REST: %d", got.Status)
	}
}

// Repetitions spend no budget, and are counted by the ceiling that protects the server.
func TestIdempotencyKey_RepetitionsHaveACeiling(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant := env.NewTenant("acme")
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.ReadsPerMinute = 5 })
	phone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replica, access.All)
	statuses := map[int]int{}
	for range 8 {
		statuses[client.Post("/assets/"+phone.AssetID+"/commands/reboot", nil, "Idempotency-Key", "k").Status]++
	}
	if statuses[200] != 6 || statuses[429] != 2 {
		t.Errorf("statuses %v, want the first, five repetitions and two refusals", statuses)
	}
}
