package cli

import (
	"context"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
)

// PolicyPush sends a policy to the platform now.
type PolicyPush struct {
	OfPolicy
	PlatformFlags
}

// Run pushes the policy.
func (c *PolicyPush) Run(env *Env) error {
	if err := c.Platform.Check(); err != nil {
		return err
	}
	return c.with(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		if p.Type != policy.Platform {
			return answer{}, fault.New(fault.Unsupported, "the policy %q is not one of the platform's: agents fetch it themselves", p.Name)
		}
		platform, err := admin.Platform(c.Platform, "")
		if err != nil {
			return answer{}, err
		}
		if result := platform.Push(ctx, owner, p.ID); result.Code != outcome.Done {
			return answer{}, fault.New(fault.Refused, "the policy was not pushed: %s", result.Detail).Because(result.Cause)
		}
		if p, err = admin.Policies.Current(ctx, owner.ID, p.ID); err != nil {
			return answer{}, err
		}
		return showPolicy("Pushed", p, ""), nil
	})
}
