package proposal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// Apply applies a proposal of the principal's own. The checks are in the order
// of contract 4.3: not found, not pending, stale, confirmation.
// It fails with fault.Refused if the platform refused the policy, and with
// fault.Internal if nothing was sent or the outcome is unknown; the proposal's state then
// says which (contract 7.3).
func (s *Service) Apply(ctx context.Context, call operation.Call, id, confirmation string) (Proposal, error) {
	p, err := s.Read(ctx, call.Principal, id)
	if err == nil && p.Creates() {
		err = policy.MayCreate(call.Principal)
	}
	if err != nil {
		return Proposal{}, err
	}
	if call.IdempotencyRef != "" && p.ApplyRef == call.IdempotencyRef {
		return p, ended(p) // the process ended before this call was answered
	}
	if err := s.stillApplies(ctx, p); err != nil {
		return Proposal{}, err
	}
	s.crash(BeforeClaim)
	t, err := s.claim(ctx, call, p, policy.Confirms(confirmation, p.TargetName))
	if err != nil {
		return Proposal{}, err
	}
	return s.execute(access.Settling(context.WithoutCancel(ctx)), t) // what was claimed is carried out
}

// confirmationRequired is the fault of a proposal that is not applied without
// its policy's name. It carries what the person has to see again, since devices
// may have been added after the proposal was read.
func confirmationRequired(p Proposal) *fault.Error {
	f := fault.New(fault.ConfirmationRequired,
		"this change has high impact: show the summary to the person who approves it, who must type the policy's name as confirmation")
	f.Review = p.review()
	return f
}

func (p Proposal) review() *fault.Review {
	return &fault.Review{Impact: string(p.Impact), RequiresConfirmation: p.NeedsConfirmation(), Summary: p.Summary}
}

// stillApplies is the fault of a proposal that can never be applied any more,
// and ends it FAILED. Its confirmation counts only as the policy is when the
// proposal is claimed.
func (s *Service) stillApplies(ctx context.Context, p Proposal) error {
	if p.Status != Pending {
		return notPending(p)
	}
	now, err := s.situation(ctx, p, true)
	if err != nil {
		return err
	}
	if verdict := now.Decide(); verdict != Begun {
		return s.fail(ctx, p, s.refusal(verdict, p))
	}
	return nil
}

// fail ends a PENDING proposal and returns why, or fault.NotPending if it was
// not PENDING any more.
func (s *Service) fail(ctx context.Context, p Proposal, why *fault.Error) error {
	was, err := s.Store.FailProposal(ctx, p.ID, why.Code, why.Detail)
	switch {
	case err != nil:
		return err
	case was:
		return why
	}
	now, err := s.Store.Proposal(ctx, p.CompanyID, p.ID)
	if err != nil {
		return err
	}
	return notPending(now)
}

func notPending(p Proposal) *fault.Error {
	advice := map[Status]string{
		Executing:   "it is being applied: read it again until that ends",
		Succeeded:   "it was applied",
		Failed:      "it failed: propose again",
		Unconfirmed: "it is not known whether it was applied: read the policy's settings before you propose again",
		Expired:     "it was not applied in time: propose again",
	}
	if p.Status == Failed && p.Approval.State == Declined {
		return fault.New(fault.NotPending, "the proposal is FAILED: %s; ask that person before you propose the same again", p.Outcome)
	}
	return fault.New(fault.NotPending, "the proposal is %s: %s", p.Status, advice[p.Status])
}

// leased is a claimed proposal with the right to send its policy.
type leased struct {
	Proposal
	holder string
}

// claim makes the proposal EXECUTING as soon as its policy's lease is free.
// Whether the name has to be typed is decided by the store, in the transaction
// that claims.
func (s *Service) claim(ctx context.Context, call operation.Call, p Proposal, confirmed bool) (leased, error) {
	c := Claim{ID: p.ID, Holder: resource.NewLeaseHolder("proposal"), For: leaseTime, Ref: call.IdempotencyRef, Confirmed: confirmed,
		Verifier: s.Verifier, Next: p.Next}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(s.LeaseWait, DefaultLeaseWait))
	defer cancel()
	for {
		verdict, err := s.Store.ClaimProposal(ctx, c)
		if err != nil {
			return leased{}, err
		}
		switch verdict {
		case Begun:
			return leased{p, c.Holder}, nil
		case NotConfirmed, NotApproved, NotPending:
			now, err := s.Store.Proposal(ctx, p.CompanyID, p.ID)
			if err != nil {
				return leased{}, err
			}
			return leased{}, s.refusal(verdict, now)
		case Stale, Gone, NameTaken:
			return leased{}, s.fail(ctx, p, s.refusal(verdict, p))
		default: // it is asked again
		}
		if !wait.For(waiting, leasePoll) {
			break
		}
	}
	if err := ctx.Err(); err != nil { // the caller has gone; nothing happened
		return leased{}, err
	}
	return leased{}, s.fail(ctx, p, fault.New(fault.Internal,
		"another change of the policy was still being sent to the platform; nothing of this one was: propose again"))
}

