package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
)

// Platform is what administration does at the vendor's platform. Each method fails as the database
// does, with fault.NotFound without the company or the policy, and with fault.Provider if the vendor
// refused, or its answer is not known.
type Platform interface {
	// Connect binds a company to an enterprise and pushes its policies. If a
	// person has to sign the company up, it returns the page where. It fails with
	// fault.Refused if the service has no public address, and fault.Unavailable while
	// another binds the company.
	Connect(ctx context.Context, companyID string) (connected company.Company, signupPage string, err error)
	// Disconnect gives up a company's enterprise. It may be called again after it was
	// interrupted. It fails with fault.Refused if the company has no enterprise, or if
	// that manages devices.
	Disconnect(ctx context.Context, companyID string) (company.Company, error)
	// Push brings the platform's copy of a policy up to date.
	Push(ctx context.Context, c company.Company, policyID string) policy.PushResult
	// PushPolicy is Push that a person asks for, which is recorded first. It fails with
	// fault.Refused if the platform refuses the policy, fault.Unavailable if nothing was
	// sent, and fault.Provider if the outcome is not known.
	PushPolicy(ctx context.Context, companyID, policyID string) error
}

// PlatformFlags say how the vendor's API is reached. Commands that save
// policies work without them: a running service pushes what they could not.
type PlatformFlags struct{ config.Platform }

// Validate wants an address of the platform, or none.
func (f PlatformFlags) Validate() error { return f.Platform.Check() }

// given reports whether there is a way to a platform.
func (f PlatformFlags) given() bool { return f.PlatformEndpoint != "" || f.PlatformCredentials != "" }

// push brings a saved policy to the platform where that is possible now. It
// returns the policy as it then is and a note for people.
func (f PlatformFlags) push(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (policy.Policy, string) {
	switch {
	case !p.Behind():
		return p, ""
	case !owner.Connected():
		return p, "The company is not connected to the platform yet: the policy is pushed when it is (`muster company connect`)."
	case !f.given():
		return p, "A running service pushes it to the platform."
	}
	platform, err := admin.Platform(f.Platform, "")
	if err != nil {
		return p, "It could not be pushed to the platform now (" + Message(err) + "); a running service tries again."
	}
	result := platform.Push(ctx, owner, p.ID)
	if now, err := admin.Policies.Current(ctx, owner.ID, p.ID); err == nil {
		p = now
	}
	if result.Code != outcome.Done {
		return p, "It could not be pushed to the platform now (" + result.Detail + "); a running service tries again."
	}
	return p, "It was pushed to the platform."
}

// CompanyConnect binds a company to an enterprise at the platform.
type CompanyConnect struct {
	Named
	PlatformFlags
	PublicURL string `name:"public-url" env:"MUSTER_PUBLIC_URL" placeholder:"URL" help:"Address of the running service, to which the sign-up page returns; by default the one with which it last started."`
}

// connectView is the company with, if an administrator has to go there first, the
// sign-up page.
type connectView struct {
	companyView
	SignupURL string `json:"signupUrl,omitempty"`
}

// Run connects the company. At an emulator that is all; at the real platform a
// person signs the company up on the page that is printed, while the service
// runs, which then completes the connection.
func (c *CompanyConnect) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		last, err := admin.PublicURL(ctx)
		if err != nil {
			return answer{}, err
		}
		address := config.Origin(cmp.Or(c.PublicURL, last, "http://127.0.0.1:8080"))
		platform, err := admin.Platform(c.Platform, address)
		if err != nil {
			return answer{}, err
		}
		owner, page, err := platform.Connect(ctx, owner.ID)
		if err != nil {
			return answer{}, err
		}
		if page == "" {
			return showCompany("Connected", owner, company.Trouble{}), nil
		}
		return answerf(connectView{viewCompany(owner, company.Trouble{}), page},
			"Sign %s up on this page; it returns to %s, where the service must be running:\n\n%s\n", owner.Name, address, page), nil
	})
}

// CompanyDisconnect gives up a company's enterprise at the platform.
type CompanyDisconnect struct {
	Named
	PlatformFlags
	Confirm string `name:"confirm" required:"" placeholder:"SLUG" help:"The company's slug once more."`
}

// Validate wants the slug typed twice.
func (c *CompanyDisconnect) Validate() error {
	return c.confirmed(c.Confirm)
}

// Run disconnects the company. What was begun is finished by running it again.
func (c *CompanyDisconnect) Run(env *Env) error {
	if !c.given() {
		return errors.New("the platform must say whether it has the enterprise: set MUSTER_PLATFORM_CREDENTIALS or " +
			"MUSTER_PLATFORM_ENDPOINT as the service does")
	}
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		platform, err := admin.Platform(c.Platform, "")
		if err != nil {
			return answer{}, err
		}
		owner, err = platform.Disconnect(ctx, owner.ID)
		return showCompany("Disconnected", owner, company.Trouble{}), err
	})
}

// AssetCompanion makes a token with which the companion app on one device
// enrolls (docs/agent-protocol.md "Companions").
type AssetCompanion struct {
	OfCompany
	Asset string `arg:"" help:"The asset's name, id or path name."`
}

type companionView struct {
	AssetID   string              `json:"assetId"`
	Token     string              `json:"token"`
	ExpiresAt operation.Timestamp `json:"expiresAt"`
}

// Run makes the token. It is shown here once.
func (c *AssetCompanion) Run(env *Env) error {
	return c.run(env, on((*Admin).asset, c.Asset, func(ctx context.Context, admin *Admin, owner company.Company, id string) (
		answer, error) {
		a, err := admin.Assets.Asset(ctx, owner.ID, id)
		if err != nil {
			return answer{}, err
		}
		if !a.Status.Enrolled() || a.Device == nil || a.Device.Management != asset.Platform {
			return answer{}, fault.New(fault.Refused, "asset %s is not a device that the platform manages: only those have companions",
				a.PathName())
		}
		text, expires, err := agentdevice.Companions{Store: admin.Companions, Now: env.Now}.Issue(ctx, owner.ID, a.ID, a.Device.Epoch)
		view := companionView{AssetID: a.PathName(), Token: text, ExpiresAt: operation.Timestamp{Time: expires}}
		return answerf(view, "Token for the companion app of %s, valid once and until %s; it is not shown again:\n\n%s\n",
			a.PathName(), day(expires), text), err
	}))
}
