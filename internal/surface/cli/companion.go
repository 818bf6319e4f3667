package cli

import (
	"context"
	"fmt"
	"io"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// AssetCompanion makes a token with which the companion app on one device
// enrolls (docs/agent-protocol.md "Companions").
type AssetCompanion struct {
	OfCompany
	Asset string `arg:"" help:"The asset's id or path name."`
}

type companionView struct {
	AssetID   string              `json:"assetId"`
	Token     string              `json:"token"`
	ExpiresAt operation.Timestamp `json:"expiresAt"`
}

// Run makes the token. It is shown here once.
func (c *AssetCompanion) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		id, err := shortAsset(owner, c.Asset)
		if err != nil {
			return answer{}, err
		}
		a, err := admin.Assets.Asset(ctx, owner.ID, id)
		if err != nil {
			return answer{}, err
		}
		if !a.Status.Enrolled() || a.Device == nil || a.Device.Management != asset.Platform {
			return answer{}, fault.New(fault.Refused, "asset %s is not a device that the platform manages: only those have companions", a.PathName())
		}
		text, expires, err := agentdevice.Companions{Store: admin.Companions, Now: env.Now}.Issue(ctx, owner.ID, a.ID, a.Device.Epoch)
		view := companionView{AssetID: a.PathName(), Token: text, ExpiresAt: operation.Timestamp{Time: expires}}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "Token for the companion app of %s, valid once and until %s; it is not shown again:\n\n%s\n", a.PathName(), day(expires), text)
		}}, err
	})
}
