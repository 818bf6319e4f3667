package database

import "github.com/musterhq/muster/internal/enrollment"

// placeOnly reports whether an observation says nothing but where a device is. Places have
// times of their own: such an observation makes no report stale that comes after it.
func placeOnly(o enrollment.Observation) bool {
	return o.Location != nil && !o.Enrolling && o.ReportedAt.IsZero() && o.LostMode == nil && o.PolicyID == "" && o.AppliedPolicy == "" &&
		len(o.StatusReport) == 0 && len(o.Compliance) == 0 && len(o.Specifications) == 0 && o.Apps == nil
}
