package servertest

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// The users of a device that matter here.
const (
	systemUID = 1000
	shellUID  = 2000
)

// Headset is an Android device as a person with a USB cable sees it.
type Headset struct {
	*Android
	Device  *adbtest.Device
	Program string // the agent, as a file on this machine
}

// NewHeadset makes one whose system holds the agent and the init file of
// docs/aosp.md, or one that knows nothing of it.
func NewHeadset(tb testing.TB, serial string, system bool) *Headset {
	tb.Helper()
	state := simulated.Default(serial)
	state.Headset = true
	state.Platform.Properties = map[string]string{"ro.product.cpu.abi": abi(tb)}
	a := NewAndroid(tb, systemUID, state)
	h := &Headset{Android: a, Program: filepath.Join(a.Dir, "system/bin/muster-agent")}
	h.Device = &adbtest.Device{Serial: serial, Root: a.Dir, UID: shellUID, Shell: h.shell()}
	for _, tool := range []string{"mkdir", "rm", "chmod"} {
		a.must(os.Symlink("toolbox", filepath.Join(a.Dir, "system/bin", tool)))
	}
	a.must(os.MkdirAll(filepath.Join(a.Dir, "data/local/tmp"), 0o771))
	a.must(os.Chown(filepath.Join(a.Dir, "data/local/tmp"), shellUID, shellUID))
	if system {
		a.must(os.RemoveAll(filepath.Join(a.Dir, "data/muster")))
		startInit(a)
	}
	tb.Cleanup(h.switchOff)
	return h
}

func (a *Android) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}

// abi is this machine's processor in Android's words.
func abi(tb testing.TB) string {
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		tb.Skip("devices are played on Linux alone")
	}
	defer program.Close()
	return map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "arm64-v8a"}[program.Machine]
}

// in is a command inside the device's root, as one of its users.
func (a *Android) in(ctx context.Context, user *syscall.Credential, argv ...string) *exec.Cmd {
	program := argv[0]
	if !filepath.IsAbs(program) {
		program = "/system/bin/" + program
	}
	c := exec.CommandContext(ctx, program, argv[1:]...)
	c.Args[0], c.Dir = argv[0], "/"
	c.Env = []string{"PATH=/system/bin", "ANDROID_ROOT=/system", "ANDROID_DATA=/data"}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: a.Dir, Credential: user}
	return c
}

// shell is sh code for adbtest that runs a command inside the device's root, as its
// shell user: nothing is there to run but the device's tools.
func (h *Headset) shell() string {
	return fmt.Sprintf(`run() {
	env -i PATH=/system/bin ANDROID_ROOT=/system ANDROID_DATA=/data "$(command -v chroot)" --groups= --userspec=+%[1]d:+%[1]d '%[2]s' "$@"
}`, shellUID, h.Dir)
}

// Agents are the processes of agents inside, by id.
func (h *Headset) Agents() (ids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/root")
	for _, entry := range entries {
		if root, err := os.Readlink(entry); err == nil && root == h.Dir {
			if id, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// switchOff ends what was left running inside.
func (h *Headset) switchOff() {
	for _, id := range h.Agents() {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
}
