package usb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/usb"
	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

const token = "met_marker"

// enroller issues bundles, and says of each that its device is enrolled, or never.
type enroller struct {
	mu     sync.Mutex
	issued int
	err    error
	never  bool
}

func (d *enroller) Issue(context.Context) (usb.Bundle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.issued++
	return usb.Bundle{Text: fmt.Appendf(nil, `{"token":"%s%d"}`, token, d.issued)}, d.err
}

func (d *enroller) Enrolled(_ context.Context, b usb.Bundle) (string, error) {
	if d.never {
		return "", nil
	}
	return "enterprises/acme/assets/of-" + strings.Trim(strings.SplitN(string(b.Text), ":", 2)[1], `"}`), nil
}

// Known knows one device.
func (d *enroller) Known(_ context.Context, id string) (string, error) {
	if id == ours {
		return "enterprises/acme/assets/known", nil
	}
	return "", nil
}

// A device that the enroller knows, and one of another service.
var ours, others = resource.NewID(), resource.NewID()

// toy is a device whose tools say what a test wants them to.
type toy struct {
	*adbtest.Device
	dir string // of what the tools say
}

// toyShell plays a device's tools with the files in $toy: props holds the properties,
// fails part of a command that fails and said what it says, ran what ran.
const toyShell = `
run() {
	if [ "$1" = getprop ]; then
		cat "$toy/props/$2" 2>/dev/null
		return 0
	fi
	echo "$*" >>"$toy/ran"
	if [ -e "$toy/fails" ]; then
		case "$*" in *"$(cat "$toy/fails")"*) cat "$toy/said" >&2; return 1 ;; esac
	fi
	if [ "$2" = status ]; then printf 'Device:  %s\nService: https://x\n' "$(cat "$toy/props/status")"; fi
	if [ "$1" = rm ]; then rm -r -f "$root$4"; fi
}
`

func newToy(t *testing.T, serial string, props map[string]string) *toy {
	t.Helper()
	d := &toy{dir: t.TempDir()}
	d.Device = &adbtest.Device{Serial: serial, Root: t.TempDir(), Shell: "toy='" + d.dir + "'" + toyShell}
	d.set(t, map[string]string{"ro.build.version.sdk": "30", "ro.build.version.release": "11", "ro.product.cpu.abi": "x86_64",
		"ro.product.manufacturer": "Acme", "ro.product.model": "Visor", "sys.boot_completed": "1"})
	d.set(t, props)
	return d
}

// set sets properties.
func (d *toy) set(t *testing.T, props map[string]string) {
	t.Helper()
	for name, value := range props {
		d.write(t, "props/"+name, value)
	}
}

// fail lets a command fail that contains a text.
func (d *toy) fail(t *testing.T, part, outcomes string) {
	t.Helper()
	d.write(t, "fails", part)
	d.write(t, "said", outcomes)
}

