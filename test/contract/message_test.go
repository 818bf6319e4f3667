package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// A message to a device of the platform is refused with what it needs, on both surfaces and
// at the button of the portal.
func TestMessage_SaysWhatAPlatformDeviceNeeds(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	tenant := env.NewTenant("acme")
	phone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	const needs = "needs Muster's companion app, and no release of that app exists yet"
	key := env.Key(tenant.Company, access.All)
	answer := replica.As(key).Post("/assets/"+phone.AssetID+"/commands/message", map[string]any{"title": "Hello", "body": "Please call"}).
		Want(t, http.StatusConflict)
	if !strings.Contains(string(answer.Body), needs) {
		t.Errorf("REST: %s", answer.Body)
	}
	if e := servertest.WithKey(t, replica.PublicURL(), key).Call("send_message",
		map[string]any{"assetId": phone.AssetID, "title": "Hello", "body": "Please call"}).Failed(t); e.Status != http.StatusConflict ||
		!strings.Contains(e.Message, needs) {
		t.Errorf("MCP: %+v", e)
	}
	page := replica.PortalClient(t, env.Browser(tenant.Company, account.Admin).User).Get("/devices/"+phone.AssetID).Want(t, 200).Body
	if !strings.Contains(strings.ReplaceAll(page, "&#39;", "'"), needs) {
		t.Error("the page of the device does not say what a message needs")
	}
}
