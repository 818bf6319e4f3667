package database

import (
	"context"

	"github.com/musterhq/muster/internal/activity"
)

// recordEnrolled records that a new enrollment of an asset has begun. That
// another device than the one before is the asset from now on is an action of
// its own.
func (h lockedAsset) recordEnrolled(ctx context.Context, t *tx, before lockedAsset, by joinedBy) error {
	action := activity.AssetEnrolled
	if before.status.Enrolled() && before.device != h.device {
		action = activity.AssetTakenOver
	}
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: action,
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification},
		Changes: activity.Differences(
			activity.Change{Field: "recognizedBy", After: string(by)},
			activity.Change{Field: "device", Before: before.device, After: h.device},
			activity.Change{Field: "management", Before: before.management, After: h.management},
			activity.Change{Field: "policyId", Before: before.policyID, After: h.policyID})})
}

// recordEnded records the end of an asset's management.
func (h lockedAsset) recordEnded(ctx context.Context, t *tx, reason string) error {
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: activity.AssetEnded,
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification},
		Changes: activity.Differences(activity.Change{Field: "reason", After: reason},
			activity.Change{Field: "device", Before: h.device})})
}
