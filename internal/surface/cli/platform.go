package cli

import (
	"context"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
)

// PlatformFlags say how the vendor's API is reached. Commands work without
// them: what they could not do there, a running service does soon after.
type PlatformFlags struct{ config.Platform }

// Platform is what administration does at the vendor's platform.
type Platform interface {
	// PushPolicy brings the platform's copy of a policy up to date.
	PushPolicy(ctx context.Context, companyID, policyID string) error
}

// push brings a saved policy to the platform where that is possible now. It
// returns the policy as it then is and a note for people.
func (f PlatformFlags) push(ctx context.Context, env *Env, desk *Desk, owner company.Company, p policy.Policy) (policy.Policy, string) {
	switch {
	case !p.Behind():
		return p, ""
	case !owner.Connected():
		return p, "The company is not connected to the platform yet: the policy is pushed when it is (`muster company connect`)."
	case f.PlatformEndpoint == "" && f.PlatformCredentials == "":
		return p, "A running service pushes it to the platform."
	}
	platform, err := env.Platform(ctx, desk, f.Platform)
	if err == nil {
		err = platform.PushPolicy(ctx, owner.ID, p.ID)
	}
	if err != nil {
		return p, "It could not be pushed to the platform now (" + Message(err) + "); a running service tries again."
	}
	if pushed, err := desk.Policies.Current(ctx, owner.ID, p.ID); err == nil {
		p = pushed
	}
	return p, "It was pushed to the platform."
}
