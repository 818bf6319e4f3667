package servertest

import (
	"bufio"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/usb/adbtest"
	"github.com/musterhq/muster/test/poll"
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

// NewHeadset makes one whose system starts the agent, or one without an agent.
func NewHeadset(tb testing.TB, serial string, system bool) *Headset {
	tb.Helper()
	state := simulated.Default(serial)
	state.Headset = true
	state.Platform.Properties = map[string]string{"ro.product.cpu.abi": abi(tb)}
	a := NewAndroid(tb, systemUID, state)
	h := &Headset{Android: a, Program: filepath.Join(a.Dir, "system/bin/muster-agent")}
	// The shell starts commands as its own user, without the caller's environment.
	shell := fmt.Sprintf(`run() { setpriv --reuid=%[1]d --regid=%[1]d --clear-groups "$root/system/bin/toolbox" run "$@"; }`, shellUID)
	h.Device = &adbtest.Device{Serial: serial, Root: a.Dir, UID: shellUID, Shell: shell}
	for _, tool := range []string{"mkdir", "rm", "chmod"} {
		need(a.tb, os.Symlink("toolbox", filepath.Join(a.Dir, "system/bin", tool)))
	}
	h.mkdir("data/local/tmp", 0o771, shellUID, shellUID)
	tb.Cleanup(h.switchOff)
	if system {
		h.mkdir("data/muster", 0o700, systemUID, systemUID)
		h.mkdir("data/muster-inbox", 0o770, systemUID, shellUID)
		h.startServices()
	}
	return h
}

func (h *Headset) mkdir(name string, mode os.FileMode, uid, gid int) {
	h.tb.Helper()
	path := filepath.Join(h.Dir, name)
	need(h.tb, os.MkdirAll(path, mode))
	need(h.tb, os.Chmod(path, mode))
	need(h.tb, os.Chown(path, uid, gid))
}

// abi is this machine's processor in Android's words.
func abi(tb testing.TB) string {
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		tb.Skip("devices are simulated on Linux only")
	}
	defer program.Close()
	return map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "arm64-v8a"}[program.Machine]
}

// startServices starts and stops the agent when properties are set, as the init file of
// docs/aosp.md does. Tools write each property that was set into a named pipe.
func (h *Headset) startServices() {
	h.tb.Helper()
	name := filepath.Join(h.Dir, "data/model/properties")
	need(h.tb, syscall.Mkfifo(name, 0o600))
	need(h.tb, os.Chmod(name, 0o666))
	properties, err := os.OpenFile(name, os.O_RDWR, 0)
	need(h.tb, err)
	h.setProperty("debug.muster.agent", "ready")
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.followProperties(properties)
	}()
	h.tb.Cleanup(func() {
		need(h.tb, properties.Close())
		<-done
	})
}

func (h *Headset) followProperties(set io.Reader) {
	enrollment := &process{Headset: h, args: []string{"enroll", "--bundle", "/data/muster-inbox/bundle.json"}}
	agent := &process{Headset: h, args: []string{"run"}}
	defer agent.end(true)
	defer enrollment.end(true)
	for lines := bufio.NewScanner(set); lines.Scan(); {
		switch lines.Text() {
		case "debug.muster.agent=enrol":
			enrollment.start()
		case "persist.muster.enrolled=1":
			h.setProperty("debug.muster.agent", "enrolled")
			enrollment.end(false) // until then it holds the state directory
			agent.start()
		case "persist.muster.enrolled=0":
			agent.end(true)
			h.setProperty("debug.muster.agent", "ready")
		case startedProperty + "=1": // a process that was killed may not have been waited for
			agent.end(true)
			enrollment.end(true)
			h.setProperty(enrolledProperty, h.Properties()[enrolledProperty])
		}
	}
}

func (h *Headset) setProperty(name, value string) {
	h.tb.Helper()
	if output, err := h.command(context.Background(), syscall.Credential{}, "setprop", name, value).CombinedOutput(); err != nil {
		h.tb.Errorf("cannot set the property %s: %v\n%s", name, err, output)
	}
}

// Restart ends the agents of the device, changes what is on it while they are off, and starts it again.
func (h *Headset) Restart(change func() error) {
	h.tb.Helper()
	h.switchOff()
	poll.Until(h.tb, "the device is off", func() error {
		if left := h.Agents(); len(left) > 0 {
			return fmt.Errorf("agents %v", left)
		}
		return nil
	})
	need(h.tb, change())
	h.setProperty(startedProperty, "1")
}

// enrolledProperty has init start and stop the agent, startedProperty says that the device was switched on.
const (
	enrolledProperty = "persist.muster.enrolled"
	startedProperty  = "sys.boot_completed"
)

// process is an agent that the system starts.
type process struct {
	*Headset
	args    []string
	command *exec.Cmd
	ended   chan struct{}
}

// start starts it, unless it runs.
func (p *process) start() {
	if p.ended != nil {
		select {
		case <-p.ended:
		default:
			return
		}
	}
	p.command, _ = p.Agent(context.Background(), p.args[0], p.args[1:]...)
	p.command.SysProcAttr.Credential.Groups = []uint32{shellUID} // for the bundle
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		p.command.Stdout, p.command.Stderr = log, log
		err = p.command.Start()
	}
	if err != nil {
		p.tb.Errorf("cannot start muster-agent %s: %v", p.args[0], err)
		return
	}
	command, ended := p.command, make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		_ = command.Wait() // its log says how it ended
		_ = log.Close()
	}()
}

// end waits until it has ended.
func (p *process) end(kill bool) {
	if p.ended == nil {
		return
	}
	if kill {
		_ = p.command.Process.Kill() // as init does
	}
	<-p.ended
}

func (h *Headset) logFile() string { return filepath.Join(h.Dir, "agent.log") }

// Log is the output of the agents that the system started.
func (h *Headset) Log() string {
	text, _ := os.ReadFile(h.logFile())
	return string(text)
}

// Properties are those that were set on the device.
func (h *Headset) Properties() map[string]string { return h.State().Platform.Properties }

// Agents are the ids of the processes of agents on the device.
func (h *Headset) Agents() (ids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		line, _ := os.ReadFile(entry)
		program, _, _ := strings.Cut(string(line), "\x00")
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil &&
			strings.HasPrefix(program, h.Dir+"/") && filepath.Base(program) == "muster-agent" {
			ids = append(ids, id)
		}
	}
	return ids
}

// switchOff ends what still runs on the device.
func (h *Headset) switchOff() {
	for _, id := range h.Agents() {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
}
