package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/slice"
)

// Signed is a document with a person's signature and, where the service accepted the
// decision, its countersignature.
type Signed struct {
	Document []byte
	Assertion
	Countersignature *Countersignature // nil: it is not proved that the service accepted it
}

// Countersignature is the service's word that it accepted a decision: when, and by what
// right of the person. It covers the document and the person's signature.
type Countersignature struct {
	At     string   `json:"at"`     // in RFC 3339
	Rights []string `json:"rights"` // that the approver had
	// Key is the public key of Ed25519, and Signature its signature, in base64url.
	Key       string `json:"key"`
	Signature string `json:"signature,omitempty"`
}

// Head reads the members that every document has.
func (s Signed) Head() (Head, error) {
	h, _, err := Read(s.Document)
	return h, err
}

// The formats of the file of a signed document. The first has no countersignature.
const (
	firstFormat  = "muster/signed/1"
	exportFormat = "muster/signed/2"
)

type export struct {
	Format           string            `json:"format"`
	Document         jsontext.Value    `json:"document"`
	Assertion        assertionText     `json:"assertion"`
	Countersignature *Countersignature `json:"countersignature,omitempty"`
}

type assertionText struct {
	AuthenticatorData string `json:"authenticatorData"`
	ClientDataJSON    string `json:"clientDataJSON"`
	CredentialID      string `json:"credentialId"`
	PublicKey         string `json:"publicKey"`
	Signature         string `json:"signature"`
}

func (s Signed) text() ([]byte, error) {
	e := export{exportFormat, s.Document, assertionText{encode(s.AuthenticatorData), encode(s.ClientData),
		encode(s.CredentialID), encode(s.PublicKey), encode(s.Signature)}, s.Countersignature}
	if s.Countersignature == nil {
		e.Format = firstFormat
	}
	return Canonical(e)
}

// Export writes a file that stands by itself: one line of canonical JSON.
func (s Signed) Export() ([]byte, error) {
	text, err := s.text()
	return append(text, '\n'), err
}

// ParseExport reads what Export wrote, and nothing that differs in a byte of form.
func ParseExport(file []byte) (s Signed, err error) {
	text, ended := bytes.CutSuffix(file, []byte("\n"))
	if !ended || !IsCanonical(text) {
		return s, errors.New("the file is not as it was exported: it is not one line of canonical JSON")
	}
	var e export
	if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil {
		return s, errors.New("the file is not an exported decision")
	}
	s.Document, s.Countersignature = e.Document, e.Countersignature
	for _, part := range []struct {
		to   *[]byte
		text string
	}{{&s.AuthenticatorData, e.Assertion.AuthenticatorData}, {&s.ClientData, e.Assertion.ClientDataJSON},
		{&s.CredentialID, e.Assertion.CredentialID}, {&s.PublicKey, e.Assertion.PublicKey}, {&s.Signature, e.Assertion.Signature}} {
		if *part.to, err = decode(part.text); err != nil {
			return s, err
		}
	}
	again, err := s.Export()
	if s.Countersignature == nil && e.Format == exportFormat { // one that lost it is whole, and proves less
		again = bytes.Replace(again, []byte(`"format":"`+firstFormat), []byte(`"format":"`+exportFormat), 1)
	}
	if err != nil || !bytes.Equal(again, file) {
		return s, errors.New("the file is not as it was exported")
	}
	return s, nil
}

// Witness signs statements with the service's key, and knows its former ones.
type Witness interface {
	// SignStatement signs with the newest of the service's keys.
	SignStatement(statement []byte) []byte
	// PublicKeys are the service's, the one that signs first.
	PublicKeys() []ed25519.PublicKey
}

// Accept returns the document with the service's countersignature. rights are the
// approver's.
func (s Signed) Accept(by Witness, rights []string, at time.Time) (Signed, error) {
	c := &Countersignature{At: Time(at), Rights: append([]string{}, rights...), Key: encode(by.PublicKeys()[0])}
	s.Countersignature = c
	statement, err := s.statement()
	if err != nil {
		return s, err
	}
	c.Signature = encode(by.SignStatement(statement))
	return s, nil
}

// statement is what the service signs: the file, but for the countersignature's own
// signature. It begins with words that nothing else which the service signs begins with.
func (s Signed) statement() ([]byte, error) {
	bare := *s.Countersignature
	bare.Signature = ""
	s.Countersignature = &bare
	text, err := s.text()
	return append([]byte("muster decision 2\n"), text...), err
}

// ErrUnknownKey is the error for a countersignature by a key that is not among the service's. The key is that of a newer
// key file, a lost one, or no key of the service at all.
var ErrUnknownKey = errors.New("the countersignature is not by a key of the service that is trusted")

