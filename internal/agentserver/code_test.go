package agentserver_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/test/needs"
)

// codes are those of a service with a 40-character address, one pin and the app, by what is
// in them, with the version of QR code that docs/android.md gives for each.
func codes(t *testing.T) map[string]struct {
	text    []byte
	version int
} {
	t.Helper()
	ed, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	es, err := protocol.NewPrivateKey(protocol.ES256)
	if err != nil {
		t.Fatal(err)
	}
	const address = "https://devices.site.muster.example:8443"
	if len(address) != 40 {
		t.Fatal("the address has not 40 characters")
	}
	const fixed = "Zb3kQ9x-Lm2Rt_7vNc5Hs8Jw1Yd4Gf6Pa0Ue-Ko3Xi9Bq2"
	digest := fixed[3:46]
	s := &agentserver.Server{PublicURL: address, Signer: agentserver.Signer{Key: ed, ID: "k1"},
		ES256: agentserver.Signer{Key: es, ID: "e1"},
		Pins:  func() ([]string, error) { return []string{digest}, nil },
		App:   agentserver.App{Checksum: digest, Location: address + agentserver.AppPath}}
	long, err := s.Code((agentdevice.ManagerTokenPrefix + fixed + fixed)[:len(access.NewSecret(agentdevice.ManagerTokenPrefix))])
	if err != nil {
		t.Fatal(err)
	}
	// The same code in each run: whether a picture is read depends on its bits.
	long = regexp.MustCompile(`sha256:[\w-]{43}`).ReplaceAll(long, []byte("sha256:"+fixed[:43]))
	network, err := provisioning.Merge(long, provisioning.Wifi{SSID: "Warehouse", Security: provisioning.WPA, Password: "secret-pass-123"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]struct {
		text    []byte
		version int
	}{"long": {long, 24}, "long with Wi-Fi": {network, 27}}
	for name, of := range map[string]struct {
		text    []byte
		version int
	}{"short": {long, 20}, "short with Wi-Fi": {network, 22}} {
		if of.text, err = provisioning.Shorten(of.text); err != nil {
			t.Fatal(err)
		}
		all[name] = of
	}
	return all
}

// A code names the app's package, which an operator's own build may have changed, and a
// class that every build has.
func TestCode_NamesThePackageOfTheApp(t *testing.T) {
	t.Parallel()
	key, err := protocol.NewPrivateKey(protocol.ES256)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "dev.muster.agent/dev.muster.agent.AdminReceiver",
		"com.example.device": "com.example.device/dev.muster.agent.AdminReceiver"} {
		s := &agentserver.Server{PublicURL: "https://muster.example", Signer: agentserver.Signer{Key: key, ID: "k1"},
			ES256: agentserver.Signer{Key: key, ID: "k1"},
			App:   agentserver.App{Checksum: "sum", Package: name}}
		text, err := s.Code("met_token")
		if err != nil || !bytes.Contains(text, []byte(`"`+want+`"`)) {
			t.Errorf("%q: %s, %v, want %s", name, text, err, want)
		}
	}
}

// TestCode_IsRead: a code says nothing twice, has the version that is documented, and is read
// by an independent reader from pictures such as a camera takes: rotated, blurred, with 40 %
// of the contrast.
func TestCode_IsRead(t *testing.T) {
	t.Parallel()
	zbar := needs.Zbar().Of(t)
	for name, code := range codes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			picture, err := provisioning.Draw(code.text)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := png.Decode(bytes.NewReader(picture))
			if err != nil {
				t.Fatal(err)
			}
			drawn := decoded.(*image.Paletted)
			if version := (drawn.Bounds().Dx()/8 - 8 - 17) / 4; version != code.version {
				t.Errorf("%d bytes are a code of version %d, want %d", len(code.text), version, code.version)
			}
			for _, degrees := range []float64{0, 11, 100, 201} {
				if !readable(t, zbar, drawn, degrees, string(code.text)) {
					t.Errorf("turned by about %v degrees: it is not read", degrees)
				}
			}
		})
	}
}

// readable reports whether one of three pictures that a moving camera takes is read as text.
func readable(t *testing.T, zbar string, drawn *image.Paletted, degrees float64, text string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "code.png")
	for _, shaken := range []float64{0, -1.5, 1.5} {
		var out bytes.Buffer
		if err := png.Encode(&out, photograph(drawn, degrees+shaken)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := exec.CommandContext(t.Context(), zbar, "--raw", "--quiet", "-Sdisable", "-Sqr.enable", file).Output()
		if got := strings.TrimSuffix(string(read), "\n"); err == nil && got != text {
			t.Fatalf("turned by %v degrees it reads %q, want %q", degrees+shaken, got, text)
		} else if err == nil {
			return true
		}
	}
	return false
}

// photograph turns a picture, blurs it over most of a module, and leaves it 40 % of its
// contrast. A module has half as many pixels as in the code.
func photograph(of *image.Paletted, degrees float64) *image.Gray {
	side, white := of.Bounds().Dx(), uint8(of.Palette.Index(color.White))
	out := side * 3 / 4
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	picture := image.NewGray(image.Rect(0, 0, out, out))
	const width, contrast = 3, .4 // of the blur, in pixels of the picture to each side
	for y := range out {
		for x := range out {
			sum := 0.
			for by := -width; by <= width; by++ {
				for bx := -width; bx <= width; bx++ {
					dx, dy := 2*float64(x)+float64(bx)+.5-float64(out), 2*float64(y)+float64(by)+.5-float64(out)
					sx, sy := int(math.Floor(cos*dx+sin*dy+float64(side)/2)), int(math.Floor(-sin*dx+cos*dy+float64(side)/2))
					if sx < 0 || sy < 0 || sx >= side || sy >= side || of.ColorIndexAt(sx, sy) == white {
						sum += 255
					}
				}
			}
			picture.SetGray(x, y, color.Gray{Y: uint8(127.5 + (sum/((2*width+1)*(2*width+1))-127.5)*contrast)})
		}
	}
	return picture
}

// TestCode_SaysNothingTwice: no member is there twice, and no key where its digest is.
func TestCode_SaysNothingTwice(t *testing.T) {
	t.Parallel()
	for name, code := range codes(t) {
		text := string(code.text)
		for _, member := range []string{"SERVER_URL", "ENROLLMENT_TOKEN", "COMMAND_KEY\"", "COMMAND_KEY_ES256", "SERVER_PIN", "Warehouse"} {
			if n := strings.Count(text, member); n > 1 {
				t.Errorf("%s: %s is there %d times", name, member, n)
			}
		}
		if n := strings.Count(text, `":"sha256:`); n != 2 {
			t.Errorf("%s: %d digests of keys, want 2: %s", name, n, text)
		}
		if strings.Contains(name, "short") && strings.Contains(text, "android.app.extra") {
			t.Errorf("%s: a long name is left: %s", name, text)
		}
		fmt.Fprintf(t.Output(), "%s: %d bytes\n", name, len(text))
	}
}