func (d *toy) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// ran is what ran on it, one command a line.
func (d *toy) ran(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// client is a client of a fake adb.
func client(fake *adbtest.ADB) adb.Client {
	return adb.Client{Program: fake.Program, Address: "127.0.0.1:5037"}
}

func (d *toy) put(t *testing.T, path string) {
	t.Helper()
	path = filepath.Join(d.Root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// agentFile is a program for this machine, standing for an agent.
func agentFile(t *testing.T) string {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestProvision_EveryOutcome(t *testing.T) {
	t.Parallel()
	system := map[string]string{"debug.muster.agent": "ready"}
	for name, c := range map[string]struct {
		props   map[string]string
		prepare func(*testing.T, *toy, *enroller, *usb.Tool)
		want    usb.Outcome
		says    string
		issued  int
	}{
		"unauthorised": {nil, func(_ *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.State = "unauthorized" }, usb.Unauthorized,
			"allow USB debugging", 0},
		"offline": {nil, func(_ *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.State = "offline" },
			usb.Offline, "unplug it", 0},
		"no permissions": {nil, func(_ *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.State = "no permissions (x)" },
			usb.NoPermissions, "udev", 0},
		"in recovery": {nil, func(_ *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.State = "recovery" },
			usb.NotReady, "recovery", 0},
		"Android 4.4":          {map[string]string{"ro.build.version.sdk": "19"}, nil, usb.Unsupported, "older than 5", 0},
		"no Android":           {map[string]string{"ro.build.version.sdk": "\x1b[31mhm"}, nil, usb.Failed, "is this Android?", 0},
		"still starting":       {map[string]string{"sys.boot_completed": ""}, nil, usb.NotReady, "starting", 0},
		"system":               {system, nil, usb.Enrolled, "", 1},
		"system, asked before": {map[string]string{"debug.muster.agent": "enrol"}, nil, usb.Enrolled, "", 1},
		"system, enrolled": {map[string]string{"debug.muster.agent": "enrolled", "persist.muster.device": ours}, nil,
			usb.AlreadyEnrolled, "", 0},
		"system, elsewhere": {map[string]string{"debug.muster.agent": "enrolled", "persist.muster.device": others}, nil, usb.Elsewhere,
			"does not manage it", 0},
		"system, asks": {map[string]string{"debug.muster.agent": "enrolled", "persist.muster.device": "asking"}, nil, usb.Asking,
			"an administrator confirms", 0},
		"system, unknown": {map[string]string{"debug.muster.agent": "enrolled"}, nil, usb.Elsewhere, "does not say which", 0},
		"system, no word": {system, func(_ *testing.T, _ *toy, d *enroller, _ *usb.Tool) { d.never = true }, usb.Failed,
			"did not take the bundle", 1},
		"system, no inbox": {system, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.put(t, "data/muster-inbox") },
			usb.Failed, "couldn't create file", 1},
		"system, property fails": {system, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.fail(t, "setprop", "denied\x1b[2J") },
			usb.Failed, "setprop failed on the device: denied[2J", 1},
		"no token": {system, func(_ *testing.T, _ *toy, d *enroller, _ *usb.Tool) { d.err = errors.New("no database") },
			usb.Failed, "no database", 1},
		"lab":                   {nil, nil, usb.Enrolled, "ends when the device restarts", 1},
		"lab, strange property": {map[string]string{"debug.muster.agent": "hm"}, nil, usb.Enrolled, "ends when the device restarts", 1},
		"lab, refused": {nil, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) {
			d.fail(t, " enroll ", "muster-agent: cannot reach")
		}, usb.Failed, "cannot reach", 1},
		"lab, does not start": {nil, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) { d.fail(t, " run ", "Killed") },
			usb.Failed, "Killed", 1},
		"lab, no word": {nil, func(_ *testing.T, _ *toy, d *enroller, _ *usb.Tool) { d.never = true }, usb.Failed,
			"has not seen it within", 1},
		"lab, no agent": {nil, func(_ *testing.T, _ *toy, _ *enroller, u *usb.Tool) { u.Programs = usb.Programs{} },
			usb.Unsupported, "--agent", 0},
		"lab, other processor": {map[string]string{"ro.product.cpu.abi": "riscv64"}, nil, usb.Unsupported, "riscv64", 0},
		"lab, wrong program":   {map[string]string{"ro.product.cpu.abi": "armeabi-v7a"}, nil, usb.Failed, "is a program for", 0},
		"lab, again": {map[string]string{"status": ours}, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) {
			d.put(t, "data/local/tmp/muster/state/identity.json")
		}, usb.AlreadyEnrolled, "(again)", 0},
		"lab, elsewhere": {map[string]string{"status": others}, func(t *testing.T, d *toy, _ *enroller, _ *usb.Tool) {
			d.put(t, "data/local/tmp/muster/state/identity.json")
		}, usb.Elsewhere, "rm -r /data/local/tmp/muster", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			device, d := newToy(t, "S1", c.props), &enroller{}
			fake := adbtest.New(t)
			tool := &usb.Tool{ADB: client(fake), Enroller: d, Patience: 5 * time.Second, Programs: usb.Programs{File: agentFile(t)}}
			if c.prepare != nil {
				c.prepare(t, device, d, tool)
			}
			fake.Connect(device.Device)
			if d.never {
				tool.Patience = 50 * time.Millisecond
			}
			got, err := tool.Once(t.Context())
			if err != nil || len(got) != 1 {
				t.Fatalf("%+v, %v, want one device", got, err)
			}
			if got[0].Outcome != c.want || !strings.Contains(got[0].Detail, c.says) {
				t.Errorf("%+v, want %s %q", got, c.want, c.says)
			}
			if d.issued != c.issued {
				t.Errorf("%d bundles issued, want %d", d.issued, c.issued)
			}
			if c.want == usb.Enrolled && got[0].Asset != "enterprises/acme/assets/of-"+token+"1" {
				t.Errorf("the asset is %q", got[0].Asset)
			}
			leaves(t, device, fake)
		})
	}
}

