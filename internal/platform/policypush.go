package platform

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// Only one caller at a time pushes a policy, so that two versions cannot reach
// the vendor in reverse order. The lease outlives any push.
const (
	pushLease = sendLimit + 20*time.Second
	leaseWait = 50 * time.Millisecond
)

// Push brings the platform's copy of a policy up to the version that is saved
// now, and notes what came of it. It waits while another pushes the policy. Once
// begun it does not depend on the caller.
func (p *Platform) Push(ctx context.Context, c company.Company, id string) policy.PushResult {
	if !c.Connected() {
		return unsent("the company is not connected to the device-management program", nil)
	}
	ctx, cancel := p.detached(ctx)
	defer cancel()
	lease, holder := policy.LeaseKey(id), resource.NewLeaseHolder("platform")
	if err := p.await(ctx, lease, holder); err != nil {
		return unsent("another is pushing the policy, or the store failed", err)
	}
	defer p.release(ctx, lease, holder)
	current, err := p.store.Policies.Policy(ctx, c.ID, id)
	if err != nil {
		return unsent("the policy could not be read", err)
	}
	return p.pushSaved(ctx, c, current, urgent)
}

// pushSaved pushes the saved version of a policy, which was read under its lease. The caller holds that.
func (p *Platform) pushSaved(ctx context.Context, c company.Company, current policy.Policy, r rank) policy.PushResult {
	if current.Deleted || current.Type != policy.Platform {
		return unsent("the policy is not one of the platform's", nil)
	}
	body, err := outgoing(current.Document)
	if err != nil {
		return p.notPushed(ctx, current, policy.PushResult{Code: outcome.Refused, Detail: err.Error(), Cause: err})
	}
	version, err := p.patchPolicy(ctx, policyName(c.Enterprise, current.ID), body, r)
	if err != nil {
		return p.notPushed(ctx, current, pushResult(err))
	}
	if err := p.store.Policies.SetPushed(ctx, current.ID, current.Version, version, p.now()); err != nil {
		return policy.PushResult{Code: outcome.Unknown, Cause: err,
			Detail: "the platform took the policy, but that could not be noted; it is pushed again"}
	}
	return policy.PushResult{Code: outcome.Done}
}

// notPushed notes why a saved version could not be pushed.
func (p *Platform) notPushed(ctx context.Context, current policy.Policy, result policy.PushResult) policy.PushResult {
	var backoff func(time.Duration) time.Duration // nil: refused
	if result.Code != outcome.Refused {
		backoff = pushBackoff
	}
	if err := p.store.Policies.SetPushFailed(ctx, current.ID, current.Version, result.Detail, p.now(), backoff); err != nil {
		result.Cause = errors.Join(result.Cause, err)
	}
	return result
}

// pushBackoff is when to try again what has failed for some time.
func pushBackoff(failing time.Duration) time.Duration {
	return min(max(failing, 5*time.Second), 10*time.Minute)
}

// pushResult sorts a failed push.
func pushResult(err error) policy.PushResult {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return policy.PushResult{Code: outcome.Unknown, Detail: "an unexpected error occurred", Cause: err}
	}
	r := policy.PushResult{Code: outcome.NotSent, Cause: err}
	switch f.Code {
	case outcome.Refused:
		r.Code, r.Detail = outcome.Refused, "the platform refused the policy: "+quoted(f.Message)
	case outcome.Unknown:
		r.Code, r.Detail = outcome.Unknown, "the platform did not confirm the policy"
	case outcome.Throttled:
		r.Detail = "the platform's rate limit is exceeded: retry later"
	case outcome.Conflict:
		r.Detail = "the platform had a temporary conflict"
	case outcome.Missing, outcome.Denied:
		r.Detail = "the platform refuses this service, or the company's enterprise"
	default:
		r.Detail = why(f)
	}
	return r
}

func unsent(detail string, cause error) policy.PushResult {
	return policy.PushResult{Code: outcome.NotSent, Detail: detail, Cause: cause}
}

// pushBefore brings the policy up to date that a device is about to be moved
// to; nil if the platform holds it.
func (p *Platform) pushBefore(ctx context.Context, owner company.Company, to policy.Policy) *command.Receipt {
	if !to.Behind() {
		return nil
	}
	result := p.Push(ctx, owner, to.ID)
	if result.Code == outcome.Done {
		return nil
	}
	failure, ok := errors.AsType[*Failure](result.Cause)
	if !ok {
		failure = notSent(methodPatchPolicy, result.Detail, result.Cause)
	}
	sorted := *failure
	switch {
	case sorted.Code == outcome.Unknown: // the device itself was not touched
		sorted.Code, sorted.Message = outcome.NotSent, "the platform did not confirm the policy that the device was to get"
	case sorted.Code == outcome.Refused:
		sorted.Message = "the policy itself is refused: " + orNoReason(sorted.Message)
	}
	r := receipt(&sorted, false)
	if failure.Code == outcome.Refused {
		r.Detail = "the platform refused the policy that the device was to get: " + quoted(failure.Message)
	}
	return &r
}

// await takes a lease, waiting while another holds it.
func (p *Platform) await(ctx context.Context, name, holder string) error {
	for {
		held, err := p.store.Leases.Lease(ctx, name, holder, pushLease)
		if held || err != nil {
			return err
		}
		if !wait.For(ctx, leaseWait) {
			return fault.New(fault.Unavailable, "%s is held by another", name).Because(ctx.Err())
		}
	}
}

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

// pushOne pushes a policy of a list unless another replica does, or did after the list was read.
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
	current, err := p.store.Policies.Policy(ctx, owner.ID, one.ID)
	if err != nil {
		return unsent("the policy could not be read", err), true
	}
	if !current.Behind() || !current.Push.TriedAt.Equal(one.Push.TriedAt) {
		return policy.PushResult{}, false
	}
	return p.pushSaved(ctx, owner, current, r), true
}

// PushPolicy is Push that a person asks for, which is recorded first.
// It fails with fault.Refused, fault.Unavailable if nothing changed at the
// platform, or fault.Provider if the outcome is unknown.
func (p *Platform) PushPolicy(ctx context.Context, companyID, policyID string) error {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return err
	}
	of, err := p.store.Policies.Policy(ctx, companyID, policyID)
	if err == nil {
		err = p.store.Policies.NotePushAsked(ctx, of)
	}
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
	default: // the code stays
	}
	return fault.New(code, "%s", result.Detail).Because(errors.Join(result.Cause))
}
