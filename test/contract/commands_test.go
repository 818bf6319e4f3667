package contract_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
	"github.com/musterhq/muster/test/needs"
)

// sending is a command that the API sends to a device of the platform, and what contract 4.2 says of it.
type sending struct {
	path      string // the last segment of the command's path
	body      any
	kind      servertest.Kind // of the device
	command   command.Type
	status    string // in the answer
	createdAt bool   // the answer has the member
	ends      bool   // the command ends the device's management
}

func platformCommands(other policy.Policy) []sending {
	whole, profile := servertest.FullyManaged(), servertest.WorkProfile()
	return []sending{
		{"lock", nil, whole, command.Lock, "IN_PROGRESS", true, false},
		{"lost-mode", map[string]string{"message": "Please call", "phoneNumber": "+1 555 0100", "email": "it@example.com"}, whole,
			command.StartLostMode, "IN_PROGRESS", true, false},
		{"found", nil, whole, command.StopLostMode, "IN_PROGRESS", true, false},
		{"status-report", nil, whole, command.StatusReport, "SUCCESS", true, false},
		{"reboot", nil, whole, command.Reboot, "IN_PROGRESS", false, false},
		{"clear-app-data", map[string]any{"packageNames": []string{"com.example.app"}}, whole, command.ClearAppData,
			"IN_PROGRESS", true, false},
		{"change-policy", map[string]string{"policyId": other.PathName()}, whole, command.ChangePolicy, "IN_PROGRESS", true, false},
		{"reset-screen-lock", nil, whole, command.ResetScreenLock, "IN_PROGRESS", true, false},
		{"change-screen-lock-password", map[string]string{"newPassword": "correct horse 42"}, whole, command.ChangeScreenLockPassword,
			"IN_PROGRESS", true, false},
		{"wipe", nil, whole, command.WipeCompanyData, "IN_PROGRESS", false, true},
		{"relinquish-ownership", nil, profile, command.RelinquishOwnership, "IN_PROGRESS", false, true},
		{"lock", nil, servertest.Personal(), command.Lock, "IN_PROGRESS", true, false},
		{"wipe", nil, servertest.Personal(), command.WipeCompanyData, "IN_PROGRESS", false, true},
		{"lost-mode", map[string]string{"message": "Please call"}, profile, command.StartLostMode, "IN_PROGRESS", true, false},
	}
}

// Devices enroll by QR code, and each gets a command: the test checks the answer, the command's history
// and the device's status, on both engines.
func TestCommand_EveryType(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		other := env.Policy(tenant.Company, "Other", policy.Platform)
		devices := map[servertest.Kind][]servertest.Device{}
		for _, s := range platformCommands(other) {
			if len(devices[s.kind]) == 0 {
				devices[s.kind] = tenant.Devices(replica, s.kind, 12)
			}
			device := devices[s.kind][0]
			devices[s.kind] = devices[s.kind][1:]
			sendAndFollow(t, tenant, replica, device, s)
		}
	})
}

func sendAndFollow(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, device servertest.Device, s sending) {
	t.Helper()
	client := tenant.Client(replica, access.All)
	servertest.AwaitStatus(t, tenant, client, device.AssetID, "ACTIVE")
	answer := client.Post("/assets/"+device.AssetID+"/commands/"+s.path, s.body).Want(t, 200)
	result := answer.Members(t)
	want := []string{"assetId", "status", "type"}
	if s.createdAt {
		want = append(want, "createdAt")
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(result)); !slices.Equal(got, want) {
		t.Errorf("%s answers with %v, want %v", s.path, got, want)
	}
	for member, want := range map[string]string{"assetId": "enterprises/acme/assets/" + device.AssetID, "type": string(s.command),
		"status": s.status} {
		if result[member] != want {
			t.Errorf("%s answers with the %s %v, want %s", s.path, member, result[member], want)
		}
	}
	entry := tenant.Settled(client, device.AssetID, "SUCCESS")
	if entry.Type != string(s.command) || entry.CreatedAt == nil || entry.FeedbackAt == nil && s.status != "SUCCESS" {
		t.Errorf("the history of %s has %+v, want type %s with createdAt and, if it was IN_PROGRESS, feedbackAt", s.path, entry, s.command)
	}
	servertest.FiveMembers(t, client, device.AssetID)
	if s.ends {
		servertest.AwaitStatus(t, tenant, client, device.AssetID, "DELETED")
		got := client.Post("/assets/"+device.AssetID+"/commands/lock", nil)
		if got.Status != 409 {
			t.Errorf("a lock after %s is answered %d %s, want 409", s.path, got.Status, got.Body)
		}
	}
}

// A command to a device that does not support it is answered 409. Nothing is sent to the platform, and the
// history has no entry (contract 4.2).
func TestCommand_UnsupportedDevices(t *testing.T) {
	t.Parallel()
	needs.Zbar().Of(t) // here, to skip the whole test and not its subtests one by one
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	for kind, paths := range map[servertest.Kind][]string{
		servertest.FullyManaged(): {"message", "location-update", "sync-policy", "shutdown", "launch-app", "upload-log",
			"relinquish-ownership"},
		servertest.WorkProfile(): {"reboot", "message", "location-update", "sync-policy", "shutdown", "launch-app", "upload-log"},
		servertest.Personal(): {"reboot", "lost-mode", "found", "relinquish-ownership", "message", "location-update", "sync-policy",
			"shutdown", "launch-app", "upload-log"},
	} {
		t.Run(kind.Ownership+" "+kind.Usage, func(t *testing.T) {
			device := tenant.Devices(replica, kind, 1)[0]
			before := env.Calls("")
			for _, path := range paths {
				client := tenant.Client(replica, access.All)
				got := client.Post("/assets/"+device.AssetID+"/commands/"+path, servertest.Bodies()[path])
				want := resttest.Answers[servertest.FamilyOf(path)]["unsupported"]
				members, wantMembers := strings.Join(slices.Sorted(maps.Keys(got.Members(t))), " "), servertest.Sorted(want.Members)
				if got.Status != want.Status || members != wantMembers {
					t.Errorf("%s is answered %d with %s, want %d with %s: %s", path, got.Status, members, want.Status, wantMembers,
						got.Body)
				}
				if history := client.History(device.AssetID); len(history) != 0 {
					t.Errorf("%s left %v in the history", path, history)
				}
			}
			if calls := env.Calls(""); calls != before {
				t.Errorf("the platform got %v calls, want none", calls-before)
			}
		})
	}
	notEnrolled := newSpare(t, env, tenant.Company)
	for path, body := range servertest.Bodies() {
		got := tenant.Client(replica, access.All).Post("/assets/"+notEnrolled+"/commands/"+path, body)
		if got.Status != 409 && path != "change-policy" { // its body names no existing policy
			t.Errorf("%s to an asset that is not enrolled is answered %d %s, want 409", path, got.Status, got.Body)
		}
	}
}
