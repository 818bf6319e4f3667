package platform

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// maxPushes bounds the policies of one round.
const maxPushes = 20

// Pushes brings every policy that is behind up to date, until the context ends.
// A version that the vendor refused waits for the next one, or for Push.
func (p *Platform) Pushes(ctx context.Context) error {
	return p.every(ctx, p.cfg.Schedule.Push, "pushing policies", func(ctx context.Context) error {
		_, _, err := p.pushDue(ctx, "", upkeep)
		return err
	})
}

// pushDue pushes the policies, of one company or of all, that are behind and
// due, and says how many there were and how many the vendor took.
func (p *Platform) pushDue(ctx context.Context, companyID string, r rank) (due, pushed int, err error) {
	behind, err := p.store.Policies.PoliciesToPush(ctx, companyID, p.now(), maxPushes)
	if err != nil {
		return 0, 0, err
	}
	for _, one := range behind {
		if err := ctx.Err(); err != nil {
			return 0, pushed, err
		}
		result, tried := p.pushOne(ctx, one, r)
		switch {
		case !tried:
		case result.Code == outcome.Done:
			pushed++
		default:
			p.log.WarnContext(ctx, "cannot push a policy", "policy", one.ID, "outcome", string(result.Code),
				"detail", result.Detail, "error", result.Cause)
		}
	}
	return len(behind), pushed, nil
}

// pushOne pushes a policy unless another replica does.
func (p *Platform) pushOne(ctx context.Context, one policy.Policy, r rank) (policy.PushResult, bool) {
	lease, holder := policy.LeaseKey(one.ID), resource.NewLeaseHolder("platform")
	held, err := p.store.Leases.Lease(ctx, lease, holder, pushLease)
	if err != nil {
		return unsent("the service's own store failed", err), true
	}
	if !held {
		return policy.PushResult{}, false
	}
	ctx, cancel := p.detached(ctx)
	defer cancel()
	defer p.release(ctx, lease, holder)
	owner, err := p.store.Companies.CompanyByID(ctx, one.CompanyID)
	if err != nil || !owner.Connected() {
		return unsent("the company is not connected", err), false
	}
	return p.pushSaved(ctx, owner, one.ID, r), true
}

// PushPolicy is Push for callers that only want to know whether it succeeded.
// It fails with fault.Refused, fault.Unavailable if nothing changed at the
// platform, or fault.Provider if the outcome is unknown.
func (p *Platform) PushPolicy(ctx context.Context, companyID, policyID string) error {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return err
	}
	result := p.Push(ctx, owner, policyID)
	code := fault.Provider
	switch result.Code {
	case outcome.Done:
		return nil
	case outcome.Refused:
		code = fault.Refused
	case outcome.NotSent:
		code = fault.Unavailable
	}
	return fault.New(code, "%s", result.Detail).Because(errors.Join(result.Cause))
}
