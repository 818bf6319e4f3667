// Package provisioning makes QR codes that enroll new or factory-reset devices
// under a policy (contract 2.7, 4.4, 7.4).
package provisioning

import (
	"context"
	"time"

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
	// Withdraw deletes a token: no device enrolls with it any more.
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
