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

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agent/simulated/toolbox"
)

// Android is a directory that looks like the root of an Android device, with the
// real agent in it: its tools are played by the simulated device, and there is
// no shell. It takes root to enter.
type Android struct {
	tb  testing.TB
	Dir string
	UID uint32 // who the agent runs as
}

// NewAndroid makes one. Without root there is nothing to test on.
func NewAndroid(tb testing.TB, uid uint32, state simulated.State) *Android {
	tb.Helper()
	switch {
	case os.Getuid() != 0 && os.Getenv("CI") == "true":
		tb.Fatal("the tests must run as root in CI: only root may enter another root directory")
	case os.Getuid() != 0:
		tb.Skip("only root may enter another root directory")
	}
	a := &Android{tb: tb, Dir: tb.TempDir(), UID: uid}
	for _, dir := range []string{"system/bin", "data/model", "data/muster", "proc/sys/kernel/random", "dev"} {
		path := filepath.Join(a.Dir, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for _, dir := range []string{".", "data/model", "data/muster", "proc/sys/kernel/random"} {
		if err := os.Chown(filepath.Join(a.Dir, dir), int(uid), int(uid)); err != nil {
			tb.Fatal(err)
		}
	}
	a.build("cmd/muster-agent", "muster-agent")
	a.build("internal/agent/simulated/toolbox/testdata/android", "toolbox")
	for _, tool := range toolbox.Names() {
		if err := os.Symlink("toolbox", filepath.Join(a.Dir, "system/bin", tool)); err != nil {
			tb.Fatal(err)
		}
	}
	a.write("data/model/device.json", state)
	if err := os.WriteFile(filepath.Join(a.Dir, "proc/sys/kernel/random/boot_id"), []byte("boot-1\n"), 0o666); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.Dir, "proc/uptime"), []byte("97446.50 180000.00\n"), 0o666); err != nil { // 1d3h4m6.5s
		tb.Fatal(err)
	}
	for _, file := range []string{"dev/null", "data/model/calls"} { // for the first a file does as well
		if err := os.WriteFile(filepath.Join(a.Dir, file), nil, 0o666); err != nil {
			tb.Fatal(err)
		}
	}
	for _, file := range []string{"data/model/device.json", "data/model/calls", "proc/sys/kernel/random/boot_id", "dev/null"} {
		if err := os.Chmod(filepath.Join(a.Dir, file), 0o666); err != nil {
			tb.Fatal(err)
		}
	}
	return a
}

// build makes a program that needs no libraries.
func (a *Android) build(source, name string) {
	a.tb.Helper()
	command := exec.CommandContext(a.tb.Context(), "go", "build", "-o", filepath.Join(a.Dir, "system/bin", name), "github.com/musterhq/muster/"+source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := command.CombinedOutput(); err != nil {
		a.tb.Fatalf("cannot build %s: %v\n%s", name, err, said)
	}
}

func (a *Android) write(path string, v any) {
	a.tb.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(a.Dir, path), text, 0o666)
	}
	if err != nil {
		a.tb.Fatal(err)
	}
}

// State is the device as it now is.
func (a *Android) State() simulated.State {
	a.tb.Helper()
	_, s, err := a.snapshot()
	if err != nil {
		a.tb.Fatal(err)
	}
	return s
}

// snapshot is the calls of tools so far and the device's state, while no tool runs.
func (a *Android) snapshot() (calls []byte, s simulated.State, err error) {
	file, err := os.Open(filepath.Join(a.Dir, "data/model/calls"))
	if err != nil {
		return nil, s, err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
		return nil, s, err
	}
	if calls, err = io.ReadAll(file); err != nil {
		return nil, s, err
	}
	text, err := os.ReadFile(filepath.Join(a.Dir, "data/model/device.json"))
	if err != nil {
		return nil, s, err
	}
	return calls, s, json.Unmarshal(text, &s)
}

// Calls are the tools that were started, each with its arguments.
func (a *Android) Calls() [][]string {
	a.tb.Helper()
	text, _, err := a.snapshot()
	if err != nil {
		a.tb.Fatal(err)
	}
	var calls [][]string
	for line := range bytes.Lines(text) {
		var argv []string
		if err := json.Unmarshal(line, &argv); err != nil {
			a.tb.Fatalf("%q: %v", line, err)
		}
		calls = append(calls, argv)
	}
	return calls
}

// Agent starts the agent inside; it drives the device by Android's command lines.
func (a *Android) Agent(ctx context.Context, command string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	args = append([]string{command, "--state", "/data/muster", "--driver", "shell"}, args...)
	c := exec.CommandContext(ctx, "/system/bin/muster-agent", args...)
	c.Dir, c.Env = "/", []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: a.Dir, Credential: &syscall.Credential{Uid: a.UID, Gid: a.UID, NoSetGroups: true}}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	return c, &said
}

// Do runs one command of the agent to its end.
func (a *Android) Do(command string, args ...string) {
	a.tb.Helper()
	c, said := a.Agent(a.tb.Context(), command, args...)
	if err := c.Run(); err != nil {
		a.tb.Fatalf("muster-agent %s: %v\n%s", command, err, said)
	}
}
