// Package adbtest plays the adb program for tests: a shell script that answers for
// devices which are directories.
package adbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "embed"

	"github.com/musterhq/muster/test/executable"
)

//go:embed adb.sh
var script []byte

// HostShell is the Shell of a device that runs commands on this machine.
const HostShell = `run() { "$@"; }`

// Device is a device that the program lists.
type Device struct {
	Serial string
	State  string // as adb lists it; empty: "device"
	Root   string // the directory that stands for "/"
	UID    int    // the owner of pushed files; 0: the test's user
	// Shell is sh code that defines a function run. It gets the words of a command
	// that the device carries out; $serial and $root say on which device. Empty:
	// HostShell.
	Shell string
}

// ADB is a program that plays adb.
type ADB struct {
	Program string
	tb      testing.TB
	dir     string
	tracked *os.File // the lists for track-devices, in a named pipe
}

// New writes the program, with devices connected.
func New(tb testing.TB, devices ...*Device) *ADB {
	tb.Helper()
	a := &ADB{tb: tb, dir: tb.TempDir()}
	a.Program = filepath.Join(a.dir, "adb")
	executable.Write(tb, a.Program, script)
	a.must(syscall.Mkfifo(filepath.Join(a.dir, "track"), 0o600))
	pipe, err := os.OpenFile(filepath.Join(a.dir, "track"), os.O_RDWR, 0)
	a.must(err)
	a.tracked = pipe
	tb.Cleanup(func() { _ = pipe.Close() })
	a.Connect(devices...)
	return a
}

// Dir is where the program lies, for PATH.
func (a *ADB) Dir() string { return a.dir }

// Connect changes which devices are connected.
func (a *ADB) Connect(devices ...*Device) {
	a.tb.Helper()
	var list strings.Builder
	for _, d := range devices {
		state := d.State
		if state == "" {
			state = "device"
		}
		fmt.Fprintf(&list, "%s\t%s\n", d.Serial, state)
		a.write(d, state)
	}
	a.must(os.WriteFile(filepath.Join(a.dir, "devices"), []byte(list.String()), 0o600))
	_, err := fmt.Fprintf(a.tracked, "%04x%s", list.Len(), list.String())
	a.must(err)
}

func (a *ADB) write(d *Device, state string) {
	a.tb.Helper()
	dir := filepath.Join(a.dir, "device", d.Serial)
	if strings.ContainsAny(d.Serial, "\n/") {
		return // listed only
	}
	shell := d.Shell
	if shell == "" {
		shell = HostShell
	}
	a.must(os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{"state": state, "root": d.Root, "uid": fmt.Sprint(d.UID), "shell": shell} {
		a.must(os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
}

// Calls are the arguments of all calls so far, one call a line.
func (a *ADB) Calls() string {
	a.tb.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "calls"))
	if !os.IsNotExist(err) {
		a.must(err)
	}
	return string(text)
}

func (a *ADB) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}
