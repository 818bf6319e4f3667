package operation

import (
	"context"
	"time"
)

// Claim is a request that carries an Idempotency-Key
// (contract 4.8). A store learns neither the arguments, which may hold a
// short secret, nor anything from which they could be guessed.
type Claim struct {
	ID string // of the caller and the Idempotency-Key: a digest
	// Fingerprint is of the operation and its arguments, sealed. Same reports
	// whether one that was stored is of the same request as this. It fails for
	// one that cannot be opened, as with a key of a newer key file.
	Fingerprint string
	Same        func(stored string) (bool, error)
	Now         time.Time
	Lease       time.Duration // until another may take over, unless ExtendClaim is called
	Keep        time.Duration // how long the claim and its answer are kept
}

// ClaimState is what became of a Claim.
type ClaimState int

// The states.
const (
	// Claimed: the request is the caller's to run. It is the first of its key,
	// or the one before it stopped half-way and its lease has ended.
	Claimed ClaimState = iota
	// Running: a twin holds the claim.
	Running
	// Answered: a twin has run, and this was its answer.
	Answered
	// Differs: the key was used with other arguments.
	Differs
)

// Holding is the answer to a Claim.
type Holding struct {
	State ClaimState
	ID    string
	// Ref identifies the claim, independent of its holder. It is the IdempotencyRef of
	// the calls made under it: a call that takes over after a crash has the
	// Ref of the one that crashed, and so finds what that one began.
	Ref string
	// Attempt counts those who held the claim. Only the latest may change it.
	Attempt int
	Answer  []byte // with Answered, as SettleClaim was given it
}

// Claims keeps the requests that carry an Idempotency-Key, for all replicas.
// ExtendClaim, SettleClaim and ReleaseClaim do nothing if another holds the claim by now. Each
// method fails as the database does: that a claim is not free is no error, but its State.
type Claims interface {
	// Claim takes hold of a claim, or says why not.
	Claim(ctx context.Context, c Claim) (Holding, error)
	// FindClaim says what became of a claim and changes nothing; Claimed: it is
	// free to be taken hold of.
	FindClaim(ctx context.Context, c Claim) (Holding, error)
	// ExtendClaim keeps a lease alive until a time.
	ExtendClaim(ctx context.Context, h Holding, until time.Time) error
	// SettleClaim keeps the answer.
	SettleClaim(ctx context.Context, h Holding, answer []byte) error
	// ReleaseClaim forgets the claim: nothing happened that a repetition should find.
	ReleaseClaim(ctx context.Context, h Holding) error
}
