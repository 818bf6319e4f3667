package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/usb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// cable is `muster usb` with an adb program of its own.
type cable struct {
	*servertest.Env
	tenant  *servertest.Tenant
	replica *servertest.Replica
	policy  policy.Policy // VR-only
	adb     *adbtest.ADB
}

func newCable(t *testing.T, devices ...*servertest.Headset) *cable {
	t.Helper()
	env := servertest.New(t)
	all := make([]*adbtest.Device, len(devices))
	for i, d := range devices {
		all[i] = d.Device
	}
	c := &cable{Env: env, tenant: env.NewTenant("acme"), replica: env.Start(), adb: adbtest.New(t, all...)}
	made, err := env.Admin().Policies.Create(t.Context(), policy.New{CompanyID: c.tenant.Company.ID, CompanySlug: "acme",
		Name: "Headsets", Type: policy.Agent,
		VROnly: true, Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}}},
		policy.Author{Kind: string(access.System), ID: "test", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	c.policy = made
	return c
}

// usb runs the command and returns its result for each device.
func (c *cable) usb(args ...string) (map[string]usb.Result, error) {
	c.TB.Helper()
	out, err := c.run(append(args, "-o", "json")...)
	var printed struct{ Devices []usb.Result }
	if decoded := json.Unmarshal([]byte(out), &printed); decoded != nil {
		c.TB.Fatalf("muster usb printed %q: %v (%v)", out, decoded, err)
	}
	results := map[string]usb.Result{}
	for _, r := range printed.Devices {
		results[r.Serial] = r
	}
	return results, err
}

func (c *cable) run(args ...string) (string, error) {
	c.TB.Helper()
	parser, err := kong.New(&cli.Commands{}, kong.Exit(func(int) {}))
	if err != nil {
		c.TB.Fatal(err)
	}
	chosen, err := parser.Parse(append([]string{"usb", "--policy", c.policy.PathName(), "--database", c.Database,
		"--key-file", c.Config().KeyFile,
		"--server", c.replica.PublicURL(), "--wait", "30s"}, args...))
	if err != nil {
		c.TB.Fatal(err)
	}
	var out bytes.Buffer
	err = chosen.Run(&cli.Env{Context: c.TB.Context(), Out: &out, ADB: c.adb.Program, Now: c.Now,
		Open: service.OpenAdmin(c.Now, c.Config().KeyFile)})
	return out.String(), err
}

// serves waits until the device has its policy, and carries out a command.
func (c *cable) serves(t *testing.T, r usb.Result) (assetID string) {
	t.Helper()
	id, client := filepath.Base(r.Asset), c.tenant.Client(c.replica, access.All)
	servertest.AwaitStatus(t, c.tenant, client, id, "ACTIVE")
	client.Post("/assets/"+id+"/commands/message", map[string]string{"title": "t", "body": "b"}).Want(t, 200)
	c.tenant.Settled(client, id, "SUCCESS")
	return id
}

// noTraces: what must not be seen on a device is not there.
func noTraces(t *testing.T, h *servertest.Headset) {
	t.Helper()
	for _, argv := range h.Calls() {
		if strings.Contains(strings.Join(argv, " "), "met_") {
			t.Errorf("the token is an argument: %q", argv)
		}
	}
	for _, file := range []string{"data/muster-inbox/bundle.json", "data/local/tmp/muster/bundle.json"} {
		if _, err := os.Lstat(filepath.Join(h.Dir, file)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", file, err)
		}
	}
}

// A headset whose system has the agent is enrolled by handing it the bundle; it
// stays enrolled after a restart, gives itself back when it is told to, and can be
// enrolled again.
func TestUSB_HeadsetWithAgentInItsSystem(t *testing.T) {
	t.Parallel()
	headset := servertest.NewHeadset(t, "VR-1", true)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent said:\n%s", headset.Log())
		}
	})
	c := newCable(t, headset)
	results, err := c.usb()
	got := results["VR-1"]
	want := got
	want.Outcome, want.Way, want.Model, want.AndroidVersion = usb.Enrolled, usb.System, "Sim 1", "14"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	id := c.serves(t, got)
	codes, err := c.DB().Codes(t.Context(), c.tenant.Company.ID, nil, 5)
	if err != nil || len(codes) == 0 || !strings.HasPrefix(codes[0].Maker.Name, "command line") {
		t.Errorf("the code's maker: %+v, %v", codes, err)
	}
	if s := headset.State(); !s.Platform.Restrictions["no_camera"] {
		t.Errorf("the policy is not in force: %+v", s.Platform)
	}
	noTraces(t, headset)
	if results, err = c.usb(); err != nil || results["VR-1"].Outcome != usb.AlreadyEnrolled {
		t.Errorf("a second time: %+v, %v", results, err)
	}
	c.tenant.Client(c.replica, access.All).Post("/assets/"+id+"/commands/relinquish-ownership", nil).Want(t, 200)
	c.Eventually("the headset can be enrolled again", func() error {
		if p := headset.Properties(); p["debug.muster.agent"] != "ready" || p["persist.muster.enrolled"] != "0" ||
			len(headset.Agents()) > 0 {
			return fmt.Errorf("%v, agents %v", p, headset.Agents())
		}
		return nil
	})
	if results, err = c.usb("--serial", "VR-1"); err != nil || results["VR-1"].Outcome != usb.Enrolled {
		t.Fatalf("enrolled again: %+v, %v", results, err)
	}
	c.serves(t, results["VR-1"])
	noTraces(t, headset)
	if strings.Contains(c.adb.Calls(), "met_") {
		t.Error("a token is an argument of adb")
	}
	if log := string(c.Log.Text()); strings.Contains(log, "met_") {
		t.Error("a token is in the service's log")
	}
}

