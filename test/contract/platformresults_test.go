package contract_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/spec"
)

// trouble is something that goes wrong at the vendor, and what contract 7.1
// makes of it.
type trouble struct {
	name      string
	fault     emulator.Fault // its method is that of the command
	status    int
	code      string // of spec.Answers; empty for 202
	retryable bool
	history   string // the command's status afterwards
}

func troubles() []trouble {
	return []trouble{
		{"unavailable", emulator.Fault{Status: 503}, 202, "", false, "UNCONFIRMED"},
		{"failed on its side", emulator.Fault{Status: 500}, 202, "", false, "UNCONFIRMED"},
		{"gateway page", emulator.Fault{Corrupt: "html"}, 202, "", false, "UNCONFIRMED"},
		{"answer cut", emulator.Fault{Corrupt: "truncate"}, 202, "", false, "UNCONFIRMED"},
		{"connection dropped", emulator.Fault{DropConnection: true}, 202, "", false, "UNCONFIRMED"},
		{"invalid for the device", emulator.Fault{Status: 400, Reason: "INVALID_ARGUMENT"}, 422, "refused", false, "ERROR"},
		{"precondition", emulator.Fault{Status: 400, Reason: "FAILED_PRECONDITION"}, 422, "refused", false, "ERROR"},
		{"throttled", emulator.Fault{Status: 429}, 502, "provider_error", true, "ERROR"},
		{"conflict", emulator.Fault{Status: 409, Reason: "ABORTED"}, 502, "provider_error", true, "ERROR"},
		{"no permission", emulator.Fault{Status: 403}, 502, "provider_error", false, "ERROR"},
		{"no credentials", emulator.Fault{Status: 401}, 502, "provider_error", false, "ERROR"},
		{"device gone", emulator.Fault{Status: 404}, 409, "unsupported", false, "ERROR"},
	}
}

// vendorMethod is the call that carries a command.
func vendorMethod(path string) string {
	switch path {
	case "change-policy":
		return "devices.patch"
	case "status-report":
		return "devices.get"
	default:
		return "devices.issueCommand"
	}
}

// Every row of contract 7.1 that the vendor can cause, for every command that
// reaches it: status, shape, retryable, and what the history says.
func TestCommand_EveryPlatformResult(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	env.CLI(new(any), "company", "set", "--company", "acme", "--destructive-limit", "off")
	other := env.Policy(tenant.Company, "Other", policy.Platform)
	rows := troubles()
	devices := map[servertest.Kind][]servertest.Device{}
	for _, s := range platformCommands(other) {
		if len(devices[s.kind]) < len(rows) {
			devices[s.kind] = append(devices[s.kind], tenant.Devices(replica, s.kind, 10*len(rows))...)
		}
		for i, row := range rows {
			device := devices[s.kind][i]
			row.fault.Method, row.fault.Match = vendorMethod(s.path), device.ID()
			meetTrouble(t, tenant, replica, device, s, row)
		}
		devices[s.kind] = devices[s.kind][len(rows):]
	}
}

func meetTrouble(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, device servertest.Device, s sending, row trouble) {
	t.Helper()
	client := tenant.Client(replica, access.All)
	tenant.Fault(row.fault)
	got := client.Post("/assets/"+device.AssetID+"/commands/"+s.path, s.body)
	label := s.path + " when the vendor is " + row.name
	if got.Status != row.status {
		t.Errorf("%s: %d, want %d: %s", label, got.Status, row.status, got.Body)
		tenant.Emulator.ClearFaults()
		return
	}
	members := got.Members(t)
	want := wantedMembers(s, row)
	if names := strings.Join(slices.Sorted(maps.Keys(members)), " "); names != servertest.Sorted(want) {
		t.Errorf("%s: members %s, want %s", label, names, servertest.Sorted(want))
	}
	if strings.Contains(want, "retryable") && members["retryable"] != row.retryable {
		t.Errorf("%s: retryable is %v: %s", label, members["retryable"], got.Body)
	}
	if row.status == 202 && members["status"] != "UNCONFIRMED" {
		t.Errorf("%s: %s", label, got.Body)
	}
	if history := client.History(device.AssetID); len(history) != 1 || history[0].Status != row.history || history[0].Outcome == nil {
		t.Errorf("%s: the history says %+v", label, history)
	}
	if row.name == "device gone" {
		servertest.AwaitStatus(t, tenant, client, device.AssetID, "DELETED")
	}
}

