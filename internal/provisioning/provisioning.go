// Package provisioning makes QR codes that enroll new or factory-reset devices
// under a policy (contract 2.7, 4.4, 7.4).
package provisioning

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
)

// Lifetime is how long a code enrolls devices (contract 8).
const Lifetime = 24 * time.Hour

// PersonalUsage is the personal-use mode of a token (contract 4.4).
type PersonalUsage string

// The modes.
const (
	Unspecified PersonalUsage = "UNSPECIFIED"
	Allowed     PersonalUsage = "ALLOWED"
	Disallowed  PersonalUsage = "DISALLOWED"
	Userless    PersonalUsage = "USERLESS"
)

// Token is a fresh enrollment token of a channel.
type Token struct {
	// Payload is the JSON object that the setup wizard reads from the code.
	Payload   []byte
	ExpiresAt time.Time
	// Short has the code written with the wizard's short names, see Shorten.
	Short bool
	// Link adds a work profile to the phone on which it is opened; empty: the code cannot.
	Link string
	// Ref is the channel's own name of the token, for Withdraw.
	Ref string
	// Text is the token as a device is given it.
	Text string
	// Code is the id of the enrollment code.
	Code string
}

// Wanted is what a token is to be.
type Wanted struct {
	Usage    PersonalUsage
	Lifetime time.Duration
	// Code is the id of the enrollment code, which comes back with each device that
	// enrolls; empty: it is not kept.
	Code string
	// Devices is how many it enrolls at most; 0: as many as its channel's tokens do.
	Devices int
}

// Issuer makes enrollment tokens: the platform for PLATFORM policies, the
// agent's link for AGENT ones.
type Issuer interface {
	// Issue returns a new token of the policy. It fails with fault.Provider
	// (retryable) when the vendor did not make one.
	Issue(ctx context.Context, c company.Company, p policy.Policy, w Wanted) (Token, error)
	// Withdraw deletes a token: no device enrolls with it any more. It fails if the vendor or the
	// database did not delete it; a token that is gone is no error.
	Withdraw(ctx context.Context, t Token) error
}

// AppState says what a code of an own-agent policy has a device install.
type AppState int

// The states of the app.
const (
	// AppServed: the app, from an address that the setup wizard can reach.
	AppServed AppState = iota
	// AppMissing: nothing, the service has no app.
	AppMissing
	// AppUnreachable: nothing, the setup wizard would not trust the service's
	// certificate.
	AppUnreachable
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
