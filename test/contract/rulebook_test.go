package contract_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
)

// What the rules predict of a random call, by a random caller in a random company, is
// what the call is answered, and what its explanation says before it is made.
func TestRulebook_PredictsCallsAndExplanations(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, rival, replica := env.NewTenant("acme"), env.NewTenant("rival"), env.Start(servertest.OnLocalhost(t))
		b := &book{t: t, tenant: tenant, replica: replica, devices: map[string]rulebook.Device{}}
		admin := tenant.Client(replica, access.All)
		for _, kind := range []struct {
			servertest.Kind
			is rulebook.Device
		}{
			{servertest.FullyManaged(), rulebook.Device{Enrolled: true, CompanyOwned: true, FullyManaged: true}},
			{servertest.WorkProfile(), rulebook.Device{Enrolled: true, CompanyOwned: true}},
			{servertest.Personal(), rulebook.Device{Enrolled: true}},
		} {
			for _, d := range tenant.Devices(replica, kind.Kind, 2) {
				servertest.AwaitStatus(t, tenant, admin, d.AssetID, "ACTIVE")
				offline := false
				env.Behave(d, emulator.Behavior{Online: &offline}) // nothing that is sent comes true
				b.devices[d.AssetID] = kind.is
			}
		}
		b.devices[newSpare(t, env, tenant.Company)] = rulebook.Device{}
		agents := servertest.Tenant{Env: env, Company: tenant.Company, Policy: env.AgentPolicy(tenant.Company, "Kiosk")}
		b.devices[agents.AgentDevice(replica).AssetID] = rulebook.Device{Enrolled: true, Agent: true, CompanyOwned: true, FullyManaged: true, Push: true}
		gone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		servertest.AwaitStatus(t, tenant, admin, gone.AssetID, "ACTIVE")
		admin.Post("/assets/"+gone.AssetID+"/commands/wipe", nil).Want(t, 200)
		servertest.AwaitStatus(t, tenant, admin, gone.AssetID, "DELETED")
		b.devices[gone.AssetID] = rulebook.Device{}
		env.CLI(new(any), "company", "set", "acme", "--approver-age", "0s")
		b.user, b.passkey = env.Browser(tenant.Company, account.Admin).User, servertest.NewAuthenticator(t, replica.PublicURL())
		replica.Visitor(t, b.user).AddPasskey(b.passkey).Want(t, 200)
		foreign := rival.Devices(replica, servertest.FullyManaged(), 1)[0]
		b.targets = append(slices.Sorted(maps.Keys(b.devices)), foreign.AssetID, "nothing")
		rapid.Check(t, b.play)
	})
}

// book is a company whose devices are known to the rules.
type book struct {
	t       *testing.T
	tenant  *servertest.Tenant
	replica *servertest.Replica
	devices map[string]rulebook.Device
	targets []string
	user    account.User // who authorizes
	passkey *servertest.Authenticator
}

// play sets the company up at random, and makes random calls with a new key.
func (b *book) play(r *rapid.T) {
	b.tenant.Advance(2 * time.Hour) // every window has closed
	some := rapid.Bool()
	w := rulebook.World{DeviceCommands: rapid.IntRange(0, 5).Draw(r, "commands") > 0,
		RequireReason: rapid.SampledFrom([]string{"OFF", "OFF", "DESTRUCTIVE", "ALL"}).Draw(r, "reason"),
		Stopped:       rapid.IntRange(0, 7).Draw(r, "stopped") == 0, Limit: rapid.IntRange(0, 3).Draw(r, "limit"),
		PerDay: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(r, "per day"), Approval: some.Draw(r, "approval"), Asked: map[string]rulebook.Decision{},
		Counts: map[string]bool{}, Commanded: map[string]bool{}, Rights: map[string]bool{}, Devices: b.devices}
	w.DestructiveCommands = w.DeviceCommands && rapid.IntRange(0, 3).Draw(r, "destructive") > 0
	rights := access.DevicesRead
	if rapid.IntRange(0, 7).Draw(r, "reads") == 0 {
		rights = access.PoliciesRead
	}
	for _, more := range []access.Permission{access.DevicesCommand, access.DevicesCommandDestructive} {
		if some.Draw(r, "may") || some.Draw(r, "may at last") {
			rights |= more
		}
	}
	client := b.caller(r, &w, rights)
	calls := exampleCalls("", "", "", "")
	var tools []string
	for _, tool := range slices.Sorted(maps.Keys(calls)) {
		if _, acts := calls[tool]["assetId"]; acts && tool != "get_asset" && tool != "list_device_commands" && tool != "change_device_policy" {
			tools = append(tools, tool)
		}
	}
	var c rulebook.Call
	for i := range rapid.IntRange(1, 14).Draw(r, "calls") {
		if i > 0 && rapid.IntRange(0, 3).Draw(r, "again") == 0 {
			b.call(r, client, &w, c, maps.Clone(calls[c.Tool]))
			continue
		}
		c = rulebook.Call{Tool: rapid.SampledFrom(tools).Draw(r, "tool"), Device: rapid.SampledFrom(b.targets).Draw(r, "device"),
			Reason: some.Draw(r, "gives a reason"), Malformed: rapid.IntRange(0, 9).Draw(r, "malformed") == 0}
		b.call(r, client, &w, c, maps.Clone(calls[c.Tool]))
	}
}
