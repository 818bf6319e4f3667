package account

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// Passkey is a WebAuthn credential of a person: the second factor beside the
// password, and a proof of identity before something dangerous.
type Passkey struct {
	ID         string // the credential's id, hexadecimal
	UserID     string
	Name       string
	Credential json.RawMessage // public key, counter, flags; nothing secret
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
}

// MaxPasskeys bounds the passkeys of one person.
const MaxPasskeys = 10

// TooManyPasskeys is the fault for a person who has MaxPasskeys.
func TooManyPasskeys() error {
	return fault.New(fault.Refused, "you have %d passkeys already: remove one first", MaxPasskeys)
}

// PasskeyStore keeps passkeys and recovery codes. Each method fails as the database does, and with the faults that it
// names.
type PasskeyStore interface {
	// Passkeys returns a user's passkeys; none is no error.
	Passkeys(ctx context.Context, userID string) ([]Passkey, error)
	AddPasskey(ctx context.Context, p Passkey) error // fault.Refused if it is known, or the user has MaxPasskeys
	// UsePasskey saves Credential and LastUsedAt; fault.Refused if the passkey was removed in the meantime.
	UsePasskey(ctx context.Context, p Passkey) error
	// RemovePasskey removes one; with the last one the recovery codes go too. It fails with
	// fault.NotFound if the user has no such passkey.
	RemovePasskey(ctx context.Context, userID, id string) error
	// SetRecoveryCodes replaces all codes of a user.
	SetRecoveryCodes(ctx context.Context, userID string, hashes []access.SecretHash) error
	// UseRecoveryCode takes a code; fault.NotFound if it is none.
	UseRecoveryCode(ctx context.Context, userID string, hash access.SecretHash) error
	// RecoveryCodes counts the codes that a user has left.
	RecoveryCodes(ctx context.Context, userID string) (int, error)
}

// Ceremonies are the exchanges with an authenticator. Options go to the browser; the service
// keeps the state until the answer arrives. The Finish methods fail with fault.Unauthorized for an
// answer that does not belong to the state, or that none of the known passkeys gave. Any other
// error, unless the method names it, means that a state or a stored passkey cannot be read.
type Ceremonies interface {
	// BeginAdd begins to register a passkey for u; known ones are refused by the
	// authenticator.
	BeginAdd(u User, known []Passkey) (options, state json.RawMessage, err error)
	// FinishAdd returns the registered passkey; fault.Unauthorized if the answer does not belong to the
	// state.
	FinishAdd(u User, state, answer json.RawMessage) (Passkey, error)
	// BeginProof begins to prove that it is u. With verify, the authenticator
	// must have verified the user (PIN, fingerprint, face): a touch is not enough. It fails if known
	// is empty.
	BeginProof(u User, known []Passkey, verify bool) (options, state json.RawMessage, err error)
	// FinishProof returns the passkey that proved it, as it now is.
	FinishProof(u User, known []Passkey, state, answer json.RawMessage) (Passkey, error)
	// BeginSignIn asks for any passkey of this service, with user verification.
	BeginSignIn() (options, state json.RawMessage, err error)
	// FinishSignIn returns the passkey that answered, as it now is; find returns
	// its owner and the owner's passkeys. once is the challenge, which must not
	// be answered again. An error of find is returned as it is, but fault.NotFound as
	// fault.Unauthorized.
	FinishSignIn(state, answer json.RawMessage, find func(id string) (User, []Passkey, error)) (p Passkey, once string, err error)
	// BeginSigning asks u to sign a document, with user verification. It fails if known is empty.
	BeginSigning(u User, known []Passkey, document []byte) (options, state json.RawMessage, err error)
	// FinishSigning returns the passkey that signed the document, as it now is, and
	// the signature; fault.Refused if its kind of key cannot sign documents.
	FinishSigning(u User, known []Passkey, document, state, answer []byte) (Passkey, signature.Assertion, error)
}

// Passkeys adds and checks passkeys. Ceremonies is nil where the service's
// address cannot have passkeys: they need a host name.
type Passkeys struct {
	Store PasskeyStore
	// Owner returns the user whose passkey has the id; fault.NotFound if there is none.
	Owner      func(ctx context.Context, id string) (User, error)
	Steps      PendingStore
	Ceremonies Ceremonies
	Sealer     access.Sealer // of the challenges that strangers get
	Now        func() time.Time
}

// Available reports whether passkeys work at the service's address.
func (s Passkeys) Available() bool { return s.Ceremonies != nil }

// Challenge is a ceremony that has begun.
type Challenge struct {
	Token   string // brought back with the answer
	Options json.RawMessage
}

func (s Passkeys) unavailable() error {
	return fault.New(fault.Unsupported, "passkeys need a host name: they do not work at an IP address")
}

