// Package adbtest provides a fake adb program for tests. It is a shell script; a directory stands for the files of a
// device.
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

// HostShell is a Device.Shell that runs the device's commands on this machine, as they are.
const HostShell = `run() { "$@"; }`

// Device is a device that the program lists. One whose serial number contains a slash or a line break is only listed:
// every command to it fails.
type Device struct {
	Serial string
	State  string // as adb lists it; empty: "device"
	Root   string // the directory that stands for "/" of the device
	UID    int    // the owner of pushed files; 0: the test's user
	// Shell is sh code that defines a function run. The program calls run with the words of each command for the device,
	// except for [; $serial and $root are those of the device. Empty: HostShell.
	Shell string
}

// ADB is a fake adb program and the devices that it knows. It is not safe for concurrent use.
type ADB struct {
	Program string // its path
	tb      testing.TB
	dir     string
	tracked *os.File // a named pipe, from which track-devices reads each new list
}

// New writes the program to a temporary directory and connects the devices. Any failure fails the test.
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

// Dir is the directory of the program, to be put into PATH.
func (a *ADB) Dir() string { return a.dir }

// Connect replaces the connected devices by these. A call of track-devices that runs gets the new list.
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

// write writes down what the script needs to answer for a device.
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

// Calls returns the arguments of all calls of the program so far, one call a line; empty: there was none.
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
