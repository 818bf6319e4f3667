package contract_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
)

// What the rules predict of a random call, by a random caller in a random company, is
// what the call is answered, and what its explanation says before it is made.
func TestRulebook_PredictsCallsAndExplanations(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, rival, replica := env.NewTenant("acme"), env.NewTenant("rival"), env.Start()
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
				env.Behave(d, emulator.Behaviour{Online: &offline}) // nothing that is sent comes true
				b.devices[d.AssetID] = kind.is
			}
		}
		b.devices[newSpare(t, env, tenant.Company)] = rulebook.Device{}
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
}

// play sets the company up at random, and makes random calls with a new key.
func (b *book) play(r *rapid.T) {
	b.tenant.Advance(2 * time.Hour) // every window has closed
	some := rapid.Bool()
	w := rulebook.World{DeviceCommands: rapid.IntRange(0, 5).Draw(r, "commands") > 0,
		RequireReason: rapid.SampledFrom([]string{"OFF", "OFF", "DESTRUCTIVE", "ALL"}).Draw(r, "reason"),
		Stopped:       rapid.IntRange(0, 7).Draw(r, "stopped") == 0, Limit: rapid.IntRange(0, 3).Draw(r, "limit"),
		Counts: map[string]bool{}, Rights: map[string]bool{}, Devices: b.devices}
	w.DestructiveCommands = w.DeviceCommands && rapid.IntRange(0, 3).Draw(r, "destructive") > 0
	b.set(w)
	rights := access.DevicesRead
	if rapid.IntRange(0, 7).Draw(r, "reads") == 0 {
		rights = access.PoliciesRead
	}
	for _, more := range []access.Permission{access.DevicesCommand, access.DevicesCommandDestructive} {
		if some.Draw(r, "may") || some.Draw(r, "may at last") {
			rights |= more
		}
	}
	for _, name := range rights.Names() {
		w.Rights[name] = true
	}
	client := b.tenant.Client(b.replica, rights)
	calls := exampleCalls("", "", "", "")
	var tools []string
	for _, tool := range slices.Sorted(maps.Keys(calls)) {
		if _, acts := calls[tool]["assetId"]; acts && tool != "get_asset" && tool != "list_device_commands" && tool != "change_device_policy" {
			tools = append(tools, tool)
		}
	}
	for range rapid.IntRange(1, 14).Draw(r, "calls") {
		c := rulebook.Call{Tool: rapid.SampledFrom(tools).Draw(r, "tool"), Device: rapid.SampledFrom(b.targets).Draw(r, "device"),
			Reason: some.Draw(r, "gives a reason"), Malformed: rapid.IntRange(0, 9).Draw(r, "malformed") == 0}
		b.call(r, client, &w, c, maps.Clone(calls[c.Tool]))
	}
}

// set gives the company the settings of a world.
func (b *book) set(w rulebook.World) {
	limit := "off"
	if w.Limit > 0 {
		limit = strconv.Itoa(w.Limit) + "/60m"
	}
	args := []string{"company", "set", "acme", "--destructive-limit", limit, "--require-reason", map[string]string{"OFF": "off", "DESTRUCTIVE": "destructive", "ALL": "all"}[w.RequireReason]}
	for name, on := range map[string]bool{"device-commands": w.DeviceCommands, "destructive-commands": w.DestructiveCommands} {
		if on {
			args = append(args, "--enable", name)
		} else {
			args = append(args, "--disable", name)
		}
	}
	b.tenant.CLI(new(any), args...)
	if w.Stopped {
		b.tenant.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a test")
	} else {
		b.tenant.CLI(new(any), "company", "resume", "--company", "acme")
	}
}

// call has one call explained, makes it, and compares both with the rules.
func (b *book) call(r *rapid.T, client servertest.Client, w *rulebook.World, c rulebook.Call, arguments map[string]any) {
	left, room := 10-w.Spent, max(0, w.Limit-len(w.Counts))
	want := w.Predict(c)
	arguments["assetId"] = c.Device
	if c.Malformed {
		arguments["nonsense"] = 1
	}
	var headers []string
	if c.Reason {
		headers = []string{"X-Muster-Reason", "a test"}
	}
	var said explained
	client.Post("/explain", map[string]any{"operation": c.Tool, "arguments": arguments}, headers...).Want(b.t, 200).JSON(b.t, &said)
	code := ""
	if said.Answer.Code != nil {
		code = *said.Answer.Code
	}
	if got := (rulebook.Answer{Status: said.Answer.Status, Code: code}); got != want || said.Allowed != (want.Status == 200) {
		r.Errorf("%+v is explained as %+v, want %+v", c, said, want)
	}
	if said.Budget.Remaining != left || (said.Destructive == nil) != (w.Limit == 0) || said.Destructive != nil && said.Destructive.Remaining != room {
		r.Errorf("%+v: budget %+v, destructive %+v; want %d and %d left", c, said.Budget, said.Destructive, left, room)
	}
	path := commandPaths()[c.Tool]
	delete(arguments, "assetId")
	var body any
	if len(arguments) > 0 {
		body = arguments
	}
	answer := client.Post("/assets/"+c.Device+"/commands/"+path, body, headers...)
	if answer.Status != want.Status {
		r.Fatalf("%+v in %+v is answered %d %s, want %+v", c, *w, answer.Status, answer.Body, want)
	}
}

// commandPaths are the last segments of the commands' addresses, by tool.
func commandPaths() map[string]string {
	return map[string]string{"lock_device": "lock", "start_lost_mode": "lost-mode", "stop_lost_mode": "found", "send_message": "message",
		"request_status_report": "status-report", "request_location_update": "location-update", "sync_policy": "sync-policy", "reboot_device": "reboot",
		"shutdown_device": "shutdown", "launch_app": "launch-app", "clear_app_data": "clear-app-data", "wipe_device": "wipe", "reset_screen_lock": "reset-screen-lock",
		"change_screen_lock_password": "change-screen-lock-password", "relinquish_ownership": "relinquish-ownership"}
}
