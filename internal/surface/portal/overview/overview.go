// Package overview is the portal's first page: how the fleet is, at a glance.
package overview

import (
	"context"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Assets counts the inventory.
type Assets interface {
	CountAssets(ctx context.Context, f asset.Filter) (int64, error)
}

// Section serves the overview.
type Section struct{ Assets Assets }

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	return []frame.Route{
		{Pattern: "GET /{$}", Serve: s.show},
	}
}

func (s *Section) show(v *frame.Visit) error {
	n, err := s.Assets.CountAssets(v.Context(), asset.Filter{CompanyID: v.Company.ID, Status: asset.Active, Policies: v.Principal.Policies})
	if err != nil {
		return err
	}
	return v.Show("Overview", frame.OverviewPath, overview(v, n))
}
