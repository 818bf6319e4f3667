package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// agentCommand is one command as contract 4.2 has it
// for a device with our own agent.
type agentCommand struct {
	path    string
	body    any
	command command.Type
	status  string // in the answer
	ends    string // in the history
	gone    bool   // the device ends with it
	effect  func(simulated.State) bool
}

func agentCommands(other string) []agentCommand {
	always := func(simulated.State) bool { return true }
	return []agentCommand{
		{"message", map[string]string{"title": "Hi", "body": "$(reboot); rm -rf /"}, command.NotificationMessage,
			"SUCCESS", "SUCCESS", false,
			func(s simulated.State) bool { return len(s.Shown) == 1 && s.Shown[0].Body == "$(reboot); rm -rf /" }},
		{"status-report", nil, command.StatusReport, "IN_PROGRESS", "SUCCESS", false, always},
		{"location-update", nil, command.LocationUpdate, "IN_PROGRESS", "SUCCESS", false, always},
		{"sync-policy", nil, command.SyncPolicy, "IN_PROGRESS", "SUCCESS", false, always},
		{"upload-log", nil, command.UploadLog, "IN_PROGRESS", "SUCCESS", false, always},
		{"reboot", nil, command.Reboot, "IN_PROGRESS", "SUCCESS", false, func(s simulated.State) bool { return s.Boot == 2 }},
		{"shutdown", nil, command.Shutdown, "IN_PROGRESS", "SUCCESS", false, func(s simulated.State) bool { return s.Boot == 3 }},
		{"launch-app", map[string]string{"packageName": "com.example.app"}, command.LaunchApp, "IN_PROGRESS", "SUCCESS", false,
			func(s simulated.State) bool { return s.OpenApp == "com.example.app" }},
		{"launch-app", map[string]string{"packageName": "com.example.absent"}, command.LaunchApp, "IN_PROGRESS", "ERROR", false, always},
		{"change-policy", map[string]string{"policyId": other}, command.ChangePolicy, "IN_PROGRESS", "SUCCESS", false,
			func(s simulated.State) bool { return s.Settings["SMS"] == "BLOCK" && s.Settings["CAMERA"] == "" }},
		{"wipe", nil, command.WipeCompanyData, "IN_PROGRESS", "SUCCESS", true, func(s simulated.State) bool { return s.Wiped }},
		{"relinquish-ownership", nil, command.RelinquishOwnership, "IN_PROGRESS", "SUCCESS", true,
			func(s simulated.State) bool { return s.Released && len(s.Settings) == 0 }},
	}
}

// The main job end to end, on both engines: an AGENT policy made by command
// line, a QR code read by an independent reader, the real agent, every command
// over REST with its exact answer and its exact end.
func TestAgentCommand_EveryType(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		other := env.AgentPolicy(tenant.Company, "Other", "SMS=BLOCK").PathName()
		phone := tenant.AgentDevice(replica)
		phone.MustCheckIn()
		if got := phone.Device.State().Settings["CAMERA"]; got != "BLOCK" {
			t.Fatalf("the policy is not applied: CAMERA is %q", got)
		}
		for _, c := range agentCommands(other) {
			if c.command == command.RelinquishOwnership { // the device before was wiped
				phone = tenant.AgentDevice(replica)
				phone.MustCheckIn()
			}
			sendToPhone(t, tenant, replica, phone, c)
		}
	})
}

