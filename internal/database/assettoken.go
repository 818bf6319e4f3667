package database

import (
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// CreateAssetToken adds a token for one asset as it is now, and records that.
// Without a policy it is the asset's own. It returns the token as it was kept.
// by is nil for the operator.
func (db *DB) CreateAssetToken(ctx context.Context, k agentdevice.Token, by *access.Replacement) (agentdevice.Token, error) {
	made := k
	err := db.replacing(ctx, k.CompanyID, func(ctx context.Context, t *tx) (refused, err error) {
		made = k
		h, err := hold(ctx, t, k.AssetID)
		switch {
		case err != nil:
			return nil, err
		case h.companyID != k.CompanyID:
			return nil, fault.New(fault.NotFound, "no such asset")
		case h.status.Enrolled() && h.management != string(asset.Agent):
			return nil, fault.New(fault.Unsupported, "the platform manages this device: an agent cannot enroll as its asset; end its "+
				"management first, or merge the two assets afterwards")
		}
		if made.Epoch = h.epoch; made.PolicyID == "" {
			made.PolicyID = h.policyID
		}
		named, err := holds(ctx, t, `SELECT name FROM policies WHERE id = ? AND company_id = ? AND type = 'AGENT' AND NOT deleted`,
			made.PolicyID, k.CompanyID)
		if err == nil && !named {
			err = fault.New(fault.Refused, "the asset has no AGENT policy: name the one with which it is to enroll")
		}
		if err != nil {
			return nil, err
		}
		if refused, err := db.letLeave(ctx, t, h, by, activity.ProvisioningIssued); refused != nil || err != nil {
			return refused, err
		}
		if err := insertToken(ctx, t, made); err != nil {
			return nil, err
		}
		return nil, db.record(ctx, t, k.CompanyID, activity.Event{Action: activity.ProvisioningIssued,
			Target:  activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification},
			Changes: activity.Differences(activity.Change{Field: "policyId", After: made.PolicyID})})
	})
	return made, err
}

func insertToken(ctx context.Context, t *tx, k agentdevice.Token) error {
	return t.Exec(ctx, `INSERT INTO agent_tokens (hash, company_id, policy_id, asset_id, epoch, expires_at, device_id, spent_at, code_id)
		VALUES (?, ?, ?, ?, ?, ?, '', 0, ?)`, hex.EncodeToString(k.Hash[:]), k.CompanyID, k.PolicyID, k.AssetID, k.Epoch,
		millis(k.ExpiresAt), k.Code)
}

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
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: activity.AssetEnded, // before the asset has no policy
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification},
		Changes: activity.Differences(activity.Change{Field: "reason", After: reason},
			activity.Change{Field: "device", Before: h.device})})
}
