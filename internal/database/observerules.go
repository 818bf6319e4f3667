package database

import (
	"context"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
)

// placeOnly reports whether an observation says nothing but where a device is. Places have
// times of their own: such an observation makes no report stale that comes after it.
func placeOnly(o enrollment.Observation) bool {
	return o.Location != nil && !o.Enrolling && o.ReportedAt.IsZero() && o.LostMode == nil && o.PolicyID == "" && o.AppliedPolicy == "" &&
		len(o.StatusReport) == 0 && len(o.Compliance) == 0 && len(o.Specifications) == 0 && o.Apps == nil
}

// mayJoin reports whether a device that is not managed joins. One that a comparison found
// under a name that ended does not while the asset of that name has another device: a merge
// or a new enrollment gave it that, and the platform still lists the one before.
func mayJoin(ctx context.Context, t *tx, o enrollment.Observation, known nameRow) (bool, error) {
	if o.Management != asset.Platform || o.MessageID != "" || known.assetID == "" {
		return true, nil
	}
	other, err := holds(ctx, t, `SELECT id FROM assets WHERE id = ? AND company_id = ? AND device_name <> ?`+enrolledOnly,
		known.assetID, o.CompanyID, o.Device)
	return !other, err
}
