package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// kiosk is an AGENT policy with a setting of every kind.
func kiosk(env *servertest.Env, tenant *servertest.Tenant, name string, changes ...policy.Change) policy.Policy {
	env.TB.Helper()
	made, err := env.Admin().Policies.Create(env.TB.Context(), policy.New{CompanyID: tenant.Company.ID, CompanySlug: tenant.Company.Slug,
		Name: name, Type: policy.Agent, Changes: changes}, policy.Author{Kind: string(access.System), ID: "test", Name: "test"})
	if err != nil {
		env.TB.Fatal(err)
	}
	return made
}

// enrollAndroid enrolls the real agent with the token of a QR code.
func enrollAndroid(t *testing.T, tenant *servertest.Tenant, replica *servertest.Replica, android *servertest.Android,
	p policy.Policy) servertest.Device {
	t.Helper()
	var code struct {
		Extras map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	text := tenant.Client(replica, access.All).QRCode(p, map[string]any{})
	if err := json.Unmarshal([]byte(text), &code); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var token string
	for key, value := range code.Extras {
		if strings.HasSuffix(key, "ENROLLMENT_TOKEN") {
			token = value
		}
	}
	android.Do("enroll", "--server", replica.PublicURL(), "--token", token)
	found, _, err := tenant.DB().Assets(t.Context(), asset.Query{Filter: asset.Filter{CompanyID: tenant.Company.ID, PolicyID: p.ID},
		Order: asset.BySyncedAt, Page: operation.PageRequest{Size: 10}})
	if err != nil || len(found) != 1 {
		t.Fatalf("enrolled: %v, %v", found, err)
	}
	return servertest.Device{AssetID: found[0].ID}
}

// The real agent, static, in a root directory with Android's tools and without a
// shell: policy, every command, and at the end unenrolling. Text of the service
// arrives as it was written, and as nothing else.
func TestAndroid_EveryCommand(t *testing.T) {
	t.Parallel()
	android := servertest.NewAndroid(t, 1000, simulated.Default("SN-1"))
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	first := kiosk(env, tenant, "Kiosk", policy.Change{Setting: "CAMERA", Value: "BLOCK"},
		policy.Change{Setting: "LOCATION_MODE", Value: "ENFORCED"},
		policy.Change{Setting: "REPORT_MEMORY_INFO", Value: "ENABLED"}, policy.Change{Setting: "SCREEN_CAPTURE", Value: "BLOCK"})
	second := kiosk(env, tenant, "Other", policy.Change{Setting: "SMS", Value: "BLOCK"})
	device := enrollAndroid(t, tenant, replica, android, first)

	ctx, cancel := context.WithCancel(t.Context())
	running, output := android.Agent(ctx, "run")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- running.Wait() }()
	defer func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("the agent said:\n%s", output)
		}
	}()
	client := tenant.Client(replica, access.All)
	servertest.AwaitStatus(t, tenant, client, device.AssetID, "ACTIVE")
	if s := android.State(); !s.Platform.Restrictions["no_camera"] || !s.Platform.Restrictions["no_config_location"] ||
		s.Platform.Restrictions["no_sms"] {
		t.Errorf("in force: %v", s.Platform.Restrictions)
	}
	const title, body = `-t "$(reboot)"`, "`reboot`; am broadcast\n' || reboot -p #"
	for _, step := range []struct {
		path    string
		body    any
		status  string // at the end
		reached func(simulated.State) bool
	}{
		{"message", map[string]string{"title": title, "body": body}, "SUCCESS", nil},
		{"launch-app", map[string]string{"packageName": "com.example.app"}, "SUCCESS", func(s simulated.State) bool {
			return s.OpenApp == "com.example.app"
		}},
		{"launch-app", map[string]string{"packageName": "com.example.absent"}, "ERROR", nil},
		{"status-report", nil, "SUCCESS", func(simulated.State) bool {
			report := managed(t, client, device).StatusReport
			return report["batteryLevel"] == 80.0 && report["memoryInfo"] != nil && report["softwareInfo"] == nil &&
				report["policyCompliant"] == true
		}},
		{"location-update", nil, "SUCCESS", nil},
		{"sync-policy", nil, "SUCCESS", nil},
		{"reboot", nil, "SUCCESS", func(s simulated.State) bool { return s.Boot == 2 && !s.Off }},
		{"shutdown", nil, "SUCCESS", func(s simulated.State) bool { return s.Boot == 3 && s.Off }},
		{"change-policy", map[string]string{"policyId": second.PathName()}, "SUCCESS", func(s simulated.State) bool {
			return s.Platform.Restrictions["no_sms"] && !s.Platform.Restrictions["no_camera"] &&
				!s.Platform.Restrictions["no_config_location"]
		}},
	} {
		tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/"+step.path, step.body).Want(t, 200)
		tenant.Settled(client, device.AssetID, step.status)
		if s := android.State(); step.reached != nil && !step.reached(s) {
			t.Errorf("after %s the device is %+v", step.path, s)
		}
	}
	env.Eventually("the message is shown", func() error {
		if shown := android.State().Shown; len(shown) != 1 || shown[0].Title != title || shown[0].Body != body {
			return fmt.Errorf("shown: %q", shown)
		}
		return nil
	})
	if current := managed(t, client, device); current.Location == nil || current.StatusReport["memoryInfo"] != nil ||
		current.StatusReport["policyCompliant"] != true {
		t.Errorf("under the second policy the device reported %+v", current)
	}
	onlyTools(t, android)
	tenant.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/relinquish-ownership", nil).Want(t, 200)
	servertest.AwaitStatus(t, tenant, client, device.AssetID, "DELETED")
	env.Eventually("the device is free", func() error {
		if s := android.State(); !s.Released || len(s.Platform.Restrictions) != 0 {
			return fmt.Errorf("%v", s.Platform.Restrictions)
		}
		return nil
	})
}

