package account

import (
	"context"
	"encoding/json"

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