// Into a headset without the agent one is brought along. It runs under the shell's
// user, until the device restarts; then it can be started again.
func TestUSB_HeadsetWithoutAgent(t *testing.T) {
	t.Parallel()
	headset := servertest.NewHeadset(t, "VR-2", false)
	c := newCable(t, headset)
	results, err := c.usb("--agent", headset.Program)
	got := results["VR-2"]
	if err != nil || got.Outcome != usb.Enrolled || got.Way != usb.Lab || !strings.Contains(got.Detail, "ends when the device restarts") {
		t.Fatalf("%+v, %v", results, err)
	}
	id := c.serves(t, got)
	c.tenant.Client(c.replica, access.All).Post("/assets/"+id+"/commands/wipe", nil).Want(t, 409)
	noTraces(t, headset)
	if info, err := os.Stat(filepath.Join(headset.Dir, "data/local/tmp/muster")); err != nil || info.Mode().Perm() != 0o700 ||
		info.Sys().(*syscall.Stat_t).Uid != 2000 {
		t.Errorf("the agent's directory: %v, %v", info, err)
	}
	agents := headset.Agents()
	if len(agents) != 1 {
		t.Fatalf("agents: %v", agents)
	}
	if results, err = c.usb(); err != nil || results["VR-2"].Outcome != usb.AlreadyEnrolled || !slices.Equal(headset.Agents(), agents) {
		t.Errorf("a second time: %+v, %v; agents %v, before %v", results, err, headset.Agents(), agents)
	}
	if err := syscall.Kill(agents[0], syscall.SIGKILL); err != nil { // as a restart does
		t.Fatal(err)
	}
	c.Eventually("the agent is gone", func() error {
		if left := headset.Agents(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	if results, err = c.usb(); err != nil || results["VR-2"].Outcome != usb.AlreadyEnrolled || len(headset.Agents()) != 1 {
		t.Fatalf("after a restart: %+v, %v; agents %v", results, err, headset.Agents())
	}
	c.serves(t, got)
}

// What goes wrong is reported, in one exit code and a line for each device, and leaves
// nothing behind on the device.
func TestUSB_Failures(t *testing.T) {
	t.Parallel()
	cut, other := servertest.NewHeadset(t, "VR-3", false), servertest.NewHeadset(t, "VR-4", false)
	other.Device.State = "unauthorized"
	c := newCable(t, cut, other)
	results, err := c.usb("--agent", cut.Program, "--server", "http://127.0.0.1:9", "--serial", "VR-3", "--serial",
		"VR-4", "--serial", "VR-5")
	if err == nil || results["VR-3"].Outcome != usb.Failed || results["VR-4"].Outcome != usb.Unauthorized ||
		results["VR-5"].Outcome != usb.Absent {
		t.Errorf("%+v, %v", results, err)
	}
	if detail := results["VR-3"].Detail; !strings.Contains(detail, "cannot reach the service") {
		t.Errorf("of the device that cannot reach the service it says %q", detail)
	}
	noTraces(t, cut)
	if left, _ := filepath.Glob(filepath.Join(cut.Dir, "data/local/tmp/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	out, err := c.run("--serial", "VR-3")
	if err == nil || !strings.Contains(out, "VR-3 (Simulated Sim 1, Android 14): unsupported; there is no agent in its system, and none "+
		"for its processor") ||
		!strings.HasSuffix(out, "0 enrolled, 0 were enrolled already, 1 failed.\n") {
		t.Errorf("without an agent: %q, %v", out, err)
	}
	c.policy = c.tenant.Policy // of the platform
	if _, err := c.run(); err == nil || !strings.Contains(cli.Message(err), "QR code") {
		t.Errorf("for a platform policy: %v", err)
	}
}
