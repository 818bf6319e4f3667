package access

import (
	"context"
	"encoding/json"
	"time"
)

// StepKind is the stage of a multi-step sign-in.
type StepKind string

// The kinds of steps.
const (
	Invitation   StepKind = "INVITATION"    // sets a password for the first time
	SecondFactor StepKind = "SECOND_FACTOR" // the password was right; a passkey is asked for
	AddPasskey   StepKind = "ADD_PASSKEY"
	ProvePasskey StepKind = "PROVE_PASSKEY" // shows the passkey again before a sensitive action
	NewKeyForm   StepKind = "NEW_KEY"       // fills in the form of a new API key, which makes one key
	Connecting   StepKind = "CONNECTING"    // is at the platform's sign-up page
	// LinkingIdentity proves that an account is theirs, before the company's
	// provider signs them in to it.
	LinkingIdentity StepKind = "LINKING_IDENTITY"
	UsedChallenge   StepKind = "USED_CHALLENGE" // a passkey answered it: it is not taken again
)

// How long steps may take.
const (
	InvitationLife = 7 * 24 * time.Hour
	StepLife       = 10 * time.Minute
	FormLife       = 12 * time.Hour
)

// Step is something begun that its token goes on with. Only the token's hash
// is kept.
type Step struct {
	Kind      StepKind
	CompanyID string
	UserID    string // empty: not known yet
	Data      json.RawMessage
	ExpiresAt time.Time
}

// StepStore keeps steps. A step that expired, or is of another kind, is
// fault.NotFound.
type StepStore interface {
	SaveStep(ctx context.Context, token SecretHash, s Step) error
	// Step shows a step and leaves it.
	Step(ctx context.Context, token SecretHash, kind StepKind) (Step, error)
	// TakeStep takes a step: it is there once.
	TakeStep(ctx context.Context, token SecretHash, kind StepKind) (Step, error)
	// DropSteps removes a user's steps of a kind.
	DropSteps(ctx context.Context, userID string, kind StepKind) error
}

// Begin saves a step and returns its token.
func Begin(ctx context.Context, store StepStore, s Step) (string, error) {
	token := NewSecret("mst_")
	return token, store.SaveStep(ctx, HashSecret(token), s)
}
