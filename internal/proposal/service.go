package proposal

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// The times of an apply, which holds a lease on the policy and renews it. After a crash, the policy cannot be changed
// until the lease ends.
const (
	leaseTime = 12 * time.Second
	renewEach = 4 * time.Second // the time between two renewals
	// DefaultPushLimit is how long one call that saves the policy on the platform may take.
	DefaultPushLimit = 30 * time.Second
	// DefaultLeaseWait is how long an apply waits for the policy's lease, which it asks for every leasePoll.
	DefaultLeaseWait = 30 * time.Second
	leasePoll        = 40 * time.Millisecond
)

// Service makes proposals of policy changes, and applies them.
type Service struct {
	Store     Store
	Policies  Policies
	Companies Companies
	Checker   policy.DocumentChecker
	Publisher Publisher
	// PublicURL is the portal's address, without a slash at the end.
	PublicURL string
	Verifier  approval.Verifier
	Log       *slog.Logger // nil: nothing is logged

	PushLimit time.Duration // 0: DefaultPushLimit
	LeaseWait time.Duration // 0: DefaultLeaseWait

	// Crash is called at each step of an apply, with the step's name, so that tests can end the
	// process there. Nil in production.
	Crash func(step string)
}

// The steps at which Crash is called.
const (
	BeforeClaim  = "before claim"
	AfterClaim   = "after claim"
	AfterPush    = "after push"
	AfterOutcome = "after outcome"
)

func (s *Service) crash(step string) {
	if s.Crash != nil {
		s.Crash(step)
	}
}

func (s *Service) log() *slog.Logger { return cmp.Or(s.Log, slog.New(slog.DiscardHandler)) }

// finder is Store.Proposal or Store.PeekProposal.
type finder func(ctx context.Context, companyID, id string) (Proposal, error)

// Read returns a proposal that the principal made. Any other is fault.NotFound (contract 5.6).
func (s *Service) Read(ctx context.Context, p access.Principal, id string) (Proposal, error) {
	return s.own(ctx, p, id, s.Store.Proposal)
}

func (s *Service) own(ctx context.Context, p access.Principal, id string, find finder) (Proposal, error) {
	found, err := s.visible(ctx, p, id, find)
	if err == nil && !found.ownedBy(p) {
		return Proposal{}, notFound()
	}
	return found, err
}

// Look returns any proposal of the principal's company that concerns a policy
// within the principal's limits. It is for portal users who may edit policies
// (contract 5.6); the caller has checked that.
func (s *Service) Look(ctx context.Context, p access.Principal, id string) (Proposal, error) {
	return s.visible(ctx, p, id, s.Store.Proposal)
}

// visible returns a proposal of the principal's company about a policy that the principal may see, or fault.NotFound.
func (s *Service) visible(ctx context.Context, p access.Principal, id string, find finder) (Proposal, error) {
	if !resource.IsProposalID(id) {
		return Proposal{}, notFound()
	}
	found, err := find(ctx, p.CompanyID, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !p.MaySee(found.PolicyID) {
		return Proposal{}, notFound()
	}
	if err != nil {
		return found, err
	}
	return s.present(ctx, found)
}

func notFound() error {
	return fault.New(fault.NotFound,
		"there is no proposal with this id that you made: take the proposalId from the call that made it, or propose again")
}

// editable returns fault.Unsupported if proposals cannot change the policy.
func editable(p policy.Policy) error {
	if !p.Editable() {
		return fault.New(fault.Unsupported, "the policy is managed by the service itself: change it in the portal")
	}
	return nil
}
