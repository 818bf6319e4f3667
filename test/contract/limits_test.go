package contract_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// The company's limit binds each of the four destructive commands: after the
// checks of the device, before anything is sent. A device that counts is free,
// and the window slides.
func TestDestructiveLimit(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		env.CLI(new(any), "company", "set", "--company", "acme", "--destructive-limit", "1/60m")
		whole, profile := tenant.Devices(replica, servertest.FullyManaged(), 2), tenant.Devices(replica, servertest.WorkProfile(), 1)
		client := tenant.Client(replica, access.All)
		for _, d := range append(whole, profile...) {
			servertest.AwaitStatus(t, tenant, client, d.AssetID, "ACTIVE")
		}
		path := func(d servertest.Device, command string) string {
			return "/assets/" + d.AssetID + "/commands/" + command
		}
		password := map[string]string{"newPassword": "correct horse 42"}
		client.Post(path(whole[0], "reset-screen-lock"), nil).Want(t, 200)
		sent := env.Calls("devices.issueCommand") + env.Calls("devices.delete")

		client.Post(path(whole[1], "relinquish-ownership"), nil).Want(t, 409) // what the device cannot do is said first
		for _, refused := range []servertest.Answer{
			client.Post(path(whole[1], "wipe"), nil),
			client.Post(path(whole[1], "reset-screen-lock"), nil),
			client.Post(path(whole[1], "change-screen-lock-password"), password),
			client.Post(path(profile[0], "relinquish-ownership"), nil),
		} {
			body := refused.Want(t, 429).Members(t)
			wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
			if err != nil || wait < 3000 || wait > 3600 {
				t.Errorf("Retry-After = %q", refused.Header.Get("Retry-After"))
			}
			detail, _ := body["detail"].(string)
			if body["code"] != "rate_limited" || body["retryable"] != true || !strings.Contains(detail, "the company's limit") {
				t.Errorf("refused with %v", body)
			}
		}
		if now := env.Calls("devices.issueCommand") + env.Calls("devices.delete"); now != sent {
			t.Errorf("%d calls to the platform for refused commands", now-sent)
		}
		client.Post(path(whole[1], "lock"), nil).Want(t, 200)
		client.Post(path(whole[0], "change-screen-lock-password"), password).Want(t, 200)
		env.Advance(61 * time.Minute)
		client.Post(path(whole[1], "wipe"), nil).Want(t, 200)
	})
}
