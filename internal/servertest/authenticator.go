package servertest

import (
	"testing"

	"github.com/musterhq/muster/internal/passkey/virtual"
)

// Authenticator is virtual.Authenticator for tests: it fails them.
type Authenticator struct {
	*virtual.Authenticator
	tb testing.TB
}

// NewAuthenticator returns an authenticator at the service's address, which
// verifies its user.
func NewAuthenticator(tb testing.TB, origin string) *Authenticator {
	tb.Helper()
	a, err := virtual.New(origin)
	need(tb, err)
	return &Authenticator{a, tb}
}

// Create answers the options of a registration.
func (a *Authenticator) Create(options string) string {
	return a.answer(a.Authenticator.Create(options))
}

// Get answers the options of a sign-in or a proof.
func (a *Authenticator) Get(options string) string { return a.answer(a.Authenticator.Get(options)) }

func (a *Authenticator) answer(text string, err error) string {
	a.tb.Helper()
	need(a.tb, err)
	return text
}

// AddPasskey adds the passkey to the account of a person who has proved their
// identity.
func (v *PortalClient) AddPasskey(a *Authenticator) Page {
	v.TB.Helper()
	page := v.Get("/account/passkeys/new").Want(v.TB, 200)
	return v.Post("/account/passkeys", "token", page.Field(v.TB, "token"), "name", "Key", "answer", a.Create(page.Options(v.TB)))
}