// execute sends the claimed proposal's document and saves its outcome. The
// caller going away does not stop it.
func (s *Service) execute(ctx context.Context, t leased) (Proposal, error) {
	s.crash(AfterClaim)
	e := s.send(ctx, t)
	s.crash(AfterPush)
	after, err := s.finish(ctx, e)
	if err != nil {
		s.log().ErrorContext(ctx, "the outcome of a policy change could not be saved; it will be found out",
			slog.String("proposal", t.ID), slog.Any("error", err))
		return Proposal{}, unknown().Because(err)
	}
	s.crash(AfterOutcome)
	return after, ended(after)
}

// send pushes the document, keeping the lease, and says how applying ends.
func (s *Service) send(ctx context.Context, t leased) Ending {
	e := Ending{ID: t.ID, Holder: t.holder}
	c, err := s.Companies.CompanyByID(ctx, t.CompanyID)
	switch {
	case err != nil:
		return e.failed(fault.Internal, "the service failed before anything was sent")
	case !c.Connected():
		e.Save, e.Status = true, Succeeded // pushed once the company connects
		return e
	}
	held, release := keep(ctx, s.Store.Lease, policy.LeaseKey(t.Next.PolicyID), t.holder)
	defer release()
	held, cancel := context.WithTimeout(held, cmp.Or(s.PushLimit, DefaultPushLimit))
	defer cancel()
	result, version := s.Publisher.PushUnsaved(held, c, t.policy())
	if result.Cause != nil {
		s.log().WarnContext(ctx, "a policy was not pushed", slog.String("proposal", t.ID),
			slog.String("outcome", string(result.Code)), slog.Any("error", result.Cause))
	}
	switch result.Code {
	case outcome.Done:
		e.Save, e.Held, e.VendorVersion, e.Status = true, true, version, Succeeded
	case outcome.Refused:
		e = e.failed(fault.Refused, result.Detail)
	case outcome.NotSent:
		e = e.failed(fault.Internal, result.Detail)
	default:
		e.Status, e.Outcome, e.LookIn = Unconfirmed, result.Detail, firstLook
	}
	return e
}

func (e Ending) failed(code fault.Code, outcome string) Ending {
	e.Status, e.Failure, e.Outcome = Failed, code, outcome
	return e
}

// policy is what is sent: the next version, not saved yet.
func (p Proposal) policy() policy.Policy {
	version := p.BaseVersion + 1
	if p.Creates() {
		version = 1
	}
	return policy.Policy{ID: p.Next.PolicyID, CompanyID: p.CompanyID, CompanySlug: p.CompanySlug, Name: p.Next.Name,
		Type: policy.Platform, Version: version, Document: p.Next.Document}
}

// finish saves an ending. The database may be away for a moment: what the
// platform took should not become doubtful for that.
func (s *Service) finish(ctx context.Context, e Ending) (Proposal, error) {
	const attempts = 5
	for n := 1; ; n++ {
		p, _, err := s.Store.FinishProposal(ctx, e)
		if err == nil || n == attempts || !wait.For(ctx, time.Duration(n)*200*time.Millisecond) {
			return p, err
		}
	}
}

// ended is the fault of a proposal by how it ended; nil if it succeeded.
func ended(p Proposal) error {
	switch p.Status {
	case Succeeded:
		return nil
	case Failed:
		if p.Failure == fault.Internal {
			return fault.New(fault.Internal, "the change was not applied, nothing changed: %s: propose again", p.Outcome)
		}
		return fault.New(p.Failure, "%s", p.Outcome)
	default:
		return unknown()
	}
}

func unknown() *fault.Error {
	return fault.New(fault.Internal,
		"it is not known whether the change was applied: read the proposal, and the policy's settings before you propose again")
}

var errLeaseLost = errors.New("the lease of the policy was lost")

// keep renews a lease. A lease that cannot be renewed in time is given up before
// another caller can have it. renew is the store's Lease.
func keep(ctx context.Context, renew func(ctx context.Context, name, holder string, ttl time.Duration) (bool, error),
	name, holder string) (held context.Context, release func()) {
	held, lost := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for failures := 0; wait.For(held, renewEach); {
			attempt, cancel := context.WithTimeout(held, renewEach/2)
			ok, err := renew(attempt, name, holder, leaseTime)
			cancel()
			if failures++; err == nil {
				failures = 0
			}
			if failures == 2 || err == nil && !ok {
				lost(errLeaseLost)
				return
			}
		}
	}()
	return held, func() { lost(nil); <-done }
}