func wantedMembers(s sending, row trouble) string {
	if row.status != 202 {
		return spec.Answers[spec.CommandOf(s.path).Family][row.code].Members
	}
	if spec.CommandOf(s.path).Family == spec.FirstFour {
		return "assetId type status createdAt detail"
	}
	return "assetId type status detail"
}

// 503: nothing could be sent, which is safe to try again (contract 7.1).
func TestCommand_NotSentIsUnavailable(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	replica.Stop()
	cut := env.Start(func(c *config.Service, _ *service.Options) { c.PlatformEndpoint = "http://127.0.0.1:1" })
	for _, path := range []string{"lock", "reboot"} {
		got := tenant.Client(cut, access.All).Post("/assets/"+device.AssetID+"/commands/"+path, nil).Want(t, 503)
		want := spec.Answers[spec.CommandOf(path).Family]["unavailable"]
		members := got.Members(t)
		if names := strings.Join(slices.Sorted(maps.Keys(members)), " "); names != servertest.Sorted(want.Members) ||
			members["retryable"] != true {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
	if history := tenant.Client(cut, access.All).History(device.AssetID); len(history) != 2 || history[0].Status != "ERROR" {
		t.Errorf("the history says %+v", history)
	}
}

// 500: an unexpected error after dispatch (contract 7.1).
func TestCommand_ErrorAfterDispatch(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	var armed atomic.Bool
	tenant, replica := env.NewTenant("acme"), env.Start(func(_ *config.Service, o *service.Options) {
		o.Crash = func(step string) {
			if step == command.AfterSend && armed.Load() {
				panic("an unexpected error")
			}
		}
	})
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	armed.Store(true)
	for _, path := range []string{"lock", "reboot"} {
		got := tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/"+path, nil).Want(t, 500)
		want := spec.Answers[spec.CommandOf(path).Family]["internal_error"]
		members := got.Members(t)
		if names := strings.Join(slices.Sorted(maps.Keys(members)), " "); names != servertest.Sorted(want.Members) {
			t.Errorf("%s: %s", path, got.Body)
		}
		if retryable, present := members["retryable"]; present && retryable != false {
			t.Errorf("%s: retryable is %v", path, retryable)
		}
		if strings.Contains(string(got.Body), "an unexpected error\"") ||
			!strings.Contains(string(got.Body), got.Header.Get("X-Request-Id")) {
			t.Errorf("%s: the answer shows internals or no id: %s", path, got.Body)
		}
	}
}

// 429 over HTTP: the eleventh call of a minute, with the seconds to wait.
func TestBudget_EleventhCall(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	acme := env.Company("acme", servertest.Everything())
	spare := newSpare(t, env, acme)
	for _, path := range []string{"lock", "reboot", "wipe"} {
		client := replica.As(env.Key(acme, access.All))
		for range 10 {
			client.Post("/assets/"+spare+"/commands/"+path, nil).Want(t, 409)
		}
		got := client.Post("/assets/"+spare+"/commands/"+path, nil).Want(t, 429)
		if after, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
			t.Errorf("Retry-After is %q", got.Header.Get("Retry-After"))
		}
		want := spec.Answers[spec.CommandOf(path).Family]["rate_limited"]
		if names := strings.Join(slices.Sorted(maps.Keys(got.Members(t))), " "); names != servertest.Sorted(want.Members) {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
}