func sendToPhone(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, phone *servertest.AgentDevice, c agentCommand) {
	t.Helper()
	client := tenant.Client(replica, access.All)
	result := client.Post("/assets/"+phone.AssetID+"/commands/"+c.path, c.body).Want(t, 200).Members(t)
	if got := strings.Join(slices.Sorted(maps.Keys(result)), " "); got != "assetId createdAt status type" {
		t.Errorf("%s answers with %s", c.path, got)
	}
	if result["assetId"] != "enterprises/acme/assets/"+phone.AssetID || result["type"] != string(c.command) ||
		result["status"] != c.status {
		t.Errorf("%s answers %v", c.path, result)
	}
	if first := client.History(phone.AssetID)[0]; first.Status != c.status {
		t.Errorf("%s: before the device had it the history says %+v", c.path, first)
	}
	var last servertest.Entry
	phone.CheckInUntil(c.path, func() error {
		if last = client.History(phone.AssetID)[0]; last.Status != c.ends || last.Type != string(c.command) ||
			!c.effect(phone.Device.State()) {
			return fmt.Errorf("the history says %+v, the device is %+v", last, phone.Device.State())
		}
		return nil
	})
	if c.status != "SUCCESS" && last.FeedbackAt == nil {
		t.Errorf("%s: the device spoke, and feedbackAt is null", c.path)
	}
	servertest.FiveMembers(t, client, phone.AssetID)
	if !c.gone {
		return
	}
	var ended struct {
		Status        string
		ManagedDevice any
	}
	client.Get("/assets/"+phone.AssetID).Want(t, 200).JSON(t, &ended)
	if ended.Status != "DELETED" || ended.ManagedDevice != nil {
		t.Errorf("after %s the asset is %+v", c.path, ended)
	}
	client.Post("/assets/"+phone.AssetID+"/commands/message", spec.CommandOf("message").Request()).Want(t, 409)
	if _, err := agent.New(phone.Options); !errors.Is(err, agent.ErrNotEnrolled) {
		t.Errorf("after %s the agent is still enrolled: %v", c.path, err)
	}
}

// A report and a location can be read from the asset once the command reads
// SUCCESS (contract 2.1).
func TestAgentCommand_ReportsAreReadable(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "REPORT_SOFTWARE_INFO=ENABLED"), env.Start()
	phone := tenant.AgentDevice(replica)
	client := tenant.Client(replica, access.All)
	for _, path := range []string{"status-report", "location-update"} {
		client.Post("/assets/"+phone.AssetID+"/commands/"+path, nil).Want(t, 200)
	}
	phone.MustCheckIn()
	tenant.Settled(client, phone.AssetID, "SUCCESS")
	var a struct {
		Status        string
		ManagedDevice struct {
			ManagementType, Ownership, PolicyID, PolicyName string
			PolicyVersionApplied                            int
			PushReachable                                   bool
			StatusReport                                    map[string]any
			Location                                        struct{ Latitude, Longitude, AccuracyMeters float64 }
		}
	}
	client.Get("/assets/"+phone.AssetID).Want(t, 200).JSON(t, &a)
	d := a.ManagedDevice
	want := d
	want.ManagementType, want.Ownership, want.PolicyID, want.PolicyName = "AGENT", "COMPANY_OWNED", tenant.Policy.PathName(), "Kiosk"
	want.PolicyVersionApplied, want.PushReachable = 1, true
	if diff := cmp.Diff(want, d); diff != "" || a.Status != "ACTIVE" {
		t.Errorf("the asset is %s (-want +got):\n%s", a.Status, diff)
	}
	if d.StatusReport["batteryLevel"] != 80.0 || d.StatusReport["softwareInfo"] == nil || d.StatusReport["networkInfo"] != nil ||
		d.StatusReport["reportedAt"] == nil {
		t.Errorf("the status report is %v", d.StatusReport)
	}
	if d.Location.Latitude != 52.5163 || d.Location.AccuracyMeters != 12 {
		t.Errorf("the location is %+v", d.Location)
	}
}

// What only the platform can do, and what this device says that it cannot, is
// 409 at once (contract 4.2, 7.1).
func TestAgentCommand_Unsupported(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme"), env.Start()
	system := tenant.AgentDevice(replica)
	lab2 := tenant.AgentDevice(replica, func(s *simulated.State) { s.Form = simulated.Shell })
	owner := tenant.AgentDevice(replica, func(s *simulated.State) { s.Form = simulated.Owner })
	for phone, paths := range map[*servertest.AgentDevice][]string{
		system: spec.Unsupported(spec.Device{Agent: true, CompanyOwned: true, FullyManaged: true, Push: true}),
		lab2:   {"wipe"},
		owner:  {"shutdown"},
	} {
		phone.MustCheckIn()
		client := tenant.Client(replica, access.All)
		for _, path := range paths {
			got := client.Post("/assets/"+phone.AssetID+"/commands/"+path, spec.CommandOf(path).Request())
			want := spec.Answers[spec.CommandOf(path).Family]["unsupported"]
			if members := strings.Join(slices.Sorted(maps.Keys(got.Members(t))), " "); got.Status != want.Status ||
				members != servertest.Sorted(want.Members) {
				t.Errorf("%s: %d with %s: %s", path, got.Status, members, got.Body)
			}
		}
		for _, entry := range client.History(phone.AssetID) {
			if entry.Status != "ERROR" {
				t.Errorf("a refused command is in the history as %+v", entry)
			}
		}
		if err := phone.CheckIn(); err != nil || phone.Device.State().Wiped || phone.Device.State().Boot != 1 {
			t.Errorf("a refused command reached its device: %v %+v", err, phone.Device.State())
		}
	}
	client := tenant.Client(replica, access.All)
	for name, id := range map[string]string{"the same": tenant.Policy.PathName(),
		"one of the platform": env.Policy(tenant.Company, "Phones", "PLATFORM").PathName()} {
		if got := client.Post("/assets/"+system.AssetID+"/commands/change-policy", map[string]string{"policyId": id}); got.Status != 409 {
			t.Errorf("a change to %s policy: %d %s", name, got.Status, got.Body)
		}
	}
}

// VR-only policies are not provisioned by QR code (contract 4.4), and AGENT
// policies take part in no proposal (contract 4.3).
func TestAgentPolicy_Refusals(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	var headsets struct{ PathName string }
	env.CLI(&headsets, "policy", "create", "--company", "acme", "--name", "Headsets", "--type", "AGENT", "--vr-only")
	client := tenant.Client(replica, access.All)
	for path, body := range map[string]any{
		"/policies/" + headsets.PathName + "/provisioning-qr-codes": map[string]any{},
		"/policies/" + tenant.Policy.ID +
			"/changes": map[string]any{"changes": []map[string]string{{"setting": "CAMERA", "value": "ALLOW"}}},
		"/policies/" + tenant.Policy.ID + "/rollbacks": map[string]any{"revision": 1},
	} {
		t.Run(path, func(t *testing.T) {
			var problem struct {
				Code      string
				Retryable *bool
			}
			client.Post(path, body).Want(t, 409).JSON(t, &problem)
			if problem.Code != "unsupported" || problem.Retryable == nil || *problem.Retryable {
				t.Errorf("%s: %+v", path, problem)
			}
		})
	}
	var settings struct {
		Editable bool
		Settings []struct{ ID, Value string }
	}
	client.Get("/policies/"+tenant.Policy.ID+"/settings").Want(t, 200).JSON(t, &settings)
	if settings.Editable || len(settings.Settings) != len(policy.Catalog()) {
		t.Errorf("the settings of an AGENT policy: %+v", settings)
	}
}

// A command that its device did not fetch in time ends ERROR and is never
// carried out (contract 3.3).
func TestAgentCommand_Expires(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme"), env.Start()
		phone := tenant.AgentDevice(replica)
		phone.MustCheckIn()
		client := tenant.Client(replica, access.All)
		for _, path := range []string{"reboot", "launch-app", "location-update"} {
			client.Post("/assets/"+phone.AssetID+"/commands/"+path, spec.CommandOf(path).Request()).Want(t, 200)
		}
		env.Advance(16 * time.Minute)
		env.Eventually("the commands expire", func() error {
			for _, entry := range client.History(phone.AssetID) {
				if entry.Status != "ERROR" || entry.Outcome == nil || !strings.Contains(*entry.Outcome, "expired") ||
					entry.FeedbackAt != nil {
					return fmt.Errorf("the history says %+v", entry)
				}
			}
			return nil
		})
		phone.MustCheckIn()
		if s := phone.Device.State(); s.Boot != 1 || s.OpenApp != "" {
			t.Errorf("an expired command was carried out: %+v", s)
		}
	})
}

// A wipe waits for its device as long as it takes, and nothing else is done
// until then (platform of a stolen device).
func TestAgentCommand_WipeWaitsForTheDevice(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme"), env.Start()
		phone := tenant.AgentDevice(replica)
		phone.MustCheckIn()
		client := tenant.Client(replica, access.All)
		client.Post("/assets/"+phone.AssetID+"/commands/wipe", nil).Want(t, 200)
		client.Post("/assets/"+phone.AssetID+"/commands/launch-app", spec.CommandOf("launch-app").Request())
		env.Advance(50 * 24 * time.Hour)
		replica.Stop()
		replica = env.Start()
		phone.Reach(replica)
		if wipe := client.As(replica).History(phone.AssetID); wipe[len(wipe)-1].Status != "IN_PROGRESS" {
			t.Errorf("after weeks the wipe is %+v", wipe)
		}
		if err := phone.CheckIn(); !errors.Is(err, agent.ErrEnded) {
			t.Errorf("the device came back and ended with %v", err)
		}
		if s := phone.Device.State(); !s.Wiped || s.OpenApp != "" {
			t.Errorf("the device is %+v", s)
		}
		env.FallSilent()
		history := client.As(replica).History(phone.AssetID)
		if wipe := history[len(history)-1]; wipe.Type != "WIPE_COMPANY_DATA" || wipe.Status != "SUCCESS" {
			t.Errorf("the wipe is %+v", wipe)
		}
	})
}

// A policy that is changed, and a device that is moved, converge; the change of
// policy succeeds only when the device reports the policy (agent protocol).
func TestAgentPolicy_DevicesConverge(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		other := env.AgentPolicy(tenant.Company, "Other", "SMS=BLOCK")
		phone := tenant.AgentDevice(replica)
		phone.MustCheckIn()
		client := tenant.Client(replica, access.All)
		var saved struct{ Version int }
		env.CLI(&saved, "policy", "set", tenant.Policy.PathName(), "--company", "acme", "--set", "CAMERA=ALLOW", "--set", "ADD_USER=BLOCK")
		phone.MustCheckIn()
		var a struct {
			Status        string
			ManagedDevice struct {
				PolicyID             string
				PolicyVersionApplied int
			}
		}
		client.Get("/assets/"+phone.AssetID).Want(t, 200).JSON(t, &a)
		if s := phone.Device.State().Settings; saved.Version != 2 || a.ManagedDevice.PolicyVersionApplied != 2 || s["CAMERA"] != "ALLOW" ||
			s["ADD_USER"] != "BLOCK" {
			t.Errorf("version %d was saved; the asset is %+v, the device %v", saved.Version, a, s)
		}
		phone.Reach(nil)
		client.Post("/assets/"+phone.AssetID+"/commands/change-policy", map[string]string{"policyId": other.PathName()}).Want(t, 200)
		env.Advance(7 * 24 * time.Hour)
		client.Get("/assets/"+phone.AssetID).Want(t, 200).JSON(t, &a)
		if entry := client.History(phone.AssetID)[0]; entry.Status != "IN_PROGRESS" || a.ManagedDevice.PolicyID != other.PathName() ||
			a.Status != "SYNCHRONIZING" {
			t.Errorf("before the device knows: %+v, %+v", entry, a)
		}
		phone.Reach(replica)
		phone.MustCheckIn()
		tenant.Settled(client, phone.AssetID, "SUCCESS")
		client.Get("/assets/"+phone.AssetID).Want(t, 200).JSON(t, &a)
		if s := phone.Device.State().Settings; s["SMS"] != "BLOCK" || s["CAMERA"] != "" || s["ADD_USER"] != "" || a.Status != "ACTIVE" {
			t.Errorf("after the move: %+v, %v", a, s)
		}
	})
}

// A command that is posted to one replica wakes the agent that listens at the
// other, over the database's own notifications.
func TestAgentWake_CrossesReplicas(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	tenant, here, there := env.NewAgentSite("acme"), env.Start(), env.Start()
	phone := tenant.AgentDevice(there)
	stop := phone.Run()
	client := tenant.Client(here, access.All)
	servertest.AwaitStatus(t, tenant, client, phone.AssetID, "ACTIVE")
	env.Eventually("the stream is open", func() error {
		if _, text := servertest.Fetch(t, there.PublicURL()+"/metrics"); metric(t, text, "muster_agent_streams") != 1 {
			return errors.New("it is not")
		}
		return nil
	})
	start := time.Now()
	client.Post("/assets/"+phone.AssetID+"/commands/launch-app", spec.CommandOf("launch-app").Request()).Want(t, 200)
	tenant.Settled(client, phone.AssetID, "SUCCESS")
	// The sweep comes after five seconds at the earliest, the next check-in after minutes.
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %s", took)
	} else {
		t.Logf("POST to SUCCESS over two replicas: %s", took)
	}
	if err := stop(); err == nil {
		t.Error("the agent ended by itself")
	}
}
