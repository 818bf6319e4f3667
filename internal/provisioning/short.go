package provisioning

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// shortNames are what the setup wizard of Android 12L and newer also calls its extras
// (ExtrasProvisioningDataParser in AOSP). Older wizards do not know them.
var shortNames = map[string]string{ //nolint:gochecknoglobals // a table that is never written to
	"android.app.extra.PROVISIONING_DEVICE_ADMIN_COMPONENT_NAME":            "a.a.e.PDACN",
	"android.app.extra.PROVISIONING_DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION": "a.a.e.PDAPDL",
	"android.app.extra.PROVISIONING_DEVICE_ADMIN_SIGNATURE_CHECKSUM":        "a.a.e.PDASC",
	"android.app.extra.PROVISIONING_LEAVE_ALL_SYSTEM_APPS_ENABLED":          "a.a.e.PLASAE",
	"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE":                    "a.a.e.PAEB",
	extra + "SSID":          "a.a.e.PWS",
	extra + "HIDDEN":        "a.a.e.PWH",
	extra + "SECURITY_TYPE": "a.a.e.PWST",
	extra + "PASSWORD":      "a.a.e.PWP",
}

// Shorten returns the payload of a code with the wizard's short names. Names that it has no
// short one for, and all values, stay as they are.
func Shorten(payload []byte) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(payload))
	var out bytes.Buffer
	to := jsontext.NewEncoder(&out)
	for {
		depth, isName := in.StackDepth(), false
		if kind, length := in.StackIndex(depth); depth == 1 && kind == '{' {
			isName = length%2 == 0
		}
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, errors.New("the payload of the enrollment token is not well-formed JSON")
		}
		if short := shortNames[token.String()]; isName && short != "" {
			token = jsontext.String(short)
		}
		if err := to.WriteToken(token); err != nil {
			return nil, err
		}
	}
}
