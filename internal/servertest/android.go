package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/agent/shell/shelltest"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/test/needs"
)

// Android is a directory that stands for the root of an Android device, with the real
// agent in it. The simulated device plays its tools. The agent and the tools are
// processes of the device's users, which takes root.
type Android struct {
	tb  testing.TB
	Dir string
	UID uint32 // that the agent runs as
}

// NewAndroid makes one. It skips the test if the test does not run as root.
func NewAndroid(tb testing.TB, uid uint32, state simulated.State) *Android {
	tb.Helper()
	needs.Root().Of(tb)
	a := &Android{tb: tb, Dir: tb.TempDir(), UID: uid}
	need(a.tb, os.Chmod(filepath.Dir(a.Dir), 0o755)) // other users have to reach it
	for _, dir := range []string{"system/bin", "data/model", "data/muster", "proc/sys/kernel/random"} {
		need(a.tb, os.MkdirAll(filepath.Join(a.Dir, dir), 0o755))
		need(a.tb, os.Chown(filepath.Join(a.Dir, dir), int(uid), int(uid)))
	}
	a.build("cmd/muster-agent", "muster-agent")
	a.build("internal/agent/shell/shelltest/testdata/android", "toolbox")
	for _, tool := range shelltest.Names() {
		need(a.tb, os.Symlink("toolbox", filepath.Join(a.Dir, "system/bin", tool)))
	}
	model, err := json.Marshal(state)
	need(a.tb, err)
	for file, text := range map[string]string{
		"data/model/device.json":         string(model),
		"data/model/calls":               "",
		"proc/sys/kernel/random/boot_id": "boot-1\n",
		"proc/uptime":                    "97446.50 180000.00\n", // 1d3h4m6.5s
	} {
		path := filepath.Join(a.Dir, file)
		need(a.tb, os.WriteFile(path, []byte(text), 0o600))
		need(a.tb, os.Chmod(path, 0o666)) // whatever the umask is
	}
	return a
}

// build makes a program that needs no libraries.
func (a *Android) build(source, name string) {
	a.tb.Helper()
	command := exec.CommandContext(a.tb.Context(), "go", "build", "-o", filepath.Join(a.Dir, "system/bin", name),
		"github.com/musterhq/muster/"+source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		a.tb.Fatalf("cannot build %s: %v\n%s", name, err, output)
	}
}

// command is a command line of the device, run by one of its users.
func (a *Android) command(ctx context.Context, user syscall.Credential, argv ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(a.Dir, "system/bin/toolbox"), append([]string{"run"}, argv...)...)
	c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &user}
	return c
}

// State is the device as it now is.
func (a *Android) State() simulated.State {
	a.tb.Helper()
	_, s := a.snapshot()
	return s
}

// snapshot is the calls of tools so far and the device's state, while no tool runs.
func (a *Android) snapshot() (calls []byte, s simulated.State) {
	a.tb.Helper()
	file, err := os.Open(filepath.Join(a.Dir, "data/model/calls"))
	need(a.tb, err)
	defer file.Close()
	need(a.tb, syscall.Flock(int(file.Fd()), syscall.LOCK_SH))
	calls, err = io.ReadAll(file)
	need(a.tb, err)
	text, err := os.ReadFile(filepath.Join(a.Dir, "data/model/device.json"))
	need(a.tb, err)
	need(a.tb, json.Unmarshal(text, &s))
	return calls, s
}

// Calls are the tools that were started, each with its arguments.
func (a *Android) Calls() [][]string {
	a.tb.Helper()
	text, _ := a.snapshot()
	var calls [][]string
	for line := range bytes.Lines(text) {
		var argv []string
		need(a.tb, json.Unmarshal(line, &argv))
		calls = append(calls, argv)
	}
	return calls
}

// Agent prepares the agent as a process that drives the device by Android's command lines.
func (a *Android) Agent(ctx context.Context, command string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	argv := append([]string{"muster-agent", command, "--state", "/data/muster", "--driver", "shell"}, args...)
	c := a.command(ctx, syscall.Credential{Uid: a.UID, Gid: a.UID}, argv...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	return c, &output
}

// Do runs one command of the agent to its end.
func (a *Android) Do(command string, args ...string) {
	a.tb.Helper()
	c, output := a.Agent(a.tb.Context(), command, args...)
	if err := c.Run(); err != nil {
		a.tb.Fatalf("muster-agent %s: %v\n%s", command, err, output)
	}
}
