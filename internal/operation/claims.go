package operation

import (
	"context"
	"time"
)

// Claim is a request that carries an Idempotency-Key (operator "More that
// tests rely on"). Both texts are keyed digests: a store learns neither the
// key nor anything about a body, which may hold a short secret.
type Claim struct {
	ID     string // of the caller and the Idempotency-Key
	Digest string // of the operation and its arguments
	Now    time.Time
	Lease  time.Duration // how long the claimant may take before another takes over
	Keep   time.Duration // how long the claim and its answer are kept
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
	// Ref identifies the claim, whoever holds it. It is the IdempotencyRef of
	// the calls made under it: a call that takes over after a crash has the
	// Ref of the one that crashed, and so finds what that one began.
	Ref string
	// Attempt counts those who held the claim. Only the latest may end it.
	Attempt int
	Answer  []byte // with Answered, as Settle was given it
}

// Claims keeps the requests that carry an Idempotency-Key, for all replicas.
type Claims interface {
	// Claim takes hold of a claim, or says why not. It is one atomic step.
	Claim(ctx context.Context, c Claim) (Holding, error)
	// Settle keeps the answer. It does nothing if another holds the claim now.
	Settle(ctx context.Context, h Holding, answer []byte) error
	// Release forgets the claim: nothing happened that a repetition should
	// find. It does nothing if another holds the claim now.
	Release(ctx context.Context, h Holding) error
}