// BeginAdd begins to add a passkey.
func (s Passkeys) BeginAdd(ctx context.Context, u User) (Challenge, error) {
	if s.Ceremonies == nil {
		return Challenge{}, s.unavailable()
	}
	known, err := s.Store.Passkeys(ctx, u.ID)
	if err != nil {
		return Challenge{}, err
	}
	if len(known) >= MaxPasskeys {
		return Challenge{}, TooManyPasskeys()
	}
	options, state, err := s.Ceremonies.BeginAdd(u, known)
	return s.challenge(ctx, AddPasskey, u, options, state, err)
}

// FinishAdd adds the passkey. With the first one it returns recovery codes,
// which are shown once.
func (s Passkeys) FinishAdd(ctx context.Context, u User, token, called string, answer json.RawMessage) (codes []string, err error) {
	step, err := s.take(ctx, AddPasskey, u, token)
	if err != nil {
		return nil, err
	}
	p, err := s.Ceremonies.FinishAdd(u, step.Data, answer)
	if err != nil {
		return nil, err
	}
	if called = strings.TrimSpace(called); !resource.IsLabel(called, MaxUserName) {
		called = "Passkey"
	}
	p.UserID, p.Name, p.CreatedAt = u.ID, called, s.now()
	if err := s.Store.AddPasskey(ctx, p); err != nil {
		return nil, err
	}
	if left, err := s.Store.RecoveryCodes(ctx, u.ID); err != nil || left > 0 {
		return nil, err
	}
	return s.RenewCodes(ctx, u)
}

// BeginProof begins to prove that it is u, by a step of the kind. Beside a
// password, a touch is enough; alone, the passkey must verify the user.
func (s Passkeys) BeginProof(ctx context.Context, u User, kind PendingKind) (Challenge, error) {
	known, err := s.known(ctx, u)
	if err != nil {
		return Challenge{}, err
	}
	options, state, err := s.Ceremonies.BeginProof(u, known, kind != SecondFactor)
	return s.challenge(ctx, kind, u, options, state, err)
}

// known returns the passkeys of a user who is to use one.
func (s Passkeys) known(ctx context.Context, u User) ([]Passkey, error) {
	if s.Ceremonies == nil {
		return nil, s.unavailable()
	}
	known, err := s.Store.Passkeys(ctx, u.ID)
	if err == nil && len(known) == 0 {
		err = fault.New(fault.Refused, "you have no passkey")
	}
	return known, err
}

// FinishProof returns nil if the answer proves that it is u.
func (s Passkeys) FinishProof(ctx context.Context, u User, kind PendingKind, token string, answer json.RawMessage) error {
	step, err := s.take(ctx, kind, u, token)
	if err != nil {
		return err
	}
	known, err := s.known(ctx, u)
	if err != nil {
		return err
	}
	p, err := s.Ceremonies.FinishProof(u, known, step.Data, answer)
	if err != nil {
		return err
	}
	p.LastUsedAt = s.now()
	return s.Store.UsePasskey(ctx, p)
}

func (s Passkeys) challenge(ctx context.Context, kind PendingKind, u User, options, state json.RawMessage, err error) (Challenge, error) {
	if err != nil {
		return Challenge{}, err
	}
	token, err := Begin(ctx, s.Steps, PendingSignIn{Kind: kind, CompanyID: u.CompanyID, UserID: u.ID, Data: state,
		ExpiresAt:    s.Now().Add(PendingLife),
		PasswordHash: u.PasswordHash})
	return Challenge{Token: token, Options: options}, err
}

func (s Passkeys) take(ctx context.Context, kind PendingKind, u User, token string) (PendingSignIn, error) {
	step, err := s.Steps.TakeStep(ctx, access.HashSecret(token), kind)
	if err == nil && step.UserID != u.ID || fault.CodeOf(err) == fault.NotFound {
		return PendingSignIn{}, fault.New(fault.Refused, "this took too long, or was done already: try again")
	}
	return step, err
}

// recoveryCodes is how many codes there are.
const recoveryCodes = 10

// RenewCodes replaces the recovery codes and returns the new ones, 80 random
// bits each.
func (s Passkeys) RenewCodes(ctx context.Context, u User) ([]string, error) {
	codes, hashes := make([]string, recoveryCodes), make([]access.SecretHash, recoveryCodes)
	for i := range codes {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails since Go 1.24
		text := strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
		codes[i] = text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		hashes[i] = hashRecovery(codes[i])
	}
	return codes, s.Store.SetRecoveryCodes(ctx, u.ID, hashes)
}

// UseCode takes a recovery code instead of a passkey; fault.Unauthorized if it
// is none.
func (s Passkeys) UseCode(ctx context.Context, u User, code string) error {
	err := s.Store.UseRecoveryCode(ctx, u.ID, hashRecovery(code))
	if fault.CodeOf(err) == fault.NotFound {
		return fault.New(fault.Unauthorized, "the recovery code is not right, or was used before")
	}
	return err
}

// hashRecovery forgives case, spaces and hyphens.
func hashRecovery(code string) access.SecretHash {
	return access.HashSecret("recovery:" + strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code)))
}

func (s Passkeys) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }
