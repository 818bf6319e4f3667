// Command android is every one of Android's tools at once, by the name that it
// is started under, for a root directory in which tests run the real agent. The
// device is a file that all of them share; each call is written down.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agent/simulated/toolbox"
)

const (
	device = "/data/model/device.json"
	calls  = "/data/model/calls"
	bootID = "/proc/sys/kernel/random/boot_id"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 120
	}
	os.Exit(code)
}

func run() (int, error) {
	lock, err := os.OpenFile(calls, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); name != "PATH" && name != "ANDROID_ROOT" && name != "ANDROID_DATA" {
			return 0, fmt.Errorf("the environment holds %s", name)
		}
	}
	if err := json.NewEncoder(lock).Encode(os.Args); err != nil {
		return 0, err
	}
	if code, ok := onFiles(filepath.Base(os.Args[0]), os.Args[1:]); ok {
		return code, nil
	}
	text, err := os.ReadFile(device)
	if err != nil {
		return 0, err
	}
	var state simulated.State
	if err := json.Unmarshal(text, &state); err != nil {
		return 0, err
	}
	restarted := false
	m := toolbox.Machine{State: &state, UID: os.Getuid(), Restarted: func() { restarted = true }}
	code := m.Run(filepath.Base(os.Args[0]), os.Args[1:], os.Stdout, os.Stderr)
	if text, err = json.Marshal(state); err != nil {
		return 0, err
	}
	if err := os.WriteFile(device, text, 0o666); err != nil {
		return 0, err
	}
	if restarted {
		return code, os.WriteFile(bootID, fmt.Appendf(nil, "boot-%d\n", state.Boot), 0o666)
	}
	return code, nil
}

// onFiles plays the tools that work on files: these are real, and so is who may
// touch them.
func onFiles(tool string, args []string) (code int, ok bool) {
	var err error
	switch line := tool + " " + strings.Join(args, " "); {
	case strings.HasPrefix(line, "mkdir -p ") && len(args) == 2:
		err = os.MkdirAll(args[1], 0o777)
	case strings.HasPrefix(line, "rm -r -f ") && len(args) == 3:
		err = os.RemoveAll(args[2])
	case tool == "chmod" && len(args) == 2:
		var mode uint64
		if mode, err = strconv.ParseUint(args[0], 8, 9); err == nil {
			err = os.Chmod(args[1], os.FileMode(mode))
		}
	case tool == "mkdir" || tool == "rm" || tool == "chmod":
		err = fmt.Errorf("bad arguments %q", args)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
		return 1, true
	}
	return 0, true
}
