// Command android is every one of Android's tools at once, by the name that it
// is started under, for a directory that stands for a device's root and in which
// tests run the real agent. The device is a file that all of them share; each call
// is written down. Started as toolbox, it runs a command line of the device.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/musterhq/muster/internal/agent/shell/shelltest"
	"github.com/musterhq/muster/internal/agent/simulated"
)

// The device's files, below its root.
const (
	device     = "data/model/device.json"
	calls      = "data/model/calls"
	properties = "data/model/properties" // a named pipe, for who waits for properties
	bootID     = "proc/sys/kernel/random/boot_id"
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
	root, tool := filepath.Join(os.Args[0], "../../.."), filepath.Base(os.Args[0])
	if tool == "toolbox" {
		return 0, execute(root, os.Args[2:])
	}
	lock, err := os.OpenFile(filepath.Join(root, calls), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
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
	if code, ok := onFiles(tool, os.Args[1:]); ok {
		return code, nil
	}
	text, err := os.ReadFile(filepath.Join(root, device))
	if err != nil {
		return 0, err
	}
	var state simulated.State
	if err := json.Unmarshal(text, &state); err != nil {
		return 0, err
	}
	restarted := false
	m := shelltest.Machine{State: &state, UID: os.Getuid(), Restarted: func() { restarted = true }}
	code := m.Run(tool, os.Args[1:], os.Stdout, os.Stderr)
	if text, err = json.Marshal(state); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(root, device), text, 0o666); err != nil {
		return 0, err
	}
	if tool == "setprop" && code == 0 {
		if err := announce(filepath.Join(root, properties), os.Args[1]+"="+os.Args[2]); err != nil {
			return 0, err
		}
	}
	if restarted {
		return code, os.WriteFile(filepath.Join(root, bootID), fmt.Appendf(nil, "boot-%d\n", state.Boot), 0o666)
	}
	return code, nil
}

// execute becomes a program of the device: paths of its command line are below the
// device's root, which the agent is given.
func execute(root string, argv []string) error {
	for i, word := range argv {
		if strings.HasPrefix(word, "/system/") || strings.HasPrefix(word, "/data/") {
			argv[i] = root + word
		}
	}
	tools := filepath.Join(root, "system/bin")
	if !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(tools, argv[0])
	}
	if filepath.Base(argv[0]) == "muster-agent" {
		argv = append(argv, "--root", root)
	}
	return syscall.Exec(argv[0], argv, []string{"PATH=" + tools, "ANDROID_ROOT=/system", "ANDROID_DATA=/data"})
}

// announce writes a line into the named pipe, if there is one.
func announce(pipe, line string) error {
	file, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) { // ENXIO: it is not read any more
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
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
