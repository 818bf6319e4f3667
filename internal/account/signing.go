package account

import (
	"context"
	"encoding/json"

	"github.com/musterhq/muster/internal/signature"
)

// SignDocument is the kind of step in which a user signs a document with a passkey.
const SignDocument PendingKind = "SIGN_DOCUMENT"

// signing is the Data of such a step: the document, and the state of the ceremony whose challenge is made of it.
type signing struct {
	Document []byte          `json:"document"`
	State    json.RawMessage `json:"state"`
}

// BeginSigning returns the challenge with which u signs a canonical document by a passkey that verifies its user. It lasts
// PendingLife. It fails with fault.Refused if u has no passkey, and with fault.Unsupported if passkeys do not work here.
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

// FinishSigning returns the document of the token's challenge with the signature, and the passkey that signed it. A token
// counts once, also if the answer is wrong. It fails with fault.Refused if the token is over, used, or another user's.
func (s Passkeys) FinishSigning(ctx context.Context, u User, token string, answer json.RawMessage) (signature.Signed, Passkey, error) {
	none := signature.Signed{}
	step, err := s.take(ctx, SignDocument, u, token)
	if err != nil {
		return none, Passkey{}, err
	}
	var begun signing
	if err := json.Unmarshal(step.Data, &begun); err != nil {
		return none, Passkey{}, err
	}
	known, err := s.known(ctx, u)
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
