// Package virtual is a WebAuthn authenticator in software, with one passkey. It
// plays a person for drills and tests, where there is no browser.
package virtual

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
)

// Authenticator answers the options that a page gives to navigator.credentials.
// It is for one goroutine.
type Authenticator struct {
	origin   string
	host     string
	key      *ecdsa.PrivateKey
	id       []byte
	handle   string // the user's, base64url, from the registration's options
	Verifies bool   // sets the flag that the user was verified
}

// New returns an authenticator at a service's address, which verifies its user.
func New(origin string) (*Authenticator, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256([]byte(rand.Text()))
	return &Authenticator{origin: origin, host: u.Hostname(), key: key, id: id[:], Verifies: true}, nil
}

type publicKey struct {
	PublicKey struct {
		Challenge string
		RPID      string
		User      struct{ ID string }
	}
}

func read(options string) (o publicKey, err error) {
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return o, fmt.Errorf("cannot read the options of a passkey: %w", err)
	}
	return o, nil
}

func (a *Authenticator) clientData(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	return text
}

// authData is the authenticator's data: hash of the host name, flags, counter.
func (a *Authenticator) authData(more byte, rest []byte) []byte {
	hash := sha256.Sum256([]byte(a.host))
	flags := more | 0x01 // the user is present
	if a.Verifies {
		flags |= 0x04
	}
	return append(append(hash[:], flags, 0, 0, 0, 0), rest...)
}

// Create answers the options of a registration.
func (a *Authenticator) Create(options string) (string, error) {
	o, err := read(options)
	if err != nil {
		return "", err
	}
	a.handle = o.PublicKey.User.ID
	point, err := a.key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		return "", err
	}
	// A COSE key in CBOR: {1: 2, 3: -7, -1: 1, -2: X, -3: Y}.
	cose := append([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 32}, point[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 32), point[33:]...)
	attested := append(append(make([]byte, 16), 0, byte(len(a.id))), a.id...) // AAGUID, length, id
	data := a.authData(0x40, append(attested, cose...))
	// {"fmt": "none", "attStmt": {}, "authData": data}
	object := append([]byte{0xa3, 0x63}, "fmt"...)
	object = append(append(object, 0x64), "none"...)
	object = append(append(object, 0x67), "attStmt"...)
	object = append(append(object, 0xa0, 0x68), "authData"...)
	object = append(append(object, 0x58, byte(len(data))), data...)
	return a.answer(map[string]any{"clientDataJSON": encode(a.clientData("webauthn.create", o.PublicKey.Challenge)),
		"attestationObject": encode(object)})
}

// Get answers the options of a sign-in or a proof.
func (a *Authenticator) Get(options string) (string, error) {
	o, err := read(options)
	if err != nil {
		return "", err
	}
	client, data := a.clientData("webauthn.get", o.PublicKey.Challenge), a.authData(0, nil)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte{}, data...), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, signed[:])
	if err != nil {
		return "", err
	}
	return a.answer(map[string]any{"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature),
		"userHandle": a.handle})
}

func (a *Authenticator) answer(response map[string]any) (string, error) {
	text, err := json.Marshal(map[string]any{"id": encode(a.id), "rawId": encode(a.id), "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{}})
	return string(text), err
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
