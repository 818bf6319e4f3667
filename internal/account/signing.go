package account

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// SignDocument is the step of a person who signs a document with a passkey.
const SignDocument PendingKind = "SIGN_DOCUMENT"

// signing is what the step keeps: the document that the challenge is of.
type signing struct {
	Document []byte          `json:"document"`
	State    json.RawMessage `json:"state"`
}

// BeginSigning asks for a signature of a canonical document by a passkey of u's that
// verifies its user. The document says what it is about, and whose signature it wants.
func (s Passkeys) BeginSigning(ctx context.Context, u User, document []byte) (Challenge, error) {
	known, err := s.known(ctx, u)
	if err != nil {
		return Challenge{}, err
	}
	options, state, err := s.Ceremonies.BeginSigning(u, known, document)
	if err != nil {
		return Challenge{}, err
	}
	data, err := json.Marshal(signing{document, state})
	return s.challenge(ctx, SignDocument, u, options, data, err)
}

// FinishSigning returns the document that was begun with the token, signed, and the
// passkey that signed it. A token signs once.
func (s Passkeys) FinishSigning(ctx context.Context, u User, token string, answer json.RawMessage) (signature.Signed, Passkey, error) {
	none := signature.Signed{}
	step, err := s.take(ctx, SignDocument, u, token)
	if err != nil {
		return none, Passkey{}, err
	}
	if s.Ceremonies == nil {
		return none, Passkey{}, s.unavailable()
	}
	var begun signing
	if err := json.Unmarshal(step.Data, &begun); err != nil {
		return none, Passkey{}, err
	}
	known, err := s.Store.Passkeys(ctx, u.ID)
	if err != nil {
		return none, Passkey{}, err
	}
	p, assertion, err := s.Ceremonies.FinishSigning(u, known, begun.Document, begun.State, answer)
	if err != nil {
		return none, Passkey{}, err
	}
	p.LastUsedAt = s.now()
	return signature.Signed{Document: begun.Document, Assertion: assertion}, p, s.Store.UsePasskey(ctx, p)
}

// Confirmer is the administrator who confirms a loosening, with what decides
// whether that counts.
type Confirmer struct {
	User     User
	RightsAt time.Time // when the user last got a right
	Passkey  Passkey
	// AskedSince is when the account of the administrator who asked was made, or
	// when it last got a right.
	AskedSince time.Time
}

// MayConfirm returns fault.Refused, saying why, for a confirmation that does not count.
func (by Confirmer) MayConfirm(l access.Loosening, s access.Settings, now time.Time) error {
	since, age := now.Add(-s.Controls.ApproverAge), strings.TrimSuffix(s.Controls.ApproverAge.String(), "0m0s")
	switch {
	case by.User.ID == l.AskedBy.ID:
		return fault.New(fault.Refused, "a second administrator must confirm what you asked for yourself")
	case by.User.Disabled || !by.User.Rights.Has(ManageCompany):
		return fault.New(fault.Refused, "this takes the right to manage the company")
	case by.User.CreatedAt.After(since) || by.RightsAt.After(since) || by.Passkey.CreatedAt.After(since):
		return fault.New(fault.Refused, "your account, your rights and your passkey must be older than %s to confirm this", age)
	case by.AskedSince.After(since): // otherwise a stolen account could confirm what a new account of its own asks for
		return fault.New(fault.Refused, "the account and the rights of the administrator who asked must be older than %s to confirm this: ask for it yourself, and let another administrator confirm it", age)
	}
	return l.MayTakeEffect(s)
}