// onlyTools: the service's text was an argument of one tool, whole.
func onlyTools(t *testing.T, android *servertest.Android) {
	t.Helper()
	for _, argv := range android.Calls() {
		hostile := slices.IndexFunc(argv, func(word string) bool {
			return strings.Contains(word, "reboot") && strings.ContainsAny(word, "`$")
		})
		if hostile >= 0 && (argv[1] != "notification" || len(argv) != 9) {
			t.Errorf("the service's text reached %q", argv)
		}
		if strings.HasSuffix(argv[0], "/sh") || slices.Contains(argv, "-c") && !slices.Contains(argv, "resolve-activity") {
			t.Errorf("something went through a shell: %q", argv)
		}
	}
}

// A wipe erases a device of the system's; an agent that was started over USB
// cannot, and the service says so at once.
func TestAndroid_Wipe(t *testing.T) {
	t.Parallel()
	for uid, want := range map[uint32]int{1000: 200, 2000: 409} {
		t.Run(map[uint32]string{1000: "system", 2000: "over USB"}[uid], func(t *testing.T) {
			t.Parallel()
			android := servertest.NewAndroid(t, uid, simulated.Default("SN-1"))
			env := servertest.New(t)
			tenant, replica := env.NewTenant("acme"), env.Start()
			device := enrollAndroid(t, tenant, replica, android,
				kiosk(env, tenant, "Kiosk", policy.Change{Setting: "FACTORY_RESET", Value: "BLOCK"}))
			android.Do("run", "--once")
			client := tenant.Client(replica, access.All)
			client.Post("/assets/"+device.AssetID+"/commands/wipe", nil).Want(t, want)
			if want != 200 {
				return
			}
			android.Do("run", "--once")
			if !android.State().Wiped {
				t.Error("the device is not wiped")
			}
			tenant.Settled(client, device.AssetID, "IN_PROGRESS") // only silence proves it
			env.FallSilent()
			servertest.AwaitStatus(t, tenant, client, device.AssetID, "DELETED")
			tenant.Settled(client, device.AssetID, "SUCCESS")
		})
	}
}
