package protocol

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Algorithm names a signature scheme.
type Algorithm string

// The algorithms: Ed25519, and P-256 with SHA-256 (ASN.1 signatures) for keys
// that an Android Keystore holds.
const (
	Ed25519 Algorithm = "ed25519"
	ES256   Algorithm = "es256"
)

// ErrSignature is returned for a signature that does not verify, ErrKey for a key
// that cannot verify.
var (
	ErrSignature = errors.New("agentproto: signature does not verify")
	ErrKey       = errors.New("agentproto: this is no key that can verify")
)

var text64 = base64.RawURLEncoding.Strict() //nolint:gochecknoglobals // an Encoding does not change

// canonical decodes text that stands for bytes in one way only. The standard
// decoder passes over line breaks: one key would have many texts.
func canonical(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrSignature
	}
	return text64.DecodeString(text)
}

// PublicKey is a verifying key as it travels: the algorithm and the
// SubjectPublicKeyInfo in base64url.
type PublicKey struct {
	Algorithm Algorithm `json:"alg"`
	SPKI      string    `json:"spki"`
}

// digestPrefix begins the text that names a key by its digest.
const digestPrefix = "sha256:"

// Digest is the SHA-256 of data in base64url.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return text64.EncodeToString(sum[:])
}

// Named reports whether name means this key: it is the key's SPKI, or "sha256:"
// with the Digest of the SPKI's bytes.
func (k PublicKey) Named(name string) bool {
	digest, short := strings.CutPrefix(name, digestPrefix)
	if !short {
		return k.SPKI == name
	}
	spki, err := canonical(k.SPKI)
	return err == nil && Digest(spki) == digest
}

// Name is the short text that means this key, see Named.
func (k PublicKey) Name() (string, error) {
	spki, err := canonical(k.SPKI)
	return digestPrefix + Digest(spki), err
}

// Check returns ErrKey for a key that can verify nothing: it is no key, or one of
// another algorithm than it says.
func (k PublicKey) Check() error {
	_, err := k.parse()
	return err
}

// PrivateKey signs with one of the algorithms.
type PrivateKey struct {
	signer crypto.Signer // an ed25519.PrivateKey or an *ecdsa.PrivateKey
}

// NewPrivateKey makes a key of the algorithm.
func NewPrivateKey(alg Algorithm) (PrivateKey, error) {
	switch alg {
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return PrivateKey{key}, err
	case ES256:
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return PrivateKey{key}, err
	}
	return PrivateKey{}, fmt.Errorf("agentproto: unknown algorithm %q", alg)
}

// ParsePrivateKey reads what Marshal wrote.
func ParsePrivateKey(pkcs8 []byte) (PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("cannot read private key: %w", err)
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return PrivateKey{key}, nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return PrivateKey{key}, nil
		}
	}
	return PrivateKey{}, errors.New("cannot use private key: neither Ed25519 nor P-256")
}

// Marshal writes the key as PKCS #8.
func (k PrivateKey) Marshal() ([]byte, error) {
	return x509.MarshalPKCS8PrivateKey(k.signer)
}

// Public returns the key that verifies.
func (k PrivateKey) Public() (PublicKey, error) {
	alg, public := ES256, k.signer.Public()
	if _, ed := public.(ed25519.PublicKey); ed {
		alg = Ed25519
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	return PublicKey{Algorithm: alg, SPKI: text64.EncodeToString(spki)}, err
}

// Sign signs message, whose first line names what it is.
func (k PrivateKey) Sign(message []byte) (string, error) {
	if ed, ok := k.signer.(ed25519.PrivateKey); ok {
		return text64.EncodeToString(ed25519.Sign(ed, message)), nil
	}
	sum := sha256.Sum256(message)
	sig, err := k.signer.Sign(nil, sum[:], crypto.SHA256) // deterministic (RFC 6979), as Ed25519 is
	return text64.EncodeToString(sig), err
}

// parse reads the key: an Ed25519 key, or one on P-256, as its algorithm says.
func (k PublicKey) parse() (any, error) {
	spki, err := canonical(k.SPKI)
	if err != nil {
		return nil, ErrKey
	}
	public, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, ErrKey
	}
	switch public := public.(type) {
	case ed25519.PublicKey:
		if k.Algorithm == Ed25519 {
			return public, nil
		}
	case *ecdsa.PublicKey:
		if k.Algorithm == ES256 && public.Curve == elliptic.P256() {
			return public, nil
		}
	}
	return nil, ErrKey
}

// Verify returns ErrSignature unless sig is the key's signature of message.
func (k PublicKey) Verify(message []byte, sig string) error {
	raw, err := canonical(sig)
	if err != nil {
		return ErrSignature
	}
	public, _ := k.parse() // nil: nothing verifies
	good := false
	switch public := public.(type) {
	case ed25519.PublicKey:
		good = ed25519.Verify(public, message, raw)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		good = ecdsa.VerifyASN1(public, sum[:], raw)
	}
	if !good {
		return ErrSignature
	}
	return nil
}