// leaves: no bundle stays on a device, and no argument of adb holds its token.
func leaves(t *testing.T, d *toy, fake *adbtest.ADB) {
	t.Helper()
	if calls := fake.Calls(); strings.Contains(calls, token) {
		t.Errorf("the token is an argument: %s", calls)
	}
	ran := d.ran(t)
	if strings.Contains(ran, "mkdir") && !strings.HasPrefix(ran, "mkdir -p /data/local/tmp/muster\nchmod 700 /data/local/tmp/muster\n") {
		t.Errorf("the directory was not closed first: %s", ran)
	}
	if _, err := os.Stat(filepath.Join(d.Root, "data/muster-inbox/bundle.json")); err == nil {
		t.Error("the bundle was left")
	}
	_, fails := os.Stat(filepath.Join(d.dir, "fails"))
	if failed := fails == nil && strings.Contains(ran, " enroll ") && !strings.Contains(ran, " run "); failed &&
		!strings.Contains(ran, "rm -r -f /data/local/tmp/muster") {
		t.Errorf("after a failure something was left: %s", ran)
	}
}

// Nothing that a device says of itself reaches a terminal as it is.
func TestProvision_HostileText(t *testing.T) {
	t.Parallel()
	d := newToy(t, "S1", map[string]string{"ro.product.model": "\x1b]0;x\x07\u202eVi\r\nsor" + strings.Repeat("x", 300),
		"debug.muster.agent": "enrolled", "persist.muster.device": ours})
	tool := &usb.Tool{ADB: client(adbtest.New(t, d.Device)), Enroller: &enroller{}}
	got, err := tool.Once(t.Context())
	if err != nil || len(got) != 1 || strings.ContainsAny(got[0].Title(), "\x1b\x07\r\n\u202e") || len(got[0].Model) > 100 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestProvision_SelectedDevices(t *testing.T) {
	t.Parallel()
	enrolled := map[string]string{"debug.muster.agent": "enrolled", "persist.muster.device": ours}
	fake := adbtest.New(t, newToy(t, "A", enrolled).Device, newToy(t, "B", enrolled).Device)
	tool := &usb.Tool{ADB: client(fake), Enroller: &enroller{}, Serials: []string{"B", "C"}}
	got, err := tool.Once(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v, want two devices", got, err)
	}
	if got[0].Serial != "B" || got[0].Outcome != usb.AlreadyEnrolled {
		t.Errorf("the first is %+v", got[0])
	}
	if got[1].Serial != "C" || got[1].Outcome != usb.Absent {
		t.Errorf("the second is %+v", got[1])
	}
	empty := &usb.Tool{ADB: client(adbtest.New(t)), Enroller: &enroller{}}
	if got, err := empty.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "no device is connected") {
		t.Errorf("without devices: %+v, %v", got, err)
	}
}

