package adb_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/usb/adbtest"
	"github.com/musterhq/muster/test/executable"
)

// client is a client of a fake adb with one device, whose shell is this machine's.
func client(t *testing.T) (adb.Client, *adbtest.Device) {
	t.Helper()
	d := &adbtest.Device{Serial: "S1", Root: t.TempDir()}
	return adb.Client{Program: adbtest.New(t, d).Program, Address: "127.0.0.1:5037"}, d
}

// playing is a client of a program that a test writes in sh.
func playing(t *testing.T, code string) adb.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "adb")
	executable.Write(t, path, []byte("#!/bin/sh\n"+code))
	return adb.Client{Program: path, Address: "127.0.0.1:5037"}
}

// regular is an open file with a text.
func regular(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestClient_Devices(t *testing.T) {
	t.Parallel()
	c := adb.Client{Address: "127.0.0.1:5037", Program: adbtest.New(t, &adbtest.Device{Serial: "R58M123ABC"},
		&adbtest.Device{Serial: "emulator-5554", State: "offline"},
		&adbtest.Device{Serial: "192.168.1.5:5555", State: "unauthorized"},
		&adbtest.Device{Serial: "P1", State: "no permissions (user x is not in the plugdev group); see [http://example]"},
		&adbtest.Device{Serial: "evil\nR58M"}, &adbtest.Device{Serial: "-s"}).Program}
	got, err := c.Devices(t.Context())
	want := []adb.Device{{Serial: "R58M123ABC", State: adb.Online}, {Serial: "emulator-5554", State: adb.Offline},
		{Serial: "192.168.1.5:5555", State: adb.Unauthorized}, {Serial: "P1", State: adb.NoPermissions},
		{Serial: "R58M", State: adb.Online}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("devices: %v; (-want +got):\n%s", err, diff)
	}
}

func TestClient_Track(t *testing.T) {
	t.Parallel()
	fake := adbtest.New(t)
	c := adb.Client{Program: fake.Program, Address: "127.0.0.1:5037"}
	var counts []int
	end := errors.New("seen enough")
	err := c.Track(t.Context(), func(all []adb.Device) error {
		counts = append(counts, len(all))
		switch len(counts) {
		case 1:
			fake.Connect(&adbtest.Device{Serial: "A"}, &adbtest.Device{Serial: "B"})
		case 2:
			fake.Connect(&adbtest.Device{Serial: "B"})
		case 3:
			return end
		}
		return nil
	})
	if diff := cmp.Diff([]int{0, 2, 1}, counts); !errors.Is(err, end) || diff != "" {
		t.Errorf("numbers of devices: %v; (-want +got):\n%s", err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fake.Connect()
	err = c.Track(ctx, func([]adb.Device) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	err = playing(t, "echo 'error: protocol fault' >&2; printf zzzz").Track(t.Context(), func([]adb.Device) error { return nil })
	if err == nil || err.Error() != "adb: protocol fault" {
		t.Errorf("after a list that cannot be read: %v", err)
	}
}

func TestClient_Run(t *testing.T) {
	t.Parallel()
	c, _ := client(t)
	got, err := c.Run(t.Context(), "S1", "sh", "-c", "printf 'a\\nb'; echo no >&2; exit 7")
	if want := (adb.Output{Out: "a\nb", Err: "no\n", Code: 7}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got, err := c.Run(t.Context(), "S1", "true"); err != nil || got != (adb.Output{}) {
		t.Errorf("true: %+v, %v", got, err)
	}
	if _, err := c.Run(t.Context(), "S1", "a\x00b"); err == nil {
		t.Error("an argument with a NUL was accepted")
	}
	if _, err := c.Run(t.Context(), "S2", "true"); err == nil || err.Error() != "adb: device 'S2' not found" {
		t.Errorf("an unknown device: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Run(ctx, "S1", "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// What adb prints is taken only as far as it can be.
func TestClient_Run_StrangeOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ code, want string }{
		"cut off":       {"echo half", "was the device unplugged?"},
		"no code":       {"echo muster-exit=x", "cannot read the exit code"},
		"too much":      {"head -c 3000000 /dev/zero; echo muster-exit=0", "was the device unplugged?"},
		"refused":       {"echo 'adb: error: closed\033[31m' >&2; exit 1", "adb: closed[31m"},
		"refused twice": {"exit 3", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := playing(t, c.code).Run(t.Context(), "S1", "true"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d bytes, code %d, %v; want %q", len(got.Out), got.Code, err, c.want)
			}
		})
	}
	// The shell of a device before Android 7 has a terminal and mixes the outputs.
	got, err := playing(t, `printf 'a\r\nno\r\nmuster-exit=7\r\n'`).Run(t.Context(), "S1", "true")
	if want := (adb.Output{Out: "a\nno\n", Code: 7}); err != nil || got != want {
		t.Errorf("before Android 7: %+v, %v; want %+v", got, err, want)
	}
	got, err = playing(t, `printf 'a\r\nno\nmuster-exit=7\n'`).Run(t.Context(), "S1", "true")
	if want := (adb.Output{Out: "a\r\nno\n", Code: 7}); err != nil || got != want {
		t.Errorf("since Android 7: %+v, %v; want %+v", got, err, want)
	}
}

// The program is called with the address of the server, in the form in which adb
// starts one on this machine and none elsewhere.
func TestClient_Start(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"127.0.0.1:5037": "-P 5037 start-server", "[::1]:5038": "-P 5038 start-server",
		"localhost:1": "-P 1 start-server", "lab.example:2": "-P 2 -H lab.example start-server"} {
		t.Run(address, func(t *testing.T) {
			c := playing(t, `echo "$*" >&2; exit 1`)
			c.Address = address
			if _, err := c.Start(t.Context()); err == nil || err.Error() != "adb: "+want {
				t.Errorf("%s: %v, want %q", address, err, want)
			}
		})
	}
	for code, want := range map[string]bool{"": false, "echo '* daemon started successfully' >&2": true} {
		t.Run(code, func(t *testing.T) {
			if started, err := playing(t, code).Start(t.Context()); err != nil || started != want {
				t.Errorf("%q: started %v, %v; want %v", code, started, err, want)
			}
		})
	}
	if _, err := (adb.Client{Program: filepath.Join(t.TempDir(), "adb"), Address: "127.0.0.1:1"}).Start(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "platform tools") {
		t.Errorf("without the program: %v", err)
	}
}

// Whatever the words are, the shell reads back the same.
func TestCommand_Quoting(t *testing.T) {
	t.Parallel()
	c, _ := client(t)
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`['"\\$`+"`"+`;&|<>(){}*?~! \n\t#=a-]{0,12}`), rapid.String()),
			1, 4).Draw(r, "words")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "\x00", "")
		}
		got, err := c.Run(t.Context(), "S1", append([]string{"printf", `%s\0`}, words...)...)
		if want := strings.Join(words, "\x00") + "\x00"; err != nil || got.Code != 0 || got.Out != want {
			r.Fatalf("%q came as %q (%d, %v)", want, got.Out, got.Code, err)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add(`it's`, "$(reboot)")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := adb.Quote(a, b)
		if strings.ContainsRune(a+b, 0) {
			if err == nil {
				t.Fatal("a NUL went through")
			}
			return
		}
		output, failed := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf '%s\0' `+line).Output()
		if err != nil || failed != nil || string(output) != a+"\x00"+b+"\x00" {
			t.Fatalf("%q %q came as %q (%v, %v)", a, b, output, err, failed)
		}
	})
}

func FuzzDevices(f *testing.F) {
	f.Add("List of devices attached\nS1\tdevice\nS2\tno permissions (x)\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range adb.ParseDevices(text) {
			if strings.ContainsAny(d.Serial, " \t\n';") || strings.ContainsAny(string(d.State), "\n\x1b") {
				t.Fatalf("%q", d)
			}
		}
	})
}

func TestClient_Push(t *testing.T) {
	t.Parallel()
	c, d := client(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	if there, err := c.Exists(t.Context(), "S1", "/data/it's here"); err != nil || there {
		t.Errorf("before: %v, %v", there, err)
	}
	if err := c.Push(t.Context(), "S1", "/data/it's here", regular(t, content)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(d.Root, "data/it's here"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the device has %d bytes, %v", len(got), err)
	}
	if there, err := c.Exists(t.Context(), "S1", "/data/it's here"); err != nil || !there {
		t.Errorf("after: %v, %v", there, err)
	}
	err = c.Push(t.Context(), "S1", "/data/it's here/below", regular(t, content))
	if err == nil || !strings.Contains(err.Error(), "couldn't create file") {
		t.Errorf("where nothing can be written: %v", err)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ socket, port, want string }{
		{"", "", "127.0.0.1:5037"}, {"", "6000", "127.0.0.1:6000"}, {"tcp:5038", "6000", "127.0.0.1:5038"},
		{"tcp:host:5038", "", "host:5038"},
		{"tcp:[::1]:5038", "", "[::1]:5038"}, {"localfilesystem:/x", "", ""}, {"tcp:", "", ""}, {"", "70000", ""},
		{"", "x", ""}, {"tcp::1", "", ""},
	} {
		t.Run(c.socket, func(t *testing.T) {
			if got, err := adb.Address(c.socket, c.port); got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q %q: %q, %v", c.socket, c.port, got, err)
			}
		})
	}
}
