package adb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// The same against Debian's own adb server, with a device behind it that speaks
// the protocol of the wire.
func TestTheRealServer(t *testing.T) {
	t.Parallel()
	device := &adbtest.Device{Root: t.TempDir(), Shell: adbtest.HostShell}
	old := &adbtest.Device{Root: t.TempDir(), Shell: adbtest.HostShell, Old: true}
	first, second := adbtest.NewDaemon(t, device), adbtest.NewDaemon(t, old)
	closed := adbtest.NewDaemon(t, &adbtest.Device{State: "unauthorized"})
	s := adb.Server{Address: adbtest.NewRealServer(t, first, second, closed)}
	if version, err := s.Version(t.Context()); err != nil || version < 39 {
		t.Errorf("version %d, %v", version, err)
	}
	devices, err := s.Devices(t.Context())
	if err != nil || !slices.Contains(devices, adb.Device{Serial: first, State: adb.Online}) || !slices.Contains(devices, adb.Device{Serial: closed, State: adb.Unauthorized}) {
		t.Errorf("devices %+v, %v", devices, err)
	}
	const hostile = "it's $(reboot) `x` \\ \n \"y\" ö"
	got, err := s.Run(t.Context(), first, "sh", "-c", `printf %s "$1"; printf no >&2; exit 7`, "sh", hostile)
	if want := (adb.Output{Out: hostile, Err: "no", Code: 7}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = s.Run(t.Context(), second, "sh", "-c", `printf %s "$1"; exit 7`, "sh", hostile); err != nil || got.Code != 7 || got.Out != hostile {
		t.Errorf("before Android 7: %+v, %v", got, err)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	if err := s.Push(t.Context(), first, "/data/it's here", 0o700, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join(device.Root, "data/it's here")); err != nil || !bytes.Equal(kept, content) {
		t.Errorf("the device has %d bytes, %v", len(kept), err)
	}
	if there, err := s.Exists(t.Context(), first, "/data/it's here"); err != nil || !there {
		t.Errorf("after: %v, %v", there, err)
	}
	if _, err := s.Run(t.Context(), closed, "true"); err == nil {
		t.Error("a device that trusts nobody ran something")
	}
	var seen []adb.Device
	end := os.ErrClosed
	if err := s.Track(t.Context(), func(all []adb.Device) error { seen = all; return end }); err != end || len(seen) != 3 {
		t.Errorf("tracked %+v, %v", seen, err)
	}
}
