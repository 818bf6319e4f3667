package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// A companion on a platform device: message, status report and location, by
// push, end to end (contract 4.2).
func TestCompanion_CommandsByPush(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		client := tenant.Client(replica, access.All)
		servertest.AwaitStatus(t, tenant, client, device.AssetID, "ACTIVE")
		companion := replica.Companion(tenant.Company, device)
		if asset := managed(t, client, device); !asset.PushReachable || asset.ManagementType != "PLATFORM" || asset.PolicyID == "" {
			t.Fatalf("with a companion the device reads %+v", asset)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- companion.Run(ctx) }()
		defer func() { cancel(); <-ended }()

		path := "/assets/" + device.AssetID + "/commands/"
		var result struct{ Status string }
		client.Post(path+"message", map[string]string{"title": "$(reboot)", "body": "; rm -rf / \u2028 'x'"}).Want(t, 200).JSON(t, &result)
		if result.Status != "SUCCESS" {
			t.Errorf("message: %s", result.Status)
		}
		env.Eventually("the message is shown", func() error {
			shown := companion.Device.State().Shown
			if len(shown) != 1 || shown[0].Title != "$(reboot)" || shown[0].Body != "; rm -rf / \u2028 'x'" {
				return fmt.Errorf("shown: %v", shown)
			}
			return nil
		})
		for _, kind := range []string{"status-report", "location-update"} {
			client.Post(path+kind, nil).Want(t, 200).JSON(t, &result)
			if result.Status != "IN_PROGRESS" {
				t.Errorf("%s: %s", kind, result.Status)
			}
			if entry := tenant.Settled(client, device.AssetID, "SUCCESS"); entry.FeedbackAt == nil {
				t.Errorf("%s: %+v", kind, entry)
			}
		}
		asset := managed(t, client, device)
		if asset.Location == nil || asset.Location.Latitude != 52.5163 || asset.StatusReport["batteryLevel"] != 80.0 ||
			asset.StatusReport["appliedState"] == nil {
			t.Errorf("after the reports the device reads %+v", asset)
		}
		if text := string(pushedText(env)); strings.Contains(text, "reboot") {
			t.Errorf("the push service read the message: %s", text)
		}
	})
}

func pushedText(env *servertest.Env) []byte {
	var all []byte
	for _, m := range env.Emulator.PushMessages(context.Background(), 0, "", 0) {
		all = append(all, m.Message...)
	}
	return all
}

// managedDevice is what the contract shows of a device.
type managedDevice struct {
	ManagementType string
	PushReachable  bool
	PolicyID       string
	StatusReport   map[string]any
	Location       *struct{ Latitude float64 }
}

func managed(t *testing.T, client servertest.Client, d servertest.Device) managedDevice {
	t.Helper()
	var asset struct{ ManagedDevice managedDevice }
	client.Get("/assets/"+d.AssetID).Want(t, 200).JSON(t, &asset)
	return asset.ManagedDevice
}

// pushTrouble is a row of the mapping from FCM to the contract.
type pushTrouble struct {
	name   string
	faults []emulator.Fault
	status int
	code   string // of spec.Answers
	dead   bool   // the token is gone afterwards
}

func pushTroubles() []pushTrouble {
	one := func(f emulator.Fault) []emulator.Fault {
		f.Method = "fcm.send"
		return []emulator.Fault{f}
	}
	return []pushTrouble{
		{"token gone", one(emulator.Fault{Reason: "UNREGISTERED"}), 409, "unsupported", true},
		{"token malformed", one(emulator.Fault{Reason: "INVALID_ARGUMENT"}), 409, "unsupported", true},
		{"token of another sender", one(emulator.Fault{Reason: "SENDER_ID_MISMATCH"}), 409, "unsupported", true},
		{"unknown token", one(emulator.Fault{Status: 404}), 409, "unsupported", false},
		{"message malformed", one(emulator.Fault{Status: 400}), 422, "refused", false},
		{"quota", one(emulator.Fault{Reason: "QUOTA_EXCEEDED", Times: 3}), 503, "unavailable", false},
		{"quota for long", one(emulator.Fault{Reason: "QUOTA_EXCEEDED", RetryAfterSeconds: 60}), 503, "unavailable", false},
		{"quota for a moment", one(emulator.Fault{Reason: "QUOTA_EXCEEDED", Times: 2}), 200, "", false},
		{"no permission", one(emulator.Fault{Status: 403}), 503, "unavailable", false},
		{"no credentials", one(emulator.Fault{Status: 401}), 503, "unavailable", false},
		{"unavailable", one(emulator.Fault{Reason: "UNAVAILABLE"}), 202, "", false},
		{"internal", one(emulator.Fault{Reason: "INTERNAL"}), 202, "", false},
		{"gateway page", one(emulator.Fault{Corrupt: "html"}), 202, "", false},
		{"answer cut", one(emulator.Fault{Corrupt: "truncate"}), 202, "", false},
		{"connection dropped", one(emulator.Fault{DropConnection: true}), 202, "", false},
		{"answer lost after the effect", one(emulator.Fault{AfterEffect: true}), 202, "", false},
	}
}

