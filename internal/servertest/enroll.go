package servertest

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/test/needs"
)

// Connect binds a company to an enterprise on the environment's platform, as `muster
// company connect` does, and returns the company as it then is.
func (e *Env) Connect(c company.Company) company.Company {
	e.TB.Helper()
	platform, err := e.Admin().Platform(e.Platform(), "http://127.0.0.1")
	page := ""
	if err == nil {
		c, page, err = platform.Connect(e.TB.Context(), c.ID)
	}
	if err != nil || page != "" {
		e.TB.Fatalf("cannot connect %s: %v %s", c.Slug, err, page)
	}
	return c
}

// QRCode asks for a provisioning code and reads it with zbar, an independent
// reader, as a device's camera would.
func (c Client) QRCode(p policy.Policy, body map[string]any) string {
	c.TB.Helper()
	var result struct{ Image struct{ Data string } }
	c.Post("/policies/"+p.ID+"/provisioning-qr-codes", body).Want(c.TB, 201).JSON(c.TB, &result)
	picture, err := base64.StdEncoding.DecodeString(result.Image.Data)
	need(c.TB, err)
	zbar := needs.Zbar().Of(c.TB)
	file := filepath.Join(c.TB.TempDir(), "code.png")
	need(c.TB, os.WriteFile(file, picture, 0o600))
	text, err := exec.CommandContext(c.TB.Context(), zbar, "--raw", "--quiet", "-Sdisable", "-Sqr.enable", file).Output()
	if err != nil {
		c.TB.Fatalf("zbarimg: %v", err)
	}
	return string(text)
}

// Device is an enrolled device: what the service and what the platform call it.
type Device struct {
	AssetID string
	Name    string // enterprises/…/devices/…
}

// ID is the last segment of the device's name.
func (d Device) ID() string { return filepath.Base(d.Name) }

// Enroll enrolls devices with the text of a QR code and waits until the service
// knows them.
func (e *Env) Enroll(c company.Company, want emulator.Enrollment) []Device {
	e.TB.Helper()
	names, err := e.Emulator.Enroll(e.TB.Context(), want)
	need(e.TB, err)
	devices := make([]Device, len(names))
	for i, name := range names {
		devices[i].Name = name
		e.Eventually("the service learns of "+name, func() (err error) {
			devices[i].AssetID, err = e.DB().AssetOfDevice(e.TB.Context(), c.ID, name)
			return err
		})
	}
	return devices
}

// Behave changes how a device behaves.
func (e *Env) Behave(d Device, b emulator.Behavior) {
	e.TB.Helper()
	_, err := e.Emulator.SetBehavior(e.TB.Context(), d.ID(), b, true)
	need(e.TB, err)
}
