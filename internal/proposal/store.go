package proposal

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// Store keeps proposals. Time is the database's: an expiry is compared where
// it is kept. Finders return fault.NotFound.
type Store interface {
	// Propose saves a PENDING proposal that can be applied for a lifetime, and
	// returns it with its times. A second one with the same ProposeRef is not
	// made: the first is returned. One more than MaxWaiting that wait for a person is
	// not made either: fault.RateLimited.
	Propose(ctx context.Context, p Proposal, lifetime time.Duration) (Proposal, error)
	// MayWait returns the error of Propose for one too many, and changes nothing.
	MayWait(ctx context.Context, p Proposal) error
	// ProposalByRef returns the proposal that a call with the idempotency
	// reference made or applied.
	ProposalByRef(ctx context.Context, companyID, ref string) (Proposal, error)
	// Proposal keeps that a proposal was shown with a higher impact; PeekProposal
	// changes nothing.
	Proposal(ctx context.Context, companyID, id string) (Proposal, error)
	// PeekProposal returns a proposal as Proposal does, and changes nothing; fault.NotFound if
	// there is none.
	PeekProposal(ctx context.Context, companyID, id string) (Proposal, error)
	// MovesTo counts the devices that an open command moves to a policy, and that do
	// not count among those that use it.
	MovesTo(ctx context.Context, policyID string) (int, error)
	// PeekApproval says why the approval of a proposal that has one does not count now;
	// nil: it does. It changes nothing.
	PeekApproval(ctx context.Context, p Proposal, v approval.Verifier) (why, err error)
	// FailProposal ends a PENDING proposal FAILED, and reports whether it was PENDING.
	// fault.NotFound without it.
	FailProposal(ctx context.Context, id string, code fault.Code, outcome string) (bool, error)
	// ClaimProposal begins to apply a proposal, as Claim says.
	ClaimProposal(ctx context.Context, c Claim) (Claimed, error)
	// FinishProposal writes how a proposal ended that the holder claimed or took over,
	// and reports false, and the proposal as it is, if the holder has it no
	// longer. fault.NotFound without it.
	FinishProposal(ctx context.Context, e Ending) (Proposal, bool, error)
	// Lease gives the holder a name for a time, or gives it longer; false
	// while another has it.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
}

// Claim asks to apply a proposal. In one transaction the store checks that it
// is PENDING and not expired, that its policy is there and at the version that
// it was made from, that its policy's lease is free, and that its new name,
// if it has one, is free; then it takes the lease for the holder and makes the
// proposal EXECUTING. The name is kept for it until it ends.
type Claim struct {
	ID     string
	Holder string
	For    time.Duration // how long the lease lasts unless it is renewed
	Ref    string        // the call's idempotency reference; may be empty
	// Confirmed: the policy's name was typed. Without it, a proposal whose
	// impact is HIGH with the devices that use the policy now is NotConfirmed.
	Confirmed bool
	// Verifier decides whether the approval of a proposal that needs one still counts,
	// under the same locks. One that does not is void: the proposal waits again. Next is
	// what will be sent: no approval of anything else counts.
	Verifier approval.Verifier
	Next     Next
}

// Claimed is the result of a Claim.
type Claimed string

// What a claim may come to. Only Begun changes anything.
const (
	Begun      Claimed = "BEGUN"
	NotPending Claimed = "NOT_PENDING" // another call was faster, or its time is over
	Stale      Claimed = "STALE"       // the policy was saved since
	Gone       Claimed = "GONE"        // the policy was deleted
	Busy       Claimed = "BUSY"        // another has the policy's lease
	// NotConfirmed: the policy's name has to be typed. If the impact rose, that
	// is kept.
	NotConfirmed Claimed = "NOT_CONFIRMED"
	NameTaken    Claimed = "NAME_TAKEN"
	// NotApproved: a person must approve it, and has not, or not what it now is.
	NotApproved Claimed = "NOT_APPROVED"
	Unconnected Claimed = "UNCONNECTED" // the company has no enterprise for a copy
)

// Ending is how applying a proposal ended.
type Ending struct {
	ID     string
	Holder string

	// Save saves Next as the policy's next version, with its revision. If the
	// policy was saved otherwise since (which only the looks after a doubtful
	// outcome can meet), nothing is saved and the platform's copy counts as
	// not known.
	Save bool
	// Held: the platform holds Next, and calls it VendorVersion. Doubted: what
	// the platform holds is not known, and the saved version must be pushed.
	Held          bool
	VendorVersion int64
	Doubted       bool

	// Status is the proposal's state if it is EXECUTING still; a final one
	// stays what it is.
	Status  Status
	Failure fault.Code
	Outcome string

	// LookIn is when to look at the platform's copy again; 0: never. Looked
	// counts a look that saw something.
	LookIn time.Duration
	Looked bool
}

// Policies are what proposals need to know of policies. Each method fails as the database does, and
// with the faults that it names.
type Policies interface {
	// Policy returns a policy, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// Revision returns one revision, or fault.NotFound.
	Revision(ctx context.Context, companyID, policyID string, revision int) (policy.Revision, error)
	// PolicyNamed returns the id of a policy of the company, but for one, whose
	// name people would take for this one, or fault.NotFound.
	PolicyNamed(ctx context.Context, companyID, name, except string) (string, error)
}

// Companies finds companies. CompanyByID returns fault.NotFound without such a company.
type Companies interface {
	CompanyByID(ctx context.Context, id string) (company.Company, error)
}

// Publisher is the platform. Its callers have the policy's lease.
type Publisher interface {
	// PushUnsaved makes the platform's copy of a policy p.Document, whole, in
	// one attempt, and returns what the platform calls the version. It ends
	// when ctx does.
	PushUnsaved(ctx context.Context, c company.Company, p policy.Policy) (policy.PushResult, int64)
	// ReadCopy reads the platform's copy of a policy and says whether it means
	// the same as p.Document. It fails if the platform does not answer, or not with a policy.
	ReadCopy(ctx context.Context, c company.Company, p policy.Policy) (policy.Copy, error)
}
