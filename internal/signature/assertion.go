// Package signature is what a person signs with a passkey: a document in one
// canonical form, whose SHA-256 is the challenge of a WebAuthn assertion. The document,
// the assertion and the public key are all that is needed to check it.
//
// It knows no database and no clock. Who may sign what is decided elsewhere.
package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"math/big"

	"github.com/go-json-experiment/json"
)

// Challenge is the challenge of a document: its SHA-256.
func Challenge(document []byte) []byte {
	sum := sha256.Sum256(document)
	return sum[:]
}

// Assertion is a passkey's answer, with the public key that checks it.
type Assertion struct {
	AuthenticatorData []byte
	ClientData        []byte // JSON, as the browser wrote it
	Signature         []byte // of ECDSA with the lower s, which LowS makes
	CredentialID      []byte
	PublicKey         []byte // SubjectPublicKeyInfo in DER
}

// Flags of the authenticator's data.
const (
	userPresent  = 0x01
	userVerified = 0x04
	hasMore      = 0x40 | 0x80 // attested credential data, extensions
	headLength   = 37          // hash of the host name, flags, counter
)

// Verify returns nil if the passkey signed the document at the party, and had
// verified its user. Every part has one form that passes: another encoding of the
// same signature is refused.
func (a Assertion) Verify(document []byte, at Party) error {
	if !IsCanonical(document) {
		return errors.New("the document is not in the canonical form")
	}
	if err := checkClientData(a.ClientData, document, at.Origin); err != nil {
		return err
	}
	host := sha256.Sum256([]byte(at.RPID))
	data := a.AuthenticatorData
	switch {
	case len(data) < headLength:
		return errors.New("the authenticator's data are too short")
	case !bytes.Equal(data[:32], host[:]):
		return errors.New("the passkey signed for another host name")
	case data[32]&userPresent == 0 || data[32]&userVerified == 0:
		return errors.New("the passkey did not verify its user")
	case data[32]&hasMore == 0 && len(data) != headLength:
		return errors.New("the authenticator's data are too long")
	}
	client := sha256.Sum256(a.ClientData)
	return checkSignature(a.PublicKey, append(bytes.Clone(data), client[:]...), a.Signature)
}

// checkClientData reads members by their exact names, none of which occurs twice.
func checkClientData(text, document []byte, origin string) error {
	var client map[string]any
	if err := json.Unmarshal(text, &client); err != nil {
		return errors.New("the client's data are not JSON")
	}
	crossed, _ := client["crossOrigin"].(bool)
	_, above := client["topOrigin"]
	switch {
	case client["type"] != "webauthn.get":
		return errors.New("the passkey answered another kind of question")
	case client["origin"] != origin:
		return errors.New("the passkey answered at another address")
	case crossed || above:
		return errors.New("the passkey answered inside another page")
	case client["challenge"] != encode(Challenge(document)):
		return errors.New("the passkey signed another document")
	}
	return nil
}

var errSignature = errors.New("the signature is not of this document, or not by this key")

func checkSignature(publicKey, signed, signature []byte) error {
	key, err := parseKey(publicKey)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(signed)
	ok := false
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		low, err := LowS(publicKey, signature)
		ok = err == nil && bytes.Equal(low, signature) && ecdsa.VerifyASN1(key, sum[:], signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, signed, signature)
	}
	if !ok {
		return errSignature
	}
	return nil
}

// parseKey reads a public key of ES256, RS256 or EdDSA that is written in DER's one
// form.
func parseKey(text []byte) (any, error) {
	key, err := x509.ParsePKIXPublicKey(text)
	if err != nil {
		return nil, errors.New("the public key cannot be read")
	}
	if again, err := x509.MarshalPKIXPublicKey(key); err != nil || !bytes.Equal(again, text) {
		return nil, errors.New("the public key is written in an unusual form")
	}
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 {
			return key, nil
		}
	case ed25519.PublicKey:
		return key, nil
	}
	return nil, errors.New("the passkey's kind of key cannot sign documents: use a passkey of ES256, RS256 or EdDSA")
}

// CheckKey returns nil for a public key that documents can be signed with.
func CheckKey(publicKey []byte) error {
	_, err := parseKey(publicKey)
	return err
}

// LowS is the one form of a signature that is kept: of the two values of s with which
// a signature of ECDSA is right, the lower, in DER. Authenticators answer with either.
// Signatures of other algorithms have one form, and stay as they are.
func LowS(publicKey, signature []byte) ([]byte, error) {
	key, err := parseKey(publicKey)
	if err != nil {
		return nil, err
	}
	curve, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return signature, nil
	}
	var parts struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(signature, &parts)
	if err != nil || len(rest) > 0 || parts.R == nil || parts.S == nil {
		return nil, errSignature
	}
	n := curve.Params().N
	if parts.S.Cmp(new(big.Int).Rsh(n, 1)) > 0 {
		parts.S.Sub(n, parts.S)
	}
	return asn1.Marshal(parts)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decode takes the one text that encode writes.
func decode(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || encode(b) != text {
		return nil, errors.New("a part is not base64url without padding")
	}
	return b, nil
}
