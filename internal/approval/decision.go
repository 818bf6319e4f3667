package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
)

// Kind is what a decision is about.
type Kind string

// The kinds.
const (
	ChangeKind    Kind = "CHANGE"    // of a policy: a proposal
	CallKind      Kind = "CALL"      // one command to one device: an Authorization
	LooseningKind Kind = "LOOSENING" // of a control
)

// Subject is what a person decides about, as it now is.
type Subject struct {
	Kind      Kind
	ID        string
	CompanyID string
	Company   string // its slug
	Domain    string
	Matter    access.Matter
	Expires   time.Time
	// Name is the policy's name, which who approves has to type; empty: nothing is typed.
	Name string
	// Document is the document of a decision. shown is what the person signed, as
	// signature.Read returns it, for what may change without another decision; nil: it
	// is not signed yet.
	Document func(h signature.Head, shown any) any
}

// Canonical is what a person signs. Of the head, the approver, the decision, the time, the
// confirmation and the reason are taken.
func (s Subject) Canonical(h signature.Head, shown any) ([]byte, error) {
	h.Domain, h.Company, h.Subject, h.Expires = s.Domain, s.Company, s.ID, signature.Time(s.Expires)
	return signature.Canonical(s.Document(h, shown))
}

// MaxReason bounds the reason of a decline, in characters.
const MaxReason = 200

// Confirms returns fault.ConfirmationRequired unless the name was typed that an approval
// takes.
func (s Subject) Confirms(h signature.Head) error {
	if h.Decision == signature.Approve && s.Name != "" && !policy.Confirms(h.Confirmation, s.Name) {
		return fault.New(fault.ConfirmationRequired, "type the policy's name to approve this")
	}
	return nil
}

// Decision is a person's word, signed with a passkey.
type Decision struct {
	CompanyID string
	Kind      Kind
	ID        string
	UserID    string
	PasskeyID string
	Signed    signature.Signed
	Verifier  Verifier
}

// Store keeps decisions. Each method fails as the database does, and with the faults that it names.
type Store interface {
	// Decide keeps what a person signed, countersigned, if it counts now, under the locks
	// of what it is about: fault.Refused, fault.NotPending and fault.ConfirmationRequired
	// say why not, and such a refusal is recorded. fault.NotFound without such a matter.
	Decide(ctx context.Context, d Decision) error
	// Decider returns a user as one who may decide, with all of their passkeys;
	// fault.NotFound.
	Decider(ctx context.Context, companyID, userID string) (access.Approver, error)
	// Approvers are the company's users as those who may decide.
	Approvers(ctx context.Context, companyID string) ([]access.Approver, error)
}

// Passkeys knows the service's passkeys.
type Passkeys interface {
	// PublicKey is the public key of a stored passkey, as SubjectPublicKeyInfo, by which a signature names
	// it. It fails if a key of its kind cannot sign documents.
	PublicKey(credential json.RawMessage) ([]byte, error)
	// Party is the service as its passkeys know it.
	Party() signature.Party
}

// Verifier verifies decisions. The zero value accepts none.
type Verifier struct {
	Passkeys Passkeys // nil: there are no passkeys at the service's address
	Service  signature.Witness
}

// Standing is all that decides whether a person's decision counts now.
type Standing struct {
	Subject
	Signed     signature.Signed
	Controls   access.Controls
	Approver   access.Approver // who signed, with the passkey; zero: is not there any more
	Credential json.RawMessage // that passkey as it is stored
	Now        time.Time
}

// Check returns nil if the person's signature is for a decision about exactly what there
// is now, by a passkey of theirs, and they may decide.
func (v Verifier) Check(s Standing) error {
	if v.Passkeys == nil || v.Service == nil {
		return fault.New(fault.Unsupported, "passkeys need a host name: they do not work at an IP address")
	}
	if err := s.Entitled(); err != nil {
		return err
	}
	if err := s.unchanged(); err != nil {
		return err
	}
	public, err := v.Passkeys.PublicKey(s.Credential)
	if err != nil || !bytes.Equal(public, s.Signed.PublicKey) {
		return fault.New(fault.Refused, "the passkey is no longer the person's").Because(err)
	}
	if err := s.Signed.Verify(s.Signed.Document, v.Passkeys.Party()); err != nil {
		return fault.New(fault.Refused, "the passkey's signature does not count").Because(err)
	}
	return nil
}

// unchanged compares what was signed with what there is now.
func (s Standing) unchanged() error {
	changed := fault.New(fault.Refused, "what you saw has changed since: look at it again")
	head, shown, err := signature.Read(s.Signed.Document)
	if err != nil {
		return changed.Because(err)
	}
	if head.Domain != s.Domain || head.Confirmation != "" && s.Name == "" { // nothing was to be typed
		return changed
	}
	text, err := s.Canonical(head, shown)
	known := head.Decision == signature.Approve || head.Decision == signature.Decline
	if err != nil || !known || head.Approver.ID != s.Approver.UserID || !bytes.Equal(text, s.Signed.Document) {
		return changed.Because(err)
	}
	return s.Confirms(head)
}

// Accept checks a decision, and returns it with the service's countersignature.
func (v Verifier) Accept(s Standing) (signature.Signed, signature.Head, error) {
	if err := v.Check(s); err != nil {
		return s.Signed, signature.Head{}, err
	}
	head, err := s.Signed.Head()
	if err != nil {
		return s.Signed, head, err
	}
	signed, err := s.Signed.Accept(v.Service, s.Approver.Rights(), s.Now)
	return signed, head, err
}

// Stands returns nil if a decision that was accepted still counts as an approval: it is
// verified again, with the service's countersignature. fault.Unavailable with signature.ErrUnknownKey
// says that the decision counts but for the key that countersigned it, which may be in a newer key file.
func (v Verifier) Stands(s Standing) error {
	if err := v.Check(s); err != nil {
		return err
	}
	if head, err := s.Signed.Head(); err != nil || head.Decision != signature.Approve {
		return fault.New(fault.Refused, "it was not approved").Because(err)
	}
	err := s.Signed.Accepted(v.Service.PublicKeys())
	if errors.Is(err, signature.ErrUnknownKey) {
		return fault.New(fault.Unavailable, "a replica with another key file accepted this decision: try again in a moment").Because(err)
	}
	if err != nil {
		return fault.New(fault.Refused, "the service did not accept this decision").Because(err)
	}
	return nil
}

// Entitled returns nil if the person is there and may decide.
func (s Standing) Entitled() error {
	if s.Approver.UserID == "" {
		return fault.New(fault.Refused, "the person, or the passkey, is not there any more")
	}
	return s.Approver.May(s.Matter, s.Controls, s.Now)
}
