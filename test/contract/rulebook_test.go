package contract_test

import (
	"flag"
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
		seed(t)
		b := newBook(t, env)
		rapid.Check(t, b.play)
	})
}

// newBook is a company with devices of each kind.
func newBook(t *testing.T, env *servertest.Env) *book {
	t.Helper()
	tenant, rival, replica := env.NewTenant("acme"), env.NewTenant("rival"), env.Start(servertest.OnLocalhost(t))
	b := &book{t: t, tenant: tenant, replica: replica, devices: map[string]rulebook.Device{}}
	admin := tenant.Client(replica, access.All)
	b.admin = admin
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
	b.devices[agents.AgentDevice(replica).AssetID] = rulebook.Device{Enrolled: true, Agent: true, CompanyOwned: true,
		FullyManaged: true, Push: true}
	gone := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	servertest.AwaitStatus(t, tenant, admin, gone.AssetID, "ACTIVE")
	admin.Post("/assets/"+gone.AssetID+"/commands/wipe", nil).Want(t, 200)
	servertest.AwaitStatus(t, tenant, admin, gone.AssetID, "DELETED")
	b.devices[gone.AssetID] = rulebook.Device{}
	env.CLI(new(any), "company", "set", "acme", "--approver-age", "0s")
	b.user, b.passkey = env.Browser(tenant.Company, account.Admin).User, servertest.NewAuthenticator(t, replica.PublicURL())
	replica.PortalClient(t, b.user).AddPasskey(b.passkey).Want(t, 200)
	foreign := rival.Devices(replica, servertest.FullyManaged(), 1)[0]
	b.targets = append(slices.Sorted(maps.Keys(b.devices)), foreign.AssetID, "nothing")
	b.makePolicies(agents.Policy)
	b.foreign = admin.Post("/policies/"+tenant.Policy.ID+"/changes", args{"changes": change("CAMERA", "BLOCK")}).Want(t, 201).
		Members(t)["proposalId"].(string)
	return b
}

// book is a company whose devices are known to the rules.
type book struct {
	t       *testing.T
	tenant  *servertest.Tenant
	replica *servertest.Replica
	devices map[string]rulebook.Device
	targets []string
	admin   servertest.Client
	user    account.User // who authorizes
	passkey *servertest.Authenticator

	policies  map[string]rulebook.Policy // without their values
	names     map[string]string          // of the policies that can be changed
	moves     []string                   // policies to which devices are moved
	moved     []string                   // devices that can be moved
	changed   []string                   // policies that are changed, or refuse it
	proposals []string                   // ids of the caller's, by their places in the world
	foreign   string                     // another caller's
	stopped   bool                       // the company is
	person    *decider                   // signed in for this play
	plays     int
	failed    bool
	begun     time.Time // the play
	notes     []string  // of the play, shown if it fails
}

// mostPlays bounds the time of the test; rapid has no bound for one test.
var mostPlays = flag.Int("plays", 12, "random plays of TestRulebook_PredictsCallsAndExplanations on each engine, at most 100; calls "+
	"that are held open have twice as many; 50 for the long run")

// play sets the company up at random, and makes random calls with a new key.
func (b *book) play(r *rapid.T) {
	if b.plays++; b.plays > *mostPlays && !b.failed {
		return
	}
	defer b.begin(r)()
	some := rapid.Bool()
	w, rights := b.world(r), drawRights(r)
	tools := []string{"apply_policy_proposal", "update_policy_settings", "rollback_policy", "create_policy", "change_device_policy"}
	policies := some.Draw(r, "policies") // what is played with
	if policies {
		rights |= access.DevicesRead | access.DevicesCommand | access.PoliciesRead | access.PoliciesWrite
		w.DeviceCommands, w.PolicyChanges, w.Stopped = true, true, false
	}
	if policies && w.ApplyApproval != "OFF" && rarely(r, 3, "a change is under way") {
		defer b.beginChange(&w)()
	}
	client := b.caller(r, &w, rights)
	calls := exampleCalls("", "", "", "")
	for _, tool := range slices.Sorted(maps.Keys(calls)) {
		if _, acts := calls[tool]["assetId"]; acts && !policies && tool != "get_asset" && tool != "list_device_commands" {
			tools = append(tools, tool)
		}
	}
	var c rulebook.Call
	for i := range 14 - rapid.IntRange(0, 13).Draw(r, "calls less") {
		if i > 0 && rarely(r, 4, "again") {
			b.call(r, client, &w, c, b.arguments(&w, c, calls[c.Tool]))
			continue
		}
		c = b.draw(r, &w, tools)
		b.call(r, client, &w, c, b.arguments(&w, c, calls[c.Tool]))
	}
}

// world is the company at random, with its policies as they are.
func (b *book) world(r *rapid.T) rulebook.World {
	w := rulebook.World{PerDay: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(r, "per day"), Asked: map[string]rulebook.Decision{},
		Counts: map[string]bool{}, Commanded: map[string]bool{}, Rights: map[string]bool{}, Stopped: rarely(r, 8, "stopped")}
	drawGates(r, &w)
	drawRules(r, &w)
	b.now(&w)
	return w
}

// drawGates and drawRules are the company's settings at random.
func drawGates(r *rapid.T, w *rulebook.World) {
	w.DeviceCommands = !rarely(r, 6, "commands off")
	w.DestructiveCommands = w.DeviceCommands && !rarely(r, 4, "destructive off")
	w.PolicyChanges = !rarely(r, 6, "policy changes off")
	w.Provisioning = !rarely(r, 6, "QR codes off")
}

func drawRules(r *rapid.T, w *rulebook.World) {
	w.RequireReason = rapid.SampledFrom([]string{"OFF", "OFF", "DESTRUCTIVE", "ALL"}).Draw(r, "reason")
	w.Limit = rapid.IntRange(0, 3).Draw(r, "limit")
	w.Approval = rapid.Bool().Draw(r, "approval")
	w.ApplyApproval = rapid.SampledFrom([]string{"OFF", "RISKY", "ALL"}).Draw(r, "apply approval")
}

// drawRights are a caller's at random, with one that reads.
func drawRights(r *rapid.T) access.Permission {
	rights := access.DevicesRead
	if rarely(r, 8, "does not read") {
		rights = access.PoliciesRead
	}
	for _, more := range []access.Permission{access.DevicesCommand, access.DevicesCommandDestructive, access.PoliciesRead,
		access.PoliciesWrite, access.Provisioning} {
		if rapid.Bool().Draw(r, "may") || rapid.Bool().Draw(r, "may at last") {
			rights |= more
		}
	}
	return rights
}

// rarely is true once in so many times, or less: rapid prefers small numbers.
func rarely(r *rapid.T, times int, what string) bool {
	return rapid.IntRange(1, times).Draw(r, what) == times
}
