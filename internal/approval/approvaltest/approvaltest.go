// Package approvaltest signs approvals in tests: as a person with a passkey (Passkey), and as the service,
// which countersigns (Witness).
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

// Verifier verifies what Passkey signs. Its service has the same key in every process, for the
// tests that start replicas.
func Verifier() approval.Verifier {
	return approval.Verifier{Passkeys: passkeys{}, Service: Witness(0)}
}

// passkeys reads what Passkey.Credential returns.
type passkeys struct{}

func (passkeys) Party() signature.Party { return Party() }

func (passkeys) PublicKey(credential json.RawMessage) (key []byte, err error) {
	return key, json.Unmarshal(credential, &key)
}

// Witness countersigns with an Ed25519 key that depends on the byte alone: the byte, repeated, is the seed.
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

// Passkey is an ES256 passkey (ECDSA with P-256 and SHA-256) whose private key is in memory.
type Passkey struct {
	ID     string // the credential's id, hexadecimal
	Public []byte // SubjectPublicKeyInfo
	key    *ecdsa.PrivateKey
}

// NewPasskey makes a passkey with a random key and id. It panics if the key cannot be made.
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

// Credential is the passkey as tests store it: its public key alone, unlike a credential of WebAuthn.
func (p *Passkey) Credential() json.RawMessage {
	text, _ := json.Marshal(p.Public) // bytes always encode
	return text
}

// Sign signs a document as a browser does for WebAuthn, after it has verified the user. It panics if it cannot.
func (p *Passkey) Sign(document []byte) signature.Signed {
	client, _ := json.Marshal(map[string]any{"type": "webauthn.get", "origin": Party().Origin,
		"challenge": base64.RawURLEncoding.EncodeToString(signature.Challenge(document))})
	const flags = 1 | 4 // the user was present, and verified; the four bytes after it are the signature counter
	rpIDHash := sha256.Sum256([]byte(Party().RPID))
	id, _ := hex.DecodeString(p.ID)
	a := signature.Assertion{ClientData: client, AuthenticatorData: append(rpIDHash[:], flags, 0, 0, 0, 0), CredentialID: id,
		PublicKey: p.Public}
	clientHash := sha256.Sum256(client)
	digest := sha256.Sum256(append(bytes.Clone(a.AuthenticatorData), clientHash[:]...))
	value, err := ecdsa.SignASN1(rand.Reader, p.key, digest[:])
	if err == nil {
		a.Signature, err = signature.LowS(p.Public, value)
	}
	if err != nil {
		panic(err)
	}
	return signature.Signed{Document: document, Assertion: a}
}
