package signature

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// The domains: what a signature can be about. A signature of one is none of another.
const (
	PolicyChange       = "muster/approval/1"
	DestructiveCommand = "muster/authorization/1"
)

// Person is a user of the portal in a document.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Decision is what the person decided.
type Decision string

// The decisions.
const (
	Approve Decision = "APPROVE"
	Decline Decision = "DECLINE"
)

// Head has the members that every document has.
type Head struct {
	Domain   string   `json:"domain"`
	Company  string   `json:"company"` // its slug
	Subject  string   `json:"subject"` // the id of what is decided on
	Approver Person   `json:"approver"`
	Decision Decision `json:"decision"`
	At       string   `json:"at"`      // when the document was shown, in RFC 3339
	Expires  string   `json:"expires"` // when what is decided on ends
}

// Time is a time as documents have it.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Signed is a document with its signature.
type Signed struct {
	Document []byte
	Assertion
}

// Head reads the members that every document has.
func (s Signed) Head() (h Head, err error) {
	err = json.Unmarshal(s.Document, &h)
	return h, err
}

// exportFormat is that of the file of a signed document.
const exportFormat = "muster/signed/1"

type export struct {
	Format    string          `json:"format"`
	Document  json.RawMessage `json:"document"`
	Assertion assertionText   `json:"assertion"`
}

type assertionText struct {
	AuthenticatorData string `json:"authenticatorData"`
	ClientDataJSON    string `json:"clientDataJSON"`
	CredentialID      string `json:"credentialId"`
	PublicKey         string `json:"publicKey"`
	Signature         string `json:"signature"`
}

// Export writes a file that stands by itself: one line of canonical JSON.
func (s Signed) Export() ([]byte, error) {
	text, err := Canonical(export{exportFormat, s.Document, assertionText{encode(s.AuthenticatorData), encode(s.ClientData),
		encode(s.CredentialID), encode(s.PublicKey), encode(s.Signature)}})
	return append(text, '\n'), err
}

// ParseExport reads what Export wrote, and nothing that differs in a byte of form.
func ParseExport(file []byte) (s Signed, err error) {
	text, ended := bytes.CutSuffix(file, []byte("\n"))
	if !ended || !IsCanonical(text) {
		return s, errors.New("the file is not as it was exported: it is not one line of canonical JSON")
	}
	var e export
	if err := strictly(text, &e); err != nil || e.Format != exportFormat {
		return s, errors.New("the file is not an exported approval")
	}
	s.Document = e.Document
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
	if err != nil || !bytes.Equal(again, file) {
		return s, errors.New("the file is not as it was exported")
	}
	return s, nil
}

func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// trustFormat is that of the file of trusted keys.
const trustFormat = "muster/approval-keys/1"

// Trust says whose signatures count: the service, the company, and its people's keys.
type Trust struct {
	Format  string `json:"format"`
	Company string `json:"company"`
	Party
	Keys []TrustedKey `json:"keys"`
}

// TrustedKey is a passkey and whose it is.
type TrustedKey struct {
	CredentialID string `json:"credentialId"` // base64url
	PublicKey    string `json:"publicKey"`    // base64url of SubjectPublicKeyInfo
	User         Person `json:"user"`
	Email        string `json:"email"`
	Added        string `json:"added"`
}

// NewTrustedKey is a key of a person. A credential's id is hexadecimal where passkeys
// are kept.
func NewTrustedKey(credential string, publicKey []byte, user Person, email string, added time.Time) TrustedKey {
	id, _ := hex.DecodeString(credential) // we wrote it
	return TrustedKey{encode(id), encode(publicKey), user, email, Time(added)}
}

// Export writes the trust as a file for people to keep.
func (t Trust) Export() ([]byte, error) {
	t.Format = trustFormat
	if t.Keys == nil {
		t.Keys = []TrustedKey{}
	}
	text, err := json.MarshalIndent(t, "", "  ")
	return append(text, '\n'), err
}

// ParseTrust reads what Export wrote.
func ParseTrust(file []byte) (t Trust, err error) {
	if err = strictly(file, &t); err == nil && (t.Format != trustFormat || t.Company == "" || t.Origin == "" || t.RPID == "") {
		err = errors.New("it is not a file of `muster approval keys`")
	}
	return t, err
}

// Check verifies a signed document without knowing whose the key is: that the key in
// it signed it, at whatever address the passkey answered.
func (s Signed) Check() error {
	var client struct {
		Origin string `json:"origin"`
	}
	_ = json.Unmarshal(s.ClientData, &client) // what cannot be read is refused below
	u, err := url.Parse(client.Origin)
	if err != nil {
		return errors.New("the passkey answered at no address")
	}
	return s.at(Party{Origin: client.Origin, RPID: u.Hostname()})
}

// at verifies the document at a party, and that it is of a kind that people sign.
func (s Signed) at(p Party) error {
	h, err := s.Head()
	if err != nil || h.Domain != PolicyChange && h.Domain != DestructiveCommand {
		return errors.New("the document is of no kind that is known here")
	}
	if h.Decision != Approve && h.Decision != Decline {
		return fmt.Errorf("%q is no decision", h.Decision)
	}
	return s.Verify(s.Document, p)
}

// CheckBy verifies a signed document by keys that are trusted.
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
	return nil
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
