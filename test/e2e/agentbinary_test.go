package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// The real program, as a device's init would start it, enrolls with what a QR
// code says, is killed, started again, and carries out commands (operator
// "Devices in tests").
func TestAgentProgram_SurvivesKills(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	program := buildAgent(t)
	client := tenant.Client(replica, access.All)
	token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	state := t.TempDir()
	agent := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append(args, "--state", state)...).CombinedOutput()
		if err != nil {
			t.Fatalf("muster-agent %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := agent("enroll", "--server", server, "--token", token); enrolledAs(out) == "" {
		t.Errorf("enroll printed %q", out)
	}
	agent("run", "--once", "--driver", "simulated")
	if out := agent("status"); !strings.Contains(out, "version 1") {
		t.Errorf("status printed %q", out)
	}
	var list struct {
		Content []struct{ PathName, Status string }
	}
	client.Get("/assets").Want(t, 200).JSON(t, &list)
	if len(list.Content) != 1 || list.Content[0].Status != "ACTIVE" {
		t.Fatalf("the inventory is %+v", list)
	}
	id := filepath.Base(list.Content[0].PathName)

	running := startAgent(t, program, state)
	for _, path := range []string{"message", "reboot", "launch-app", "status-report", "location-update", "sync-policy", "upload-log"} {
		client.Post("/assets/"+id+"/commands/"+path, spec.CommandOf(path).Request()).Want(t, 200)
		tenant.Settled(client, id, "SUCCESS")
	}
	var logs struct{ Logs []struct{ LogID string } }
	client.Get("/assets/"+id+"/logs").Want(t, 200).JSON(t, &logs)
	if len(logs.Logs) != 1 {
		t.Fatalf("the logs are %+v", logs)
	}
	text := client.Get("/assets/"+id+"/logs/"+logs.Logs[0].LogID).Want(t, 200)
	if !strings.Contains(string(text.Body), "agent started") || !strings.Contains(string(text.Body), "type=REBOOT") {
		t.Errorf("the agent logged %q", text.Body)
	}
	_ = running.Process.Kill()
	_ = running.Wait() // says that it was killed
	client.Post("/assets/"+id+"/commands/shutdown", nil).Want(t, 200)
	running = startAgent(t, program, state)
	tenant.Settled(client, id, "SUCCESS")
	if err := running.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(); err != nil {
		t.Errorf("after SIGTERM the agent ended with %v", err)
	}

	running = startAgent(t, program, state)
	client.Post("/assets/"+id+"/commands/wipe", nil).Want(t, 200)
	if err := running.Wait(); err != nil {
		t.Errorf("after the wipe the agent ended with %v", err)
	}
	tenant.FallSilent()
	tenant.Settled(client, id, "SUCCESS")
	servertest.AwaitStatus(t, tenant, client, id, "DELETED")
	if _, err := os.Stat(filepath.Join(state, "identity.json")); !os.IsNotExist(err) {
		t.Errorf("the identity is still there: %v", err)
	}
	var wiped struct{ Wiped bool }
	readJSON(t, filepath.Join(state, "device.json"), &wiped)
	if !wiped.Wiped {
		t.Error("the device is not wiped")
	}
}

// Simulated devices without a given serial number are different devices: the
// second does not take over the first one's asset. Each keeps its number when it
// enrolls again.
func TestAgentProgram_SimulatedDevicesDiffer(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	client, program := tenant.Client(replica, access.All), buildAgent(t)
	agent := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Fatalf("muster-agent %v: %v\n%s", args, err, out)
		}
	}
	enroll := func(state string) {
		t.Helper()
		token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
		agent("enroll", "--server", server, "--token", token, "--state", state)
		agent("run", "--once", "--state", state)
	}
	first, second := t.TempDir(), t.TempDir()
	enroll(first)
	enroll(second)
	var count struct{ Count int }
	client.Get("/assets/count?status=ACTIVE").Want(t, 200).JSON(t, &count)
	if count.Count != 2 {
		t.Errorf("two devices enrolled, and the inventory has %d", count.Count)
	}
	agent("unenroll", "--state", first)
	enroll(first)
	client.Get("/assets/count").Want(t, 200).JSON(t, &count)
	if count.Count != 2 {
		t.Errorf("after a device enrolled again the inventory has %d assets", count.Count)
	}
}