// Every way a push can end, for each command that is pushed, on both engines:
// status, shape, history; never 502 for a message (contract 7.1).
func TestCompanion_EveryPushResult(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		rows := pushTroubles()
		devices := tenant.Devices(replica, servertest.FullyManaged(), len(rows))
		for i, row := range rows {
			companion := replica.Companion(tenant.Company, devices[i])
			paths := []string{"message", "location-update"}
			if row.dead {
				paths = paths[i%2 : i%2+1] // the first finds the token dead, a second would not push
			}
			for _, path := range paths {
				for _, f := range row.faults {
					env.Fault(f)
				}
				meetPushTrouble(t, tenant, replica, devices[i], companion, path, row)
				env.Emulator.ClearFaults()
			}
		}
	})
}

func meetPushTrouble(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, d servertest.Device,
	companion *servertest.Companion, path string, row pushTrouble) {
	t.Helper()
	client, label := tenant.Client(replica, access.All), path+" when it is "+row.name
	shown := len(companion.Device.State().Shown)
	got := client.Post("/assets/"+d.AssetID+"/commands/"+path, spec.CommandOf(path).Request())
	if got.Status != row.status {
		t.Errorf("%s: %d, want %d: %s", label, got.Status, row.status, got.Body)
		return
	}
	history := client.History(d.AssetID)[0]
	if managed(t, client, d).PushReachable == row.dead {
		t.Errorf("%s: the token is kept, or lost, wrongly", label)
	}
	if row.status != 202 { // what may have been sent is not held
		tenant.Advance(2 * time.Minute) // whatever was held is free
	}
	if _, err := companion.Once(t.Context()); err != nil {
		t.Errorf("%s: %v", label, err)
	}
	arrived := len(companion.Device.State().Shown) - shown
	switch members := got.Members(t); {
	case row.code != "":
		if want := spec.Answers[spec.CommandOf(path).Family][row.code].Members; !slices.Equal(sortedKeys(members),
			strings.Fields(servertest.Sorted(want))) {
			t.Errorf("%s: %s", label, got.Body)
		}
		if history.Status != "ERROR" || arrived != 0 {
			t.Errorf("%s: the history says %+v; %d messages arrived", label, history, arrived)
		}
		if row.code == "unavailable" && members["retryable"] != true {
			t.Errorf("%s: %s", label, got.Body)
		}
	case row.status == 202:
		if members["status"] != "UNCONFIRMED" || history.Status != "UNCONFIRMED" {
			t.Errorf("%s: %s, history %+v", label, got.Body, history)
		}
		// The companion fetched it all the same, and said so.
		if entry := tenant.Settled(client, d.AssetID, "SUCCESS"); entry.Outcome != nil && strings.Contains(*entry.Outcome, "not known") {
			t.Errorf("%s: the outcome of a command that is settled is %q", label, *entry.Outcome)
		}
	default:
		tenant.Settled(client, d.AssetID, "SUCCESS")
	}
}

// Without a token there is nothing to push to; a status report falls back on
// what the platform knows, also when the token turns out to be dead.
func TestCompanion_Missing(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replica, access.All)
	servertest.AwaitStatus(t, tenant, client, device.AssetID, "ACTIVE")
	companion := replica.Companion(tenant.Company, device)
	env.Emulator.DropPush(companion.Token) // the app was removed
	var result struct{ Status string }
	client.Post("/assets/"+device.AssetID+"/commands/status-report", nil).Want(t, 200).JSON(t, &result)
	if result.Status != "SUCCESS" || managed(t, client, device).PushReachable {
		t.Errorf("status report: %+v", result)
	}
	for _, path := range []string{"message", "location-update"} {
		client.Post("/assets/"+device.AssetID+"/commands/"+path, spec.CommandOf(path).Request()).Want(t, 409)
	}
}

// Whose companion an agent is was decided by who made its token; it has the
// role that the token was made for, once, and ends with its device.
func TestCompanion_BelongsToOneDevice(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		client := tenant.Client(replica, access.All)
		enroll := func(token string, role protocol.Role) error {
			_, err := agent.Enroll(t.Context(), agent.Enrollment{Server: replica.PublicURL(), Token: token, Role: role,
				Options: agent.Options{Dir: t.TempDir(),
					Device: simulated.New(simulated.Default("late"), env.Now), Client: agent.NewClient(), Now: env.Now}})
			return err
		}
		token := env.CompanionToken(tenant.Company, device.AssetID)
		if err := enroll(token, protocol.Manager); err == nil {
			t.Error("a companion's token made a manager")
		}
		if err := enroll("met_x", protocol.Companion); err == nil {
			t.Error("another token made a companion")
		}
		if err := enroll(token, protocol.Companion); err != nil {
			t.Error(err)
		}
		if err := enroll(token, protocol.Companion); err == nil {
			t.Error("a spent token made another companion")
		}
		companion := replica.Companion(tenant.Company, device)
		early := env.CompanionToken(tenant.Company, device.AssetID)
		client.Post("/assets/"+device.AssetID+"/commands/wipe", nil).Want(t, 200)
		servertest.AwaitStatus(t, tenant, client, device.AssetID, "DELETED")
		if _, err := companion.Once(t.Context()); !errors.Is(err, agent.ErrEnded) {
			t.Errorf("the companion of a device that ended: %v", err)
		}
		if companion.Device.State().Wiped {
			t.Error("a companion wiped its device")
		}
		if err := enroll(early, protocol.Companion); err == nil {
			t.Error("a companion joined a device that had ended")
		}
	})
}

func sortedKeys(members map[string]any) []string { return slices.Sorted(maps.Keys(members)) }
