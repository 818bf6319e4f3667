package proposal

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// Propose proposes new values of settings as the person's own, on the policy
// as it now is. It fails as Service.ProposeChanges does.
func (r Reviewer) Propose(ctx context.Context, call operation.Call, policyRef string, changes []policy.Change) (Proposal, error) {
	return r.admitted(ctx, call, changes, func() (Proposal, error) {
		return r.Service.ProposeChanges(ctx, call, policyRef, changes)
	})
}

// ProposeCopy proposes a new policy as the person's own. It fails as
// Service.ProposeCopy does.
func (r Reviewer) ProposeCopy(ctx context.Context, call operation.Call, sourceRef, displayName string, changes []policy.Change) (Proposal, error) {
	return r.admitted(ctx, call, changes, func() (Proposal, error) {
		return r.Service.ProposeCopy(ctx, call, sourceRef, displayName, changes)
	})
}

// ProposeRollback proposes to return to a revision, as the person's own. It
// fails as Service.ProposeRollback does.
func (r Reviewer) ProposeRollback(ctx context.Context, call operation.Call, policyRef string, revision int) (Proposal, error) {
	return r.admitted(ctx, call, nil, func() (Proposal, error) {
		return r.Service.ProposeRollback(ctx, call, policyRef, revision)
	})
}

// Again proposes what an earlier proposal asked for as the person's own, on the
// policy as it now is, so the list may differ from the earlier one's: it is for
// the person to look at before he applies it. It fails as proposing does.
func (r Reviewer) Again(ctx context.Context, call operation.Call, id string) (Proposal, error) {
	return r.admitted(ctx, call, nil, func() (Proposal, error) { return r.Service.Again(ctx, call, id) })
}

// Apply applies a proposal of the person's own. It fails as Service.Apply does;
// another's is fault.NotFound.
func (r Reviewer) Apply(ctx context.Context, call operation.Call, id, confirmation string) (Proposal, error) {
	return r.admitted(ctx, call, nil, func() (Proposal, error) { return r.Service.Apply(ctx, call, id, confirmation) })
}

// admitted works if the person may and has budget left, in the order of
// contract 5.10.
func (r Reviewer) admitted(ctx context.Context, call operation.Call, changes []policy.Change, work func() (Proposal, error)) (Proposal, error) {
	if err := access.Grant(call.Principal, mayReview, access.PolicyChanges); err != nil {
		return Proposal{}, err
	}
	if _, faults := policy.NormalChanges(changes); len(faults) > 0 {
		return Proposal{}, fault.Invalid("the changes cannot be proposed as they are", faults...)
	}
	left, err := r.Limiter.Spend(ctx, call.Principal.BudgetKey())
	if err != nil {
		return Proposal{}, err
	}
	if !left.Spent {
		return Proposal{}, fault.Limited(left.Reset, "you have made %d changes in the last minute: try again in %d seconds",
			left.Limit, operation.Seconds(left.Reset))
	}
	return work()
}
