package account

import (
	"context"
	"encoding/json"
	"github.com/musterhq/muster/internal/access"
	"time"
)

// PendingKind is the stage of a multi-step sign-in.
type PendingKind string

// The kinds of steps.
const (
	Invitation   PendingKind = "INVITATION"    // sets a password for the first time
	SecondFactor PendingKind = "SECOND_FACTOR" // the password was right; a passkey is asked for
	AddPasskey   PendingKind = "ADD_PASSKEY"
	ProvePasskey PendingKind = "PROVE_PASSKEY" // shows the passkey again before a sensitive action
	NewKeyForm   PendingKind = "NEW_KEY"       // fills in the form of a new API key, which makes one key
	Connecting   PendingKind = "CONNECTING"    // is at the platform's sign-up page
	// LinkingIdentity proves that an account is theirs, before the company's
	// provider signs them in to it.
	LinkingIdentity PendingKind = "LINKING_IDENTITY"
	// ConfirmLoosening, with the id of what is confirmed, shows the passkey of the
	// second administrator.
	ConfirmLoosening PendingKind = "CONFIRM_LOOSENING/"
	UsedChallenge    PendingKind = "USED_CHALLENGE" // a passkey answered it: it is not taken again
)

// How long steps may take.
const (
	InvitationLife = 7 * 24 * time.Hour
	PendingLife    = 10 * time.Minute
	FormLife       = 12 * time.Hour
)

// PendingSignIn is something begun that its token goes on with. Only the token's hash
// is kept.
type PendingSignIn struct {
	Kind      PendingKind
	CompanyID string
	UserID    string // empty: not known yet
	Data      json.RawMessage
	ExpiresAt time.Time
}

// PendingStore keeps steps. A step that expired, or is of another kind, is
// fault.NotFound.
type PendingStore interface {
	SaveStep(ctx context.Context, token access.SecretHash, s PendingSignIn) error
	// PendingSignIn shows a step and leaves it.
	Step(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// TakeStep takes a step: it is there once.
	TakeStep(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// DropSteps removes a user's steps of a kind.
	DropSteps(ctx context.Context, userID string, kind PendingKind) error
}

// Begin saves a step and returns its token.
func Begin(ctx context.Context, store PendingStore, s PendingSignIn) (string, error) {
	token := access.NewSecret("mst_")
	return token, store.SaveStep(ctx, access.HashSecret(token), s)
}
