package contract_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/spec"
)

// sending is a command that the API sends to a device of the platform, and what contract 4.2 says of it.
type sending struct {
	path      string // the last segment of the command's path
	body      any
	kind      servertest.Kind // of the device
	command   string          // its type
	status    string          // in the answer
	createdAt bool            // the answer has the member
	ends      bool            // the command ends the device's management
}

// platformCommands are all commands that the platform carries, each on a device that takes it, and some on devices of another kind.
func platformCommands(other policy.Policy) (all []sending) {
	send := func(c spec.Command, kind servertest.Kind) {
		ends := c.Segment == "wipe" || c.Segment == "relinquish-ownership"
		s := sending{c.Segment, c.Request(), kind, c.Type, "IN_PROGRESS", !ends && c.Segment != "reboot", ends}
		switch c.Segment {
		case "status-report":
			s.status = "SUCCESS"
		case "change-policy":
			s.body = map[string]string{"policyId": other.PathName()}
		case "lost-mode":
			s.body = map[string]string{"message": "Please call", "phoneNumber": "+1 555 0100", "email": "it@example.com"}
		}
		all = append(all, s)
	}
	for _, c := range spec.Commands {
		if c.Takes(spec.Device{CompanyOwned: true, FullyManaged: true}) {
			send(c, servertest.FullyManaged())
		} else if c.Takes(spec.Device{CompanyOwned: true}) {
			send(c, servertest.WorkProfile())
		}
	}
	send(spec.CommandOf("lock"), servertest.Personal())
	send(spec.CommandOf("wipe"), servertest.Personal())
	send(spec.CommandOf("lost-mode"), servertest.WorkProfile())
	return all
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
	for member, want := range map[string]string{"assetId": "enterprises/acme/assets/" + device.AssetID, "type": s.command,
		"status": s.status} {
		if result[member] != want {
			t.Errorf("%s answers with the %s %v, want %s", s.path, member, result[member], want)
		}
	}
	entry := tenant.Settled(client, device.AssetID, "SUCCESS")
	if entry.Type != s.command || entry.CreatedAt == nil || entry.FeedbackAt == nil && s.status != "SUCCESS" {
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
	for kind, device := range map[servertest.Kind]spec.Device{
		servertest.FullyManaged(): {CompanyOwned: true, FullyManaged: true}, servertest.WorkProfile(): {CompanyOwned: true},
		servertest.Personal(): {},
	} {
		paths := spec.Unsupported(device)
		t.Run(kind.Ownership+" "+kind.Usage, func(t *testing.T) {
			device := tenant.Devices(replica, kind, 1)[0]
			before := env.Calls("")
			for _, path := range paths {
				client := tenant.Client(replica, access.All)
				got := client.Post("/assets/"+device.AssetID+"/commands/"+path, spec.CommandOf(path).Request())
				want := spec.Answers[spec.CommandOf(path).Family]["unsupported"]
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
	for _, c := range spec.Commands {
		got := tenant.Client(replica, access.All).Post("/assets/"+notEnrolled+"/commands/"+c.Segment, c.Request())
		if got.Status != 409 && c.Segment != "change-policy" { // its body names no existing policy
			t.Errorf("%s to an asset that is not enrolled is answered %d %s, want 409", c.Segment, got.Status, got.Body)
		}
	}
}
