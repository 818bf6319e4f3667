// Package passkey speaks WebAuthn with people's authenticators.
package passkey

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/slice"
)

// Ceremonies implements account.Ceremonies for one public address.
type Ceremonies struct{ party *webauthn.WebAuthn }

// ErrAddress says that the service's address has no host name, without which
// there are no passkeys.
var ErrAddress = errors.New("passkeys need a host name in the public address, and https unless it is localhost")

// New returns the ceremonies of a service at a public URL, or ErrAddress.
func New(publicURL string) (*Ceremonies, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || u.Hostname() == "" || u.Scheme != "https" && u.Hostname() != "localhost" {
		return nil, ErrAddress
	}
	party, err := webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: "Muster",
		RPOrigins: []string{u.Scheme + "://" + u.Host}})
	return &Ceremonies{party}, err
}

// person is a user as the library wants one.
type person struct {
	user  account.User
	known []webauthn.Credential
}

func (p person) WebAuthnID() []byte                         { return []byte(p.user.ID) }
func (p person) WebAuthnName() string                       { return p.user.Email }
func (p person) WebAuthnDisplayName() string                { return p.user.Name }
func (p person) WebAuthnCredentials() []webauthn.Credential { return p.known }

func personOf(u account.User, known []account.Passkey) (person, error) {
	p := person{user: u}
	for _, k := range known {
		var c webauthn.Credential
		if err := json.Unmarshal(k.Credential, &c); err != nil {
			return p, err
		}
		p.known = append(p.known, c)
	}
	return p, nil
}

// BeginAdd implements account.Ceremonies.
func (c *Ceremonies) BeginAdd(u account.User, known []account.Passkey) (options, state json.RawMessage, err error) {
	p, err := personOf(u, known)
	if err != nil {
		return nil, nil, err
	}
	excluded := slice.Map(p.known, func(k webauthn.Credential) protocol.CredentialDescriptor { return k.Descriptor() })
	return pack(c.party.BeginRegistration(p, webauthn.WithExclusions(excluded),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			// Without user verification a passkey proves nothing by itself later.
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: protocol.VerificationRequired})))
}

// FinishAdd implements account.Ceremonies.
func (c *Ceremonies) FinishAdd(u account.User, state, answer json.RawMessage) (account.Passkey, error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return account.Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBody(bytes.NewReader(answer))
	if err != nil {
		return account.Passkey{}, refused(err)
	}
	return keep(c.party.CreateCredential(person{user: u}, session, parsed))
}

// BeginProof implements account.Ceremonies.
func (c *Ceremonies) BeginProof(u account.User, known []account.Passkey, verify bool) (options, state json.RawMessage, err error) {
	verification := protocol.VerificationPreferred
	if verify {
		verification = protocol.VerificationRequired
	}
	return c.begin(u, known, webauthn.WithUserVerification(verification))
}

// begin asks u for one of their passkeys.
func (c *Ceremonies) begin(u account.User, known []account.Passkey, with ...webauthn.LoginOption) (options, state json.RawMessage,
	err error) {
	p, err := personOf(u, known)
	if err != nil {
		return nil, nil, err
	}
	return pack(c.party.BeginLogin(p, with...))
}

// FinishProof implements account.Ceremonies.
func (c *Ceremonies) FinishProof(u account.User, known []account.Passkey, state, answer json.RawMessage) (account.Passkey, error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return account.Passkey{}, err
	}
	p, err := personOf(u, known)
	if err != nil {
		return account.Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBody(bytes.NewReader(answer))
	if err != nil {
		return account.Passkey{}, refused(err)
	}
	return keep(c.party.ValidateLogin(p, session, parsed))
}

// BeginSignIn implements account.Ceremonies.
func (c *Ceremonies) BeginSignIn() (options, state json.RawMessage, err error) {
	return pack(c.party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired)))
}

// FinishSignIn implements account.Ceremonies.
func (c *Ceremonies) FinishSignIn(state, answer json.RawMessage,
	find func(id string) (account.User, []account.Passkey, error)) (account.Passkey, string, error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return account.Passkey{}, "", err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBody(bytes.NewReader(answer))
	if err != nil {
		return account.Passkey{}, "", refused(err)
	}
	var failed error // of the store, not of the passkey
	_, credential, err := c.party.ValidatePasskeyLogin(func(id, _ []byte) (webauthn.User, error) {
		u, known, err := find(hex.EncodeToString(id))
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			failed = err
		}
		if err != nil {
			return nil, err
		}
		return personOf(u, known)
	}, session, parsed)
	if failed != nil {
		return account.Passkey{}, "", failed
	}
	p, err := keep(credential, err)
	return p, session.Challenge, err
}

// pack is a ceremony that the library began: what the browser gets, and the state.
func pack(options any, session *webauthn.SessionData, err error) (json.RawMessage, json.RawMessage, error) {
	if err != nil {
		return nil, nil, err
	}
	o, err := json.Marshal(options)
	if err != nil {
		return nil, nil, err
	}
	s, err := json.Marshal(session)
	return o, s, err
}

// keep is the passkey of an answer that the library checked, with the error of the check. A counter that went back
// means that the passkey was copied: it proves nothing.
func keep(c *webauthn.Credential, err error) (account.Passkey, error) {
	if err == nil && c.Authenticator.CloneWarning {
		err = errors.New("the authenticator's counter went back")
	}
	if err != nil {
		return account.Passkey{}, refused(err)
	}
	text, err := json.Marshal(c)
	return account.Passkey{ID: hex.EncodeToString(c.ID), Credential: text}, err
}

func refused(cause error) error {
	return fault.New(fault.Unauthorized, "the passkey was not accepted: try again").Because(cause)
}
