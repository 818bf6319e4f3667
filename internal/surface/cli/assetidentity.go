package cli

import (
	"context"
	"fmt"
	"io"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// AssetToken makes a token with which a device enrolls as one asset, live or not.
type AssetToken struct {
	OfCompany
	Asset  string `arg:"" help:"The asset's id or path name."`
	Policy string `name:"policy" placeholder:"POLICY" help:"The AGENT policy with which the device enrolls; by default that of the asset."`
}

type assetTokenView struct {
	Token     string              `json:"token"`
	ExpiresAt operation.Timestamp `json:"expiresAt"`
	PolicyID  string              `json:"policyId"`
}

// Run makes the token. It is shown here once.
func (c *AssetToken) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		id, err := shortAsset(owner, c.Asset)
		if err != nil {
			return answer{}, err
		}
		policyID := ""
		if c.Policy != "" {
			var ok bool
			if policyID, ok = resource.Short(owner.Slug, resource.Policies, c.Policy); !ok {
				return answer{}, fault.New(fault.NotFound, "company %s has no policy %q", owner.Slug, c.Policy)
			}
		}
		text, made, err := agentdevice.AssetTokens{Store: admin.Identity, Now: env.Now}.Issue(ctx, owner.ID, id, policyID)
		view := assetTokenView{text, operation.Timestamp{Time: made.ExpiresAt}, resource.Of(owner.Slug, resource.Policies, made.PolicyID)}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "Token for %s, valid once and until %s; it is not shown again:\n\n%s\n", c.Asset, day(made.ExpiresAt), text)
		}}, err
	})
}

// AssetMerge merges two assets.
type AssetMerge struct {
	OfCompany
	Kept string `arg:"" help:"The asset that is kept, with its history: its id or path name."`
	New  string `arg:"" help:"The asset whose device it becomes."`
}

type mergeView struct {
	Kept   string `json:"kept"`
	Merged string `json:"merged"`
}

// Run merges.
func (c *AssetMerge) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		kept, err := shortAsset(owner, c.Kept)
		if err != nil {
			return answer{}, err
		}
		other, err := shortAsset(owner, c.New)
		if err != nil {
			return answer{}, err
		}
		view := mergeView{resource.Of(owner.Slug, resource.Assets, kept), resource.Of(owner.Slug, resource.Assets, other)}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "%s has the device of %s now.\n", view.Kept, view.Merged)
		}}, admin.Identity.MergeAssets(ctx, owner.ID, kept, other)
	})
}

func shortAsset(owner company.Company, ref string) (string, error) {
	id, ok := resource.Short(owner.Slug, resource.Assets, ref)
	if !ok {
		return "", fault.New(fault.NotFound, "company %s has no asset %q", owner.Slug, ref)
	}
	return id, nil
}