// Accepted returns nil if one of the service's keys countersigned the decision, and ErrUnknownKey if another key did.
func (s Signed) Accepted(keys []ed25519.PublicKey) error {
	if s.Countersignature == nil {
		return errors.New("the service has not countersigned the decision")
	}
	statement, err := s.statement()
	if err != nil {
		return err
	}
	signature, err := decode(s.Countersignature.Signature)
	if err != nil {
		return err
	}
	by := slices.IndexFunc(keys, func(key ed25519.PublicKey) bool { return encode(key) == s.Countersignature.Key })
	if by < 0 {
		return ErrUnknownKey
	}
	if !ed25519.Verify(keys[by], statement, signature) {
		return errors.New("the countersignature is not of this decision")
	}
	return nil
}

// trustFormat is that of the file of trusted keys.
const trustFormat = "muster/approval-keys/2"

// Trust says whose signatures count: the service, the company, and the keys of its people,
// who may not all decide: that one might is what the service's countersignature says.
type Trust struct {
	Format  string `json:"format"`
	Company string `json:"company"`
	Party
	// Service are the service's public keys of Ed25519, former ones included, in base64url.
	Service []string     `json:"service"`
	Keys    []TrustedKey `json:"keys"`
}

// Party is the service as WebAuthn knows it: its exact origin, and its host name.
type Party struct {
	Origin string `json:"origin"`
	RPID   string `json:"rpId"`
}

// TrustedKey is a passkey, whose it is, and what that person may do.
type TrustedKey struct {
	CredentialID string   `json:"credentialId"` // base64url
	PublicKey    string   `json:"publicKey"`    // base64url of SubjectPublicKeyInfo
	User         Person   `json:"user"`
	Email        string   `json:"email"`
	Rights       []string `json:"rights"`
	Added        string   `json:"added"`
}

// NewTrustedKey is a key of a person. A credential's id is hexadecimal where passkeys
// are kept.
func NewTrustedKey(credential string, publicKey []byte, user Person, email string, rights []string, added time.Time) TrustedKey {
	id, _ := hex.DecodeString(credential) // we wrote it
	return TrustedKey{encode(id), encode(publicKey), user, email, rights, Time(added)}
}

// ServiceKeys writes the service's public keys as a Trust has them.
func ServiceKeys(keys []ed25519.PublicKey) []string {
	return slice.Map(keys, func(key ed25519.PublicKey) string { return encode(key) })
}

// Export writes the trust as a file for people to keep.
func (t Trust) Export() ([]byte, error) {
	t.Format = trustFormat
	if t.Keys == nil {
		t.Keys = []TrustedKey{}
	}
	text, err := json.Marshal(t, jsontext.Multiline(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// ParseTrust reads what Export wrote: exact names, none twice, none unknown, one document.
func ParseTrust(file []byte) (t Trust, err error) {
	if err = json.Unmarshal(file, &t, json.RejectUnknownMembers(true)); err != nil {
		return t, fmt.Errorf("it is not a file of `muster approval keys`: %w", err)
	}
	if t.Format != trustFormat || t.Company == "" || t.Origin == "" || t.RPID == "" {
		err = fmt.Errorf("it is not a file of `muster approval keys` in the format %s: write it again", trustFormat)
	}
	return t, err
}

// Check verifies a signed document without knowing whose the key is: that the key in
// it signed it, at whatever address the passkey answered.
func (s Signed) Check() error {
	var client struct {
		Origin string `json:"origin"`
	}
	if err := json.Unmarshal(s.ClientData, &client); err != nil {
		return errors.New("what the passkey answered cannot be read")
	}
	u, err := url.Parse(client.Origin)
	if err != nil {
		return errors.New("the passkey answered at no address")
	}
	return s.at(Party{Origin: client.Origin, RPID: u.Hostname()})
}

// at verifies the document at a party, and that it is of a kind that people sign.
func (s Signed) at(p Party) error {
	h, err := s.Head()
	if err != nil {
		return err
	}
	if h.Decision != Approve && h.Decision != Decline {
		return fmt.Errorf("%q is no decision", h.Decision)
	}
	return s.Verify(s.Document, p)
}

// CheckBy verifies a signed document, and its countersignature if it has one, by keys
// that are trusted.
func (s Signed) CheckBy(t Trust) error {
	if err := s.at(t.Party); err != nil {
		return err
	}
	h, err := s.Head()
	if err != nil {
		return err
	}
	if h.Company != t.Company {
		return errors.New("the document is of another company than the keys")
	}
	known := func(k TrustedKey) bool {
		return k.CredentialID == encode(s.CredentialID) && k.PublicKey == encode(s.PublicKey) && k.User.ID == h.Approver.ID
	}
	if !slices.ContainsFunc(t.Keys, known) {
		return errors.New("the key that signed is not trusted: it is not the approver's among the keys")
	}
	if s.Countersignature == nil {
		return nil
	}
	var service []ed25519.PublicKey
	for _, text := range t.Service {
		if key, err := decode(text); err == nil && len(key) == ed25519.PublicKeySize {
			service = append(service, key)
		}
	}
	return s.Accepted(service)
}

// Verify checks an exported file. Without trust it can only find out whether the file
// is whole.
func Verify(file []byte, trust *Trust) (Signed, error) {
	s, err := ParseExport(file)
	if err != nil {
		return s, err
	}
	if trust == nil {
		return s, s.Check()
	}
	return s, s.CheckBy(*trust)
}
