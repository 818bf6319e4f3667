package database

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
)

// placeOnly reports whether an observation says nothing but where a device is. Places have
// times of their own: such an observation makes no report stale that comes after it, and no report makes it stale.
func placeOnly(o enrollment.Observation) bool {
	return o.Location != nil && !o.Enrolling && o.ReportedAt.IsZero() && o.LostMode == nil && o.PolicyID == "" && o.AppliedPolicy == "" &&
		len(o.StatusReport) == 0 && len(o.Compliance) == 0 && len(o.Specifications) == 0 && o.Apps == nil
}

// believed is the last time, in milliseconds, that counts as known when a device speaks at a
// time, which may be by a clock other than ours. A later one was noted while our clock was ahead: it makes nothing stale.
func believed(t *tx, at int64) int64 {
	return max(latest(t.db.now()), at+access.ClockStep.Milliseconds())
}

// disbelieve forgets when the device was heard of, if that is after latest.
func (h *lockedAsset) disbelieve(latest int64) {
	for _, at := range []*int64{&h.synced, &h.seen} {
		if *at > latest {
			*at = 0
		}
	}
}

// outdatedLostMode reports whether an observation contradicts what is known of lost mode, and is older: the device carried out
// a command since, or was read at the platform, which has a report from before the device's user ended lost mode.
func (h *lockedAsset) outdatedLostMode(ctx context.Context, t *tx, o enrollment.Observation) bool {
	return o.LostMode != nil && *o.LostMode != h.lostMode &&
		(o.MessageID == "" && !o.ReportedAt.IsZero() && millis(o.ReportedAt) < h.synced || h.switched(ctx, t, o.ObservedAt, o.ObservedAt))
}

// mayJoin reports whether a device that is not managed joins its company, which is locked.
// The platform's does not if the company has given its enterprise up since. One that a
// comparison found under a name that ended does not while the asset of that name has another
// device: a merge or a new enrollment gave it that, and the platform still lists the one
// before. It does not either for an hour after a command ended that very enrollment: the
// platform may list it until it has noted that.
func mayJoin(ctx context.Context, t *tx, o enrollment.Observation, known nameRow) bool {
	if o.Management != asset.Platform {
		return true
	}
	if ofFormerEnterprise(ctx, t, o) {
		return false
	}
	return o.MessageID != "" || known.assetID == "" || !t.holds(ctx,
		`SELECT id FROM assets WHERE id = ? AND company_id = ? AND device_name <> ?`+enrolledOnly, known.assetID, o.CompanyID, o.Device) &&
		!t.holds(ctx, `SELECT c.id FROM assets a JOIN commands c ON c.asset_id = a.id AND c.epoch = a.epoch WHERE a.id = ? AND a.company_id = ?
			AND a.enrolled_at >= ? AND c.type IN `+endings+` AND c.state = 'SUCCESS' AND c.feedback_at > ? LIMIT 1`,
			known.assetID, o.CompanyID, millis(o.EnrolledAt), millis(o.ObservedAt.Add(-time.Hour)))
}

// ofFormerEnterprise reports whether a device of the platform is of an enterprise that the
// company has given up.
func ofFormerEnterprise(ctx context.Context, t *tx, o enrollment.Observation) bool {
	enterprise, _, _ := strings.Cut(o.Device, "/devices/")
	return t.holds(ctx, `SELECT d.enterprise FROM disconnections d JOIN companies c ON c.id = d.company_id
		WHERE d.company_id = ? AND d.enterprise = ? AND d.ended_at > 0 AND c.enterprise <> d.enterprise`, o.CompanyID, enterprise)
}
