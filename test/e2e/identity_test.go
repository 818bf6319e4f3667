package e2e_test

import (
	"strings"
	"testing"
	"time"

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
		admin := replica.PortalClient(t, env.Browser(tenant.Company, account.Admin).User)
		viewer := replica.PortalClient(t, env.Browser(tenant.Company, account.Viewer).User)
		for id, other := range map[string]string{old.AssetID: reset.AssetID, reset.AssetID: old.AssetID} {
			page := admin.Get("/devices/"+id).Want(t, 200)
			if !strings.Contains(page.Body, "Same serial number as") || !strings.Contains(page.Body, "/devices/"+other) {
				t.Errorf("the page of %s does not tell of %s", id, other)
			}
		}
		viewer.Get("/devices/"+old.AssetID+"/merge?other="+reset.AssetID).Want(t, 403)
		viewer.Post("/devices/"+old.AssetID+"/merge", "other", reset.AssetID).Want(t, 403)
		viewer.Post("/devices/"+old.AssetID+"/enroll").Want(t, 403)
		name := nameOf(t, tenant, replica, old.AssetID)
		admin.Post("/devices/"+old.AssetID+"/merge", "other", reset.AssetID, "confirm", name).Want(t, 200)
		if page := admin.Get("/devices/"+old.AssetID).Want(t, 200); strings.Contains(page.Body, "Same serial number as") {
			t.Error("the notice is still there")
		}
		if err := old.CheckIn(); err == nil || !strings.Contains(err.Error(), agent.ErrSuperseded.Error()) ||
			old.Device.State().Settings["CAMERA"] != "BLOCK" {
			t.Errorf("the former device: %v, %+v", err, old.Device.State())
		}
		reset.MustCheckIn()
		var a struct{ Status string }
		tenant.Client(replica, access.All).Get("/assets/"+old.AssetID).Want(t, 200).JSON(t, &a)
		if a.Status != "ACTIVE" {
			t.Errorf("the kept asset is %s", a.Status)
		}
		if page := admin.Post("/devices/"+old.AssetID+"/enroll", "confirm", name).Want(t, 200); !strings.Contains(page.Body,
			"data:image/png;base64,") {
			t.Error("there is no code")
		}
		var token struct{ Token, ExpiresAt, PolicyID string }
		env.CLI(&token, "asset", "token", "--company", "acme", old.AssetID)
		if !strings.HasPrefix(token.Token, "met_") || token.PolicyID != tenant.Policy.PathName() || token.ExpiresAt == "" {
			t.Errorf("muster asset token printed %+v", token)
		}
	})
}

// nameOf is what the portal calls an asset.
func nameOf(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, id string) string {
	t.Helper()
	var a struct{ Identification string }
	tenant.Client(replica, access.All).Get("/assets/"+id).Want(t, 200).JSON(t, &a)
	return a.Identification
}

// To let a managed device leave its asset takes a fresh proof of identity, the right to
// destructive commands and the asset's name, and counts in the company's limit.
func TestPortal_ReplacingADevice(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		var done any
		env.CLI(&done, "company", "set", "--company", "acme", "--destructive-limit", "1/60m")
		same := func(s *simulated.State) { s.Facts.SerialNumber = "SN-same" }
		a, b, c := tenant.AgentDevice(replica, same), tenant.AgentDevice(replica, same), tenant.AgentDevice(replica, same)
		name := nameOf(t, tenant, replica, a.AssetID)
		merge := func(by *servertest.PortalClient, other, confirm string) string {
			return by.Post("/devices/"+a.AssetID+"/merge", "other", other, "confirm", confirm).Body
		}
		code := func(by *servertest.PortalClient, confirm string) string {
			return by.Post("/devices/"+a.AssetID+"/enroll", "confirm", confirm).Body
		}
		says := func(page, want string) {
			t.Helper()
			if !strings.Contains(page, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		limited := env.Browser(tenant.Company, account.Manager)
		limited.Change(func(u *account.User) { u.Rights &^= account.DestroyDevices })
		manager := replica.PortalClient(t, limited.User)
		for _, page := range []string{manager.Get("/devices/" + a.AssetID + "/merge?other=" + b.AssetID).Body,
			manager.Get("/devices/" + a.AssetID + "/enroll").Body} {
			says(page, "need the permission to")
		}
		says(merge(manager, b.AssetID, name), "permission to send destructive commands")
		says(code(manager, name), "permission to send destructive commands")
		admin := replica.PortalClient(t, env.Browser(tenant.Company, account.Admin).User)
		says(merge(admin, b.AssetID, name+"x"), "type the asset")
		says(code(admin, ""), "type the asset")
		says(admin.Get("/devices/"+a.AssetID+"/enroll").Body, "Type the name of the asset whose device leaves")
		env.Advance(account.ReauthFresh + time.Second)
		for _, page := range []string{merge(admin, b.AssetID, name), code(admin, name),
			admin.Get("/devices/" + a.AssetID + "/merge?other=" + b.AssetID).Body, admin.Get("/devices/" + a.AssetID + "/enroll").Body} {
			says(page, "Confirm it&#39;s you")
		}
		if err := a.CheckIn(); err != nil {
			t.Errorf("after all that was refused: %v", err)
		}
		admin = replica.PortalClient(t, env.Browser(tenant.Company, account.Admin).User)
		says(merge(admin, b.AssetID, name), "Assets merged")
		says(merge(admin, c.AssetID, name), "limit of destructive commands")
		says(code(admin, name), "limit of destructive commands")
		var left struct {
			Destructive struct{ Remaining int }
		}
		tenant.Client(replica, access.All).Post("/explain",
			map[string]any{"operation": "wipe_device", "arguments": map[string]any{"assetId": a.AssetID}}).Want(t, 200).JSON(t, &left)
		if left.Destructive.Remaining != 0 {
			t.Errorf("%d devices remain, want 0", left.Destructive.Remaining)
		}
		var token struct{ Token string }
		env.CLI(&token, "asset", "token", "--company", "acme", a.AssetID)
		env.CLI(&done, "asset", "merge", "--company", "acme", a.AssetID, c.AssetID)
	})
}
