package account

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// ProviderSignIn is a sign-in at a company's provider that is under way. It travels
// sealed in a cookie of the browser that began it, so that strangers who begin
// sign-ins write nothing to the database.
type ProviderSignIn struct {
	CompanyID string `json:"c"`
	Next      string `json:"n,omitempty"` // where the person goes then
	Proves    string `json:"u,omitempty"` // the user who proves their identity again; empty: signs in
	// Invitation is the token of the invitation that the person accepts; empty: none.
	Invitation string    `json:"i,omitempty"`
	State      string    `json:"s"`
	Nonce      string    `json:"o"`
	PKCE       string    `json:"p"`
	ExpiresAt  time.Time `json:"e"`
}

// Return is what a provider sends back with the person.
type Return struct{ State, Code, Issuer string }

// maxProviderNext bounds Next, in bytes, so that the cookie fits into the 4096
// bytes that browsers keep. A person with a longer one arrives at the overview.
const maxProviderNext = 2200

// purposeProviderSignIn is part of what seals the cookie: with another text, a sign-in
// that is under way during an upgrade could not be finished.
const purposeProviderSignIn = "journey to an identity provider"

// StartByEmail begins the sign-in of a person with the address: fault.NotFound
// if no provider signs its domain in. Finish takes the cookie.
func (s Federation) StartByEmail(ctx context.Context, email, next string) (address, cookie string, err error) {
	normal, err := NormalEmail(email)
	if err != nil {
		return "", "", err
	}
	p, err := s.Providers.ProviderByDomain(ctx, domainOf(normal))
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, p, ProviderSignIn{Next: next})
}

// StartInvited begins the sign-in by which a person accepts an invitation: fault.NotFound if
// no provider signs their domain in, fault.Refused if the invitation is over.
func (s Federation) StartInvited(ctx context.Context, token string) (address, cookie string, err error) {
	u, _, err := invitedBy(ctx, s.Steps, s.Users, token)
	if err != nil {
		return "", "", err
	}
	p, err := s.Providers.Provider(ctx, u.CompanyID)
	if err == nil && (!p.Enabled || p.checkDomain(u.Email) != nil) {
		err = fault.New(fault.NotFound, "company sign-in is turned off")
	}
	if err == nil {
		err = p.checkProved(p, u)
	}
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, p, ProviderSignIn{Next: "/", Invitation: token})
}

// StartProof begins to prove again that it is u.
func (s Federation) StartProof(ctx context.Context, u User, next string) (address, cookie string, err error) {
	p, err := s.Providers.Provider(ctx, u.CompanyID)
	if err == nil && !p.Enabled {
		err = fault.New(fault.NotFound, "company sign-in is turned off")
	}
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, p, ProviderSignIn{Next: next, Proves: u.ID})
}

func (s Federation) start(ctx context.Context, p IdentityProvider, signIn ProviderSignIn) (address, cookie string, err error) {
	signIn.CompanyID, signIn.ExpiresAt = p.CompanyID, s.Now().Add(PendingLife)
	signIn.State, signIn.Nonce = access.RandomText(access.SecretLength), access.RandomText(access.SecretLength)
	signIn.PKCE = access.RandomText(64)
	if len(signIn.Next) > maxProviderNext {
		signIn.Next = "/"
	}
	if address, err = s.Client.Address(ctx, p, signIn); err != nil {
		return "", "", err
	}
	cookie, err = sealText(s.Sealer, purposeProviderSignIn, signIn)
	return address, cookie, err
}

// open returns the sign-in in a cookie, whose state must be the one that came
// back: fault.Refused for one that this browser did not begin, or that is over.
func (s Federation) open(cookie, state string) (signIn ProviderSignIn, err error) {
	err = openText(s.Sealer, purposeProviderSignIn, cookie, &signIn)
	if err != nil || subtle.ConstantTimeCompare([]byte(signIn.State), []byte(state)) != 1 {
		return ProviderSignIn{}, fault.New(fault.Refused, "this sign-in was not begun in this browser: start again").Because(err)
	}
	if !pends(signIn.ExpiresAt, s.Now()) {
		return ProviderSignIn{}, errTooLate()
	}
	return signIn, nil
}