// Request is what a device signs of a request.
type Request struct {
	Method   string
	Path     string // with the query, as sent
	Device   string
	Time     int64 // Unix milliseconds
	Sequence int64
	Body     []byte
}

// Message is the text that is signed: one line an item.
func (r Request) Message() []byte {
	sum := sha256.Sum256(r.Body)
	return []byte(strings.Join([]string{"muster-agent-v1", r.Method, r.Path, r.Device,
		strconv.FormatInt(r.Time, 10), strconv.FormatInt(r.Sequence, 10), hex.EncodeToString(sum[:])}, "\n"))
}

// EnrollMessage is the text that proves, at enrollment, that the device holds
// the key and means these facts with this token.
func EnrollMessage(token string, key PublicKey, facts []byte, unixMilli int64) []byte {
	secret, sum := sha256.Sum256([]byte(token)), sha256.Sum256(facts)
	return []byte(strings.Join([]string{"muster-enroll-v1", hex.EncodeToString(secret[:]), string(key.Algorithm),
		key.SPKI, hex.EncodeToString(sum[:]), strconv.FormatInt(unixMilli, 10)}, "\n"))
}

// FormerMessage is the text that a device's former key signs when the device
// enrolls again: the same as at any enrollment, and the former device.
func FormerMessage(former, token string, key PublicKey, facts []byte, unixMilli int64) []byte {
	return append([]byte("muster-reenroll-v1\n"+former+"\n"), EnrollMessage(token, key, facts, unixMilli)...)
}

// RotateMessage is the text that the old and the new key sign at a rotation.
func RotateMessage(device string, next PublicKey, sequence int64) []byte {
	return []byte(strings.Join([]string{"muster-rotate-v1", device, string(next.Algorithm), next.SPKI,
		strconv.FormatInt(sequence, 10)}, "\n"))
}

// Envelope is something that the service says with authority.
type Envelope struct {
	Kind    string `json:"kind"`    // what the payload is, part of what is signed
	Payload string `json:"payload"` // JSON in base64url
	KeyID   string `json:"keyId"`
	Sig     string `json:"sig"`
}

// The kinds of envelopes.
const (
	KindCommand    = "command"    // Command
	KindPolicy     = "policy"     // Policy
	KindAssignment = "assignment" // Assignment
	KindTombstone  = "tombstone"  // Tombstone
	KindTime       = "time"       // Time
	KindKey        = "key"        // CommandKey
	KindEnrolled   = "enrolled"   // Enrolled
)

// Seal signs v as an envelope of the kind.
func Seal(key PrivateKey, keyID, kind string, v any) (Envelope, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return Envelope{}, err
	}
	e := Envelope{Kind: kind, Payload: text64.EncodeToString(payload), KeyID: keyID}
	e.Sig, err = key.Sign(e.message())
	return e, err
}

// Open verifies the envelope as one of the kind and decodes its payload into v.
func (e Envelope) Open(key PublicKey, kind string, v any) error {
	if e.Kind != kind {
		return fmt.Errorf("agentproto: a %q where a %q was expected", e.Kind, kind)
	}
	if err := key.Verify(e.message(), e.Sig); err != nil {
		return err
	}
	payload, err := text64.DecodeString(e.Payload)
	if err != nil {
		return ErrSignature
	}
	return json.Unmarshal(payload, v)
}

// OpenEnrolled opens the answer to an enrollment. It is signed with the key that it
// names, for the device's key and for this very proof; named is what the code says
// about that key (see PublicKey.Named), empty if it says nothing.
func (e Envelope) OpenEnrolled(named string, device PublicKey, proof string) (Enrolled, error) {
	var claimed, signed Enrolled
	payload, err := canonical(e.Payload)
	if err != nil || json.Unmarshal(payload, &claimed) != nil {
		return signed, errors.New("the service's answer to the enrollment is not signed")
	}
	key := claimed.CommandKey
	switch {
	case named != "" && !key.Key.Named(named):
		return signed, errors.New("the answering server does not have the command key that the code names: create a new code, " +
			"and look for a proxy in between")
	case key.Key.Algorithm != device.Algorithm:
		return signed, fmt.Errorf("the service signs with %q, which is not the algorithm of this device's key", key.Key.Algorithm)
	case key.ID == "" || key.ID != e.KeyID:
		return signed, errors.New("the service's answer to the enrollment is signed with another key than it names")
	}
	if err := e.Open(key.Key, KindEnrolled, &signed); err != nil {
		return signed, fmt.Errorf("cannot trust the service's answer to the enrollment: %w", err)
	}
	if signed.Key != device || signed.Proof != Digest([]byte(proof)) {
		return signed, errors.New("the service's answer is to another enrollment")
	}
	if !idForm.MatchString(signed.DeviceID) {
		return signed, errors.New("the service's answer to the enrollment holds no device id that can be used")
	}
	return signed, nil
}

// idForm is that of a device's id: it must fit into a header.
var idForm = regexp.MustCompile(`^[!-~]{1,128}$`)

func (e Envelope) message() []byte {
	return []byte(strings.Join([]string{"muster-service-v1", e.Kind, e.KeyID, e.Payload}, "\n"))
}
