package e2e_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/servertest"
)

// A hand-reset device is an asset of its own, with a notice, until a person
// merges the two; the device before is told that it is superseded.
func TestPortal_SameSerialNumber(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		same := func(s *simulated.State) { s.Facts.SerialNumber = "SN-same" }
		old := tenant.AgentDevice(replica, same)
		old.MustCheckIn()
		reset := tenant.AgentDevice(replica, same)
		reset.MustCheckIn()
		if old.AssetID == reset.AssetID {
			t.Fatal("the newcomer took over the live asset")
		}
		admin := replica.Visitor(t, env.Browser(tenant.Company, account.Admin).User)
		viewer := replica.Visitor(t, env.Browser(tenant.Company, account.Viewer).User)
		for id, twin := range map[string]string{old.AssetID: reset.AssetID, reset.AssetID: old.AssetID} {
			page := admin.Get("/devices/"+id).Want(t, 200)
			if !strings.Contains(page.Body, "Same serial number as") || !strings.Contains(page.Body, "/devices/"+twin) {
				t.Errorf("the page of %s does not tell of %s", id, twin)
			}
		}
		viewer.Get("/devices/"+old.AssetID+"/merge?other="+reset.AssetID).Want(t, 403)
		viewer.Post("/devices/"+old.AssetID+"/merge", "other", reset.AssetID).Want(t, 403)
		viewer.Post("/devices/"+old.AssetID+"/enroll").Want(t, 403)
		admin.Post("/devices/"+old.AssetID+"/merge", "other", reset.AssetID).Want(t, 200)
		if page := admin.Get("/devices/"+old.AssetID).Want(t, 200); strings.Contains(page.Body, "Same serial number as") {
			t.Error("the notice is still there")
		}
		if err := old.CheckIn(); err == nil || !strings.Contains(err.Error(), agent.ErrSuperseded.Error()) || old.Device.State().Settings["CAMERA"] != "BLOCK" {
			t.Errorf("the former device: %v, %+v", err, old.Device.State())
		}
		reset.MustCheckIn()
		var a struct{ Status string }
		tenant.Client(replica, access.All).Get("/assets/"+old.AssetID).Want(t, 200).JSON(t, &a)
		if a.Status != "ACTIVE" {
			t.Errorf("the kept asset is %s", a.Status)
		}
		if page := admin.Post("/devices/"+old.AssetID+"/enroll").Want(t, 200); !strings.Contains(page.Body, "data:image/png;base64,") {
			t.Error("there is no code")
		}
		var token struct{ Token, ExpiresAt, PolicyID string }
		env.CLI(&token, "asset", "token", "--company", "acme", old.AssetID)
		if !strings.HasPrefix(token.Token, "met_") || token.PolicyID != tenant.Policy.PathName() || token.ExpiresAt == "" {
			t.Errorf("muster asset token printed %+v", token)
		}
	})
}
