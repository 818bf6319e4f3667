package passkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"math/big"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// Party implements approval.Passkeys.
func (c *Ceremonies) Party() signature.Party {
	return signature.Party{Origin: c.party.Config.RPOrigins[0], RPID: c.party.Config.RPID}
}

// BeginSigning implements account.Ceremonies: the challenge is the document's.
func (c *Ceremonies) BeginSigning(u account.User, known []account.Passkey, document []byte) (options, state json.RawMessage, err error) {
	return c.begin(u, known, webauthn.WithUserVerification(protocol.VerificationRequired),
		webauthn.WithChallenge(signature.Challenge(document)))
}

// FinishSigning implements account.Ceremonies. What it returns has passed the check
// that apply and `muster approval verify` make.
func (c *Ceremonies) FinishSigning(u account.User, known []account.Passkey,
	document, state, answer []byte) (account.Passkey, signature.Assertion, error) {
	var a signature.Assertion
	kept, err := c.FinishProof(u, known, state, answer)
	if err != nil {
		return kept, a, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBody(bytes.NewReader(answer))
	if err != nil {
		return kept, a, refused(err)
	}
	if a.PublicKey, err = c.PublicKey(kept.Credential); err != nil {
		return kept, a, fault.New(fault.Refused, "this passkey's kind of key cannot sign documents: use another passkey").Because(err)
	}
	response := parsed.Raw.AssertionResponse
	a.AuthenticatorData, a.ClientData, a.CredentialID = response.AuthenticatorData, response.ClientDataJSON, parsed.RawID
	if a.Signature, err = signature.LowS(a.PublicKey, response.Signature); err == nil {
		err = a.Verify(document, c.Party())
	}
	if err != nil {
		return kept, a, refused(err)
	}
	return kept, a, nil
}

// PublicKey implements approval.Passkeys.
func (c *Ceremonies) PublicKey(kept json.RawMessage) ([]byte, error) {
	var credential webauthn.Credential
	if err := json.Unmarshal(kept, &credential); err != nil {
		return nil, err
	}
	return publicKey(credential.PublicKey)
}

// publicKey translates a key of COSE whose algorithm documents can be signed with.
func publicKey(cose []byte) (text []byte, err error) {
	parsed, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return nil, err
	}
	var key any
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		if k.Algorithm == int64(webauthncose.AlgES256) {
			key, err = k.ToECDSA()
		}
	case webauthncose.RSAPublicKeyData:
		if k.Algorithm == int64(webauthncose.AlgRS256) {
			var e int
			e, err = webauthncose.ParseRSAPublicKeyDataExponent(&k)
			key = &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: e}
		}
	case webauthncose.OKPPublicKeyData:
		if k.Algorithm == int64(webauthncose.AlgEdDSA) && len(k.XCoord) == ed25519.PublicKeySize {
			key = ed25519.PublicKey(k.XCoord)
		}
	}
	if err == nil && key == nil {
		err = errors.New("the key's algorithm is none of ES256, RS256 and EdDSA")
	}
	if err != nil {
		return nil, err
	}
	if text, err = x509.MarshalPKIXPublicKey(key); err == nil {
		err = signature.CheckKey(text)
	}
	return text, err
}
