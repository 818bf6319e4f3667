// Package approvaltest has passkeys in software, and a service that countersigns, for tests.
package approvaltest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/signature"
)

// Party is the service as its passkeys know it.
func Party() signature.Party {
	return signature.Party{Origin: "https://muster.test", RPID: "muster.test"}
}

// Verifier verifies what Passkey signs. Its service has the same key in every process.
func Verifier() approval.Verifier { return approval.Verifier{Passkeys: plain{}, Service: Witness(0)} }

// plain reads passkeys whose credential is their public key.
type plain struct{}

func (plain) Party() signature.Party { return Party() }

func (plain) PublicKey(credential json.RawMessage) (key []byte, err error) {
	return key, json.Unmarshal(credential, &key)
}

// Witness countersigns with the key of a seed that repeats the byte.
type Witness byte

func (w Witness) key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(w)}, ed25519.SeedSize))
}

// SignStatement implements signature.Witness.
func (w Witness) SignStatement(statement []byte) []byte { return ed25519.Sign(w.key(), statement) }

// PublicKeys implements signature.Witness.
func (w Witness) PublicKeys() []ed25519.PublicKey {
	return []ed25519.PublicKey{w.key().Public().(ed25519.PublicKey)}
}

// Passkey is a passkey in software, as ES256 has it.
type Passkey struct {
	ID     string // the credential's id, hexadecimal
	Public []byte // SubjectPublicKeyInfo
	key    *ecdsa.PrivateKey
}

// NewPasskey makes a passkey.
func NewPasskey() *Passkey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return &Passkey{ID: hex.EncodeToString([]byte(rand.Text())), Public: public, key: key}
}

// Credential is the passkey as it is stored.
func (p *Passkey) Credential() json.RawMessage {
	text, _ := json.Marshal(p.Public) // bytes always encode
	return text
}

// Sign signs a document.
func (p *Passkey) Sign(document []byte) signature.Signed {
	client, _ := json.Marshal(map[string]any{"type": "webauthn.get", "origin": Party().Origin,
		"challenge": base64.RawURLEncoding.EncodeToString(signature.Challenge(document))})
	host := sha256.Sum256([]byte(Party().RPID))
	id, _ := hex.DecodeString(p.ID)
	a := signature.Assertion{ClientData: client, AuthenticatorData: append(host[:], 5, 0, 0, 0, 0), CredentialID: id, PublicKey: p.Public}
	sum := sha256.Sum256(client)
	digest := sha256.Sum256(append(bytes.Clone(a.AuthenticatorData), sum[:]...))
	value, err := ecdsa.SignASN1(rand.Reader, p.key, digest[:])
	if err == nil {
		a.Signature, err = signature.LowS(p.Public, value)
	}
	if err != nil {
		panic(err)
	}
	return signature.Signed{Document: document, Assertion: a}
}
