package proposal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// When the platform's copy is looked at after an outcome became doubtful. The
// first look decides; the later ones catch a request that was under way for
// very long and took effect after the first.
const (
	firstLook  = time.Second
	secondLook = 30 * time.Second
	thirdLook  = 3 * time.Minute
	// blindLook is when to try again at first if the platform could not be asked, and longestBlind at most.
	blindLook    = 15 * time.Second
	longestBlind = 10 * time.Minute
)

// reconcileBatch bounds the proposals of one round.
const reconcileBatch = 50

// ReconcilerStore finds proposals with a doubtful outcome, one replica each. Each method fails as the
// database does, and with the faults that it names.
type ReconcilerStore interface {
	// Unconfirmed returns up to limit proposals that are due for a look: those
	// whose outcome is not known, and EXECUTING ones whose holder may be dead.
	Unconfirmed(ctx context.Context, limit int) ([]Proposal, error)
	// TakeOverProposal gives the holder a proposal that is due, with its policy's lease;
	// false while another holder has that. fault.NotFound without such a proposal.
	TakeOverProposal(ctx context.Context, id, holder string, ttl time.Duration) (Proposal, bool, error)
	// FinishProposal is Store's.
	FinishProposal(ctx context.Context, e Ending) (Proposal, bool, error)
	// Lease is Store's.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	// WasDisconnected reports whether a company gave up an enterprise.
	WasDisconnected(ctx context.Context, companyID string) (bool, error)
}

// Reconciler settles proposals whose outcome became doubtful: it reads the
// platform's copy and brings both sides together. What the platform holds of
// the reviewed document is saved here; anything else is overwritten by what is
// saved. A proposal left EXECUTING by a crash ends SUCCEEDED or FAILED by that,
// or UNCONFIRMED if the platform cannot be asked. It ends FAILED if the company never
// had an enterprise: then nothing was sent.
type Reconciler struct {
	Store     ReconcilerStore
	Policies  Policies
	Companies Companies
	Publisher Publisher
	Now       func() time.Time
	Log       *slog.Logger // nil: silent
}

// Settle looks once at everything that is due. Every replica calls it, every
// few seconds.
func (k *Reconciler) Settle(ctx context.Context) error {
	due, err := k.Store.Unconfirmed(ctx, reconcileBatch)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range due {
		errs = append(errs, k.settle(ctx, p.ID))
	}
	return errors.Join(errs...)
}

func (k *Reconciler) settle(ctx context.Context, id string) error {
	holder := resource.NewLeaseHolder("proposal")
	p, taken, err := k.Store.TakeOverProposal(ctx, id, holder, leaseTime)
	if err != nil || !taken {
		return err
	}
	held, release := keep(ctx, k.Store.Lease, policy.LeaseKey(p.Next.PolicyID), holder)
	defer release()
	e, err := k.look(held, p)
	if err != nil {
		return err // the lease runs out, and another look follows
	}
	e.ID, e.Holder = p.ID, holder
	after, _, err := k.Store.FinishProposal(ctx, e)
	if err == nil && k.Log != nil {
		k.Log.InfoContext(ctx, "looked at the platform's copy after a doubtful policy change",
			slog.String("proposal", p.ID), slog.String("status", string(after.Status)),
			slog.Bool("saved", e.Save), slog.Bool("push again", e.Doubted))
	}
	return err
}

// look reads the platform's copy and says what follows from it. The error is
// the store's alone.
func (k *Reconciler) look(ctx context.Context, p Proposal) (Ending, error) {
	c, err := k.Companies.CompanyByID(ctx, p.CompanyID)
	if err != nil {
		return Ending{}, err
	}
	saved, err := k.Policies.Policy(ctx, p.CompanyID, p.Next.PolicyID)
	missing := fault.CodeOf(err) == fault.NotFound
	if err != nil && !missing {
		return Ending{}, err
	}
	e := Ending{Status: Unconfirmed, Outcome: "the service was interrupted, and the platform could not be asked", LookIn: k.nextBlind(p)}
	if !c.Connected() {
		e.LookIn = 0 // there is no copy any more
		asked, err := k.Store.WasDisconnected(ctx, c.ID)
		if !asked { // the change would have been saved as the proposal ended
			e.Status, e.Failure, e.Outcome = Failed, fault.Internal, "the service was interrupted before the change was saved"
		}
		return e, err
	}
	untouched := !missing && !saved.Deleted && saved.Version == p.BaseVersion
	if p.Creates() {
		untouched = missing
	}
	if p.Looks == 0 && untouched {
		found, err := k.Publisher.ReadCopy(ctx, c, p.policy())
		if err != nil {
			return e, nil
		}
		if found.Same {
			return Ending{Save: true, Held: true, VendorVersion: found.Version, Status: Succeeded}, nil
		}
	}
	return k.compare(ctx, c, p, saved, missing, e)
}

// compare looks whether the platform holds what is saved. blind is the ending
// if it cannot be asked.
func (k *Reconciler) compare(ctx context.Context, c company.Company, p Proposal, saved policy.Policy, missing bool,
	blind Ending) (Ending, error) {
	e := Ending{Status: Failed, Failure: fault.Internal, Looked: true, LookIn: nextLook(p.Looks),
		Outcome: "the service was interrupted before the platform had the change"}
	if missing || saved.Deleted {
		e.LookIn = 0
		return e, nil
	}
	found, err := k.Publisher.ReadCopy(ctx, c, saved)
	if err != nil {
		return blind, nil
	}
	e.Doubted = !found.Same
	return e, nil
}

// nextBlind is how long after a look that saw nothing the next one is due: as long as the proposal can have been in doubt.
func (k *Reconciler) nextBlind(p Proposal) time.Duration {
	since := p.CreatedAt
	if p.Approval.At.After(since) {
		since = p.Approval.At
	}
	return min(max(k.Now().Sub(since), blindLook), longestBlind)
}

// nextLook is how long after a look the next one is due; 0: it was the last.
func nextLook(looks int) time.Duration {
	return map[int]time.Duration{0: secondLook, 1: thirdLook}[looks]
}