// Devices are provisioned as they come, each once while it stays, and again when it
// comes back.
func TestProvision_Watch(t *testing.T) {
	t.Parallel()
	first, second := newToy(t, "A", map[string]string{"debug.muster.agent": "ready"}),
		newToy(t, "B", map[string]string{"debug.muster.agent": "ready"})
	shy := *second.Device
	shy.State = "unauthorized"
	fake := adbtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var outcomes []string
	d := &enroller{}
	tool := &usb.Tool{ADB: client(fake), Enroller: d, Patience: 5 * time.Second}
	tool.Say = func(r usb.Result) {
		outcomes = append(outcomes, r.Serial+" "+string(r.Outcome))
		switch strings.Join(outcomes, ", ") {
		case "A WORKING, A ENROLLED":
			fake.Connect(first.Device, &shy)
		case "A WORKING, A ENROLLED, B UNAUTHORIZED":
			fake.Connect(first.Device, second.Device)
		case "A WORKING, A ENROLLED, B UNAUTHORIZED, B WORKING, B ENROLLED":
			cancel()
		}
	}
	fake.Connect(first.Device)
	got, err := tool.Watch(ctx)
	want := []string{"A WORKING", "A ENROLLED", "B UNAUTHORIZED", "B WORKING", "B ENROLLED"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if err != nil || len(got) != 2 || got[1].Outcome != usb.Enrolled || d.issued != 2 {
		t.Errorf("%+v, %v; %d codes issued, want 2", got, err, d.issued)
	}
}

func TestProvision_ChoosesProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, err := os.ReadFile(agentFile(t))
	if err != nil {
		t.Fatal(err)
	}
	abi := ""
	for _, one := range []struct{ abi, arch string }{{"x86_64", "amd64"}, {"arm64-v8a", "arm64"}} {
		t.Run(one.abi, func(t *testing.T) {
			if file, err := (usb.Programs{File: agentFile(t)}).Open(one.abi); err == nil {
				abi = one.abi
				_ = file.Close()
				if err := errors.Join(os.Mkdir(filepath.Join(dir, "devices"), 0o700),
					os.WriteFile(filepath.Join(dir, "devices/muster-agent-linux-"+one.arch), program[:4096], 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if abi == "" {
		t.Skip("this machine has a processor that no device has")
	}
	if _, err := (usb.Programs{Dir: dir}).Open(abi); err == nil || !strings.Contains(err.Error(), "not a program") {
		t.Errorf("half a program: %v", err)
	}
	if _, err := (usb.Programs{Dir: t.TempDir()}).Open(abi); err == nil || !strings.Contains(err.Error(), "--agent") {
		t.Errorf("none: %v", err)
	}
	if _, err := (usb.Programs{File: filepath.Join(dir, "none")}).Open(abi); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
}

// A device that was enrolled in this session stays so when it is plugged in
// again, whatever it is then.
func TestTool_BestOutcomeOfASession(t *testing.T) {
	t.Parallel()
	device := newToy(t, "S1", map[string]string{"debug.muster.agent": "ready"})
	tool := &usb.Tool{ADB: client(adbtest.New(t, device.Device)), Enroller: &enroller{}, Patience: 5 * time.Second}
	for _, now := range []string{"ready", "enrolled"} {
		device.set(t, map[string]string{"debug.muster.agent": now, "persist.muster.device": ours})
		got, err := tool.Once(t.Context())
		if err != nil || len(got) != 1 || got[0].Outcome != usb.Enrolled {
			t.Errorf("when the device is %s, the session says %+v, %v; want ENROLLED", now, got, err)
		}
	}
}

// What an agent writes about itself is hostile: no text makes the tool take a
// device for one that it knows, unless it names it.
func FuzzDeviceOf(f *testing.F) {
	for _, seed := range []string{"Device:  x\nService: y\n", "", "Device:", "\nDevice:\t\x00a b\n", "Service: Device: z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, status string) {
		id := usb.DeviceOf(status)
		if id != strings.TrimSpace(id) || !strings.Contains(status, id) || strings.Contains(id, "\n") {
			t.Errorf("%q is taken from %q", id, status)
		}
	})
}