// Beside the agent that runs, the other commands change nothing in its state
// directory: status reads, and what a command would change the agent does itself.
func TestTheAgentProgram_OneWriter(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	client, program, state := tenant.Client(replica, access.All), buildAgent(t), t.TempDir()
	token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	agent := func(fails bool, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append(args, "--state", state)...).CombinedOutput()
		if (err != nil) != fails {
			t.Fatalf("muster-agent %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	id := enrolledAs(agent(false, "enroll", "--server", server, "--token", token))
	running := startAgent(t, program, state)
	known := func() agentdevice.Device {
		d, err := tenant.DB().AgentDevice(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := known()
	servertest.AwaitStatus(t, tenant, client, before.AssetID, "ACTIVE")
	journal := func() os.FileInfo {
		info, err := os.Stat(filepath.Join(state, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	kept := journal()
	if out := agent(false, "status"); !strings.Contains(out, "version 1") || !os.SameFile(kept, journal()) {
		t.Errorf("status printed %q; the journal is the same file: %v", out, os.SameFile(kept, journal()))
	}
	pid := strconv.Itoa(running.Process.Pid)
	for _, args := range [][]string{{"run", "--once"}, {"run"}} {
		if out := agent(true, args...); !strings.Contains(out, "process "+pid) {
			t.Errorf("%v printed %q", args, out)
		}
	}
	if out := agent(true, "enroll", "--server", server, "--token", token); !strings.Contains(out, "enrolled already") {
		t.Errorf("enroll printed %q", out)
	}
	if out := agent(false, "rotate"); !strings.Contains(out, "process "+pid) {
		t.Errorf("rotate printed %q", out)
	}
	env.Eventually("the device has a new key", func() error {
		if known().Key == before.Key {
			return fmt.Errorf("it is the same")
		}
		return nil
	})
	for _, path := range []string{"reboot", "launch-app"} {
		client.Post("/assets/"+before.AssetID+"/commands/"+path, spec.CommandOf(path).Request()).Want(t, 200)
		tenant.Settled(client, before.AssetID, "SUCCESS")
	}
	agent(false, "unenroll")
	if err := running.Wait(); err != nil {
		t.Errorf("after unenrolling the agent ended with %v", err)
	}
	servertest.AwaitStatus(t, tenant, client, before.AssetID, "DELETED")
}

// A managed device enrolls again: its former key says that it is the same device,
// and it stays its asset. A copy of its former identity and a code of
// another service gain nothing by that, and it is no way out of a wipe.
func TestTheAgentProgram_EnrollsAgain(t *testing.T) {
	t.Parallel()
	program := buildAgent(t)
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client, state := tenant.Client(replica, access.All), t.TempDir()
		agent := func(state string, fails bool, args ...string) string {
			t.Helper()
			out, err := exec.CommandContext(t.Context(), program, append(args, "--state", state)...).CombinedOutput()
			if (err != nil) != fails {
				t.Fatalf("muster-agent %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		enroll := func(state string, fails bool, more ...string) string {
			t.Helper()
			token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
			return agent(state, fails, append([]string{"enroll", "--server", server, "--token", token}, more...)...)
		}
		known := func(out string) agentdevice.Device {
			t.Helper()
			d, err := tenant.DB().AgentDevice(t.Context(), enrolledAs(out))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		first := known(enroll(state, false))
		agent(state, false, "run", "--once")
		former := t.TempDir()
		if err := os.CopyFS(former, os.DirFS(state)); err != nil {
			t.Fatal(err)
		}
		if out := enroll(state, true); !strings.Contains(out, "enrolled already") {
			t.Errorf("without --again: %q", out)
		}
		if out := enroll(state, true, "--again", "--command-key", "AAAA"); !strings.Contains(out, "does not know") {
			t.Errorf("with a code of another service: %q", out)
		}
		second := known(enroll(state, false, "--again"))
		if second.ID == first.ID || second.AssetID != first.AssetID || second.Epoch != first.Epoch+1 {
			t.Errorf("it was %+v and is %+v", first, second)
		}
		agent(state, false, "run", "--once")
		servertest.AwaitStatus(t, tenant, client, first.AssetID, "ACTIVE")

		if third := known(enroll(former, false, "--again")); third.AssetID == first.AssetID {
			t.Error("a superseded identity took its asset back")
		}
		agent(state, false, "run", "--once")
		servertest.AwaitStatus(t, tenant, client, first.AssetID, "ACTIVE")
		client.Post("/assets/"+first.AssetID+"/commands/wipe", nil).Want(t, 200)
		if out := enroll(state, true, "--again"); !strings.Contains(out, "erase") {
			t.Errorf("with an open wipe: %q", out)
		}
	})
}

// buildAgent builds the agent as it is shipped.
func buildAgent(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "muster-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/musterhq/muster/cmd/muster-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the agent: %v\n%s", err, out)
	}
	return program
}

func startAgent(t *testing.T, program, state string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "run", "--state", state, "--driver", "simulated")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", file, err))
	}
}

// enrolledAs is the device's id in what an agent's program says when it enrolled.
func enrolledAs(out string) string {
	_, id, _ := strings.Cut(out, "Enrolled as ")
	id, _, _ = strings.Cut(id, ".\n")
	return id
}
