package adb_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// hosted is a device whose shell is this machine's.
func hosted(t *testing.T, old bool) (adb.Server, *adbtest.Device) {
	t.Helper()
	d := &adbtest.Device{Serial: "S1", Root: t.TempDir(), Old: old, Shell: adbtest.HostShell}
	return adb.Server{Address: adbtest.NewServer(t, d).Address}, d
}

func TestVersionAndDevices(t *testing.T) {
	t.Parallel()
	all := []*adbtest.Device{{Serial: "R58M123ABC"}, {Serial: "emulator-5554", State: "offline"}, {Serial: "192.168.1.5:5555", State: "unauthorized"},
		{Serial: "P1", State: "no permissions (user x is not in the plugdev group); see [http://example]"}, {Serial: "evil\nR58M device"}, {Serial: "-s"}}
	s := adb.Server{Address: adbtest.NewServer(t, all...).Address}
	if version, err := s.Version(t.Context()); err != nil || version != 41 {
		t.Errorf("version %d, %v", version, err)
	}
	got, err := s.Devices(t.Context())
	want := []adb.Device{{Serial: "R58M123ABC", State: adb.Online}, {Serial: "emulator-5554", State: adb.Offline},
		{Serial: "192.168.1.5:5555", State: adb.Unauthorized}, {Serial: "P1", State: adb.NoPermissions}, {Serial: "R58M", State: adb.Online}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("devices %+v, %v", got, err)
	}
}

func TestTrack(t *testing.T) {
	t.Parallel()
	fake := adbtest.NewServer(t)
	var seen []int
	end := errors.New("seen enough")
	err := adb.Server{Address: fake.Address}.Track(t.Context(), func(all []adb.Device) error {
		seen = append(seen, len(all))
		switch len(seen) {
		case 1:
			fake.Connect(&adbtest.Device{Serial: "A"}, &adbtest.Device{Serial: "B"})
		case 2:
			fake.Connect(&adbtest.Device{Serial: "B"})
		case 3:
			return end
		}
		return nil
	})
	if !errors.Is(err, end) || !reflect.DeepEqual(seen, []int{0, 2, 1}) {
		t.Errorf("seen %v, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = adb.Server{Address: fake.Address}.Track(ctx, func([]adb.Device) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"shell protocol": false, "before Android 7": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := hosted(t, old)
			got, err := s.Run(t.Context(), "S1", "sh", "-c", "printf 'a\\nb'; echo no >&2; exit 7")
			if err != nil || got.Code != 7 {
				t.Errorf("%+v, %v", got, err)
			}
			if want := (adb.Output{Out: "a\nb", Err: "no\n", Code: 7}); !old && got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if old && !strings.HasPrefix(got.Out, "a\nb") {
				t.Errorf("%+v", got)
			}
			if got, err := s.Run(t.Context(), "S1", "true"); err != nil || got.Code != 0 || got.Out != "" {
				t.Errorf("true: %+v, %v", got, err)
			}
		})
	}
	s, _ := hosted(t, false)
	if _, err := s.Run(t.Context(), "S1", "a\x00b"); err == nil {
		t.Error("a NUL went through")
	}
	if _, err := s.Run(t.Context(), "S2", "true"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("an unknown device: %v", err)
	}
	if got, err := s.Run(t.Context(), "S1", "sh", "-c", "head -c 3000000 /dev/zero"); err != nil || len(got.Out) != 1<<20 {
		t.Errorf("of much output %d bytes were kept, %v", len(got.Out), err)
	}
}

// Whatever the words are, the shell reads back the same.
func TestQuoting(t *testing.T) {
	t.Parallel()
	s, _ := hosted(t, false)
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`['"\\$`+"`"+`;&|<>(){}*?~! \n\t#=a-]{0,12}`), rapid.String()), 1, 4).Draw(r, "words")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "\x00", "")
		}
		got, err := s.Run(t.Context(), "S1", append([]string{"printf", `%s\0`}, words...)...)
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
		words, failed := adbtest.Words(t.Context(), line)
		if err != nil || failed != nil || !reflect.DeepEqual(words, []string{a, b}) {
			t.Fatalf("%q %q came as %q (%v, %v)", a, b, words, err, failed)
		}
	})
}

// What a device writes is read within bounds, or refused.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("OKAYOKAY\x01\x02\x00\x00\x00hi\x03\x01\x00\x00\x00\x07"))
	f.Add([]byte("OKAYFAIL0003no\n"))
	f.Add([]byte("OKAYOKAY\x01\xff\xff\xff\xffhi"))
	f.Fuzz(func(t *testing.T, said []byte) {
		s := adb.Server{Address: saying(t, []byte("OKAY000dcmd,shell_v2,"), said)}
		if got, err := s.Run(t.Context(), "S1", "true"); err == nil && got.Code == 0 && !bytes.Contains(said, []byte{3, 1, 0, 0, 0, 0}) {
			t.Fatalf("success out of %q", said)
		}
	})
}

func FuzzDevices(f *testing.F) {
	f.Add("S1\tdevice\nS2  no permissions (x)\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range adb.ParseDevices(text) {
			if strings.ContainsAny(d.Serial, " \t\n';") || strings.ContainsAny(string(d.State), "\n\x1b") {
				t.Fatalf("%q", d)
			}
		}
	})
}

// saying is a server that says something to whoever connects, whatever they ask,
// something else to each.
func saying(t *testing.T, parts ...[]byte) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for _, part := range parts {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(part)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s, d := hosted(t, false)
	content := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	if there, err := s.Exists(t.Context(), "S1", "/data/it's here"); err != nil || there {
		t.Errorf("before: %v, %v", there, err)
	}
	if err := s.Push(t.Context(), "S1", "/data/it's here", 0o700, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(d.Root, "data/it's here"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the device has %d bytes, %v", len(got), err)
	}
	if there, err := s.Exists(t.Context(), "S1", "/data/it's here"); err != nil || !there {
		t.Errorf("after: %v, %v", there, err)
	}
	if err := s.Push(t.Context(), "S1", "/data/it's here/below", 0o700, strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "couldn't create file") {
		t.Errorf("where nothing can be written: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"FAIL0007no\x1b[31m": "adb: no[31m", "HTTP/1.1 400": "no adb server", "OKAYzzzz": "no length",
		"OKAY0004zzzz": "no adb server", "OKAY00ffzz": "connection ended", "OKAY": "connection ended", "": "connection ended"} {
		s := adb.Server{Address: saying(t, []byte(said))}
		if _, err := s.Version(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", said, err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	if _, err := (adb.Server{Address: nobody}).Version(t.Context()); !errors.Is(err, adb.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ socket, port, want string }{
		{"", "", "127.0.0.1:5037"}, {"", "6000", "127.0.0.1:6000"}, {"tcp:5038", "6000", "127.0.0.1:5038"}, {"tcp:host:5038", "", "host:5038"},
		{"tcp:[::1]:5038", "", "[::1]:5038"}, {"localfilesystem:/x", "", ""}, {"tcp:", "", ""}, {"", "70000", ""}, {"", "x", ""}, {"tcp::1", "", ""},
	} {
		if got, err := adb.Address(c.socket, c.port); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %q: %q, %v", c.socket, c.port, got, err)
		}
	}
}
