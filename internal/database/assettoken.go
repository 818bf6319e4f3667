package database

import (
	"cmp"
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// CreateAssetToken stores a token with which a device enrolls as an asset, in the asset's present
// enrollment, and records that. The device that the asset has now then leaves it, which counts toward
// the limit of destructive commands. Without a policy, the token has the asset's own. Tokens that were made for the
// asset before, and that no device has spent, are void: a new one takes an earlier one back.
// CreateAssetToken returns the token as it was stored. by is the person; nil: the operator.
func (db *DB) CreateAssetToken(ctx context.Context, token agentdevice.Token, by *access.Replacement) (agentdevice.Token, error) {
	var stored agentdevice.Token
	err := db.replacing(ctx, token.CompanyID, func(ctx context.Context, t *tx) (refused, err error) {
		stored = token
		h, err := hold(ctx, t, token.AssetID)
		switch {
		case err != nil:
			return nil, err
		case h.companyID != token.CompanyID:
			return nil, fault.New(fault.NotFound, "no such asset")
		case h.status.Enrolled() && h.management != string(asset.Agent):
			return nil, fault.New(fault.Unsupported, "the platform manages this device: an agent cannot enroll as its asset; end its "+
				"management first, or merge the two assets afterwards")
		}
		stored.Epoch, stored.PolicyID = h.epoch, cmp.Or(token.PolicyID, h.policyID)
		if !t.holds(ctx, `SELECT name FROM policies WHERE id = ? AND company_id = ? AND type = 'AGENT' AND NOT deleted`,
			stored.PolicyID, token.CompanyID) {
			return nil, fault.New(fault.Refused, "the asset has no AGENT policy: name the one with which it is to enroll")
		}
		if refused, err := db.letLeave(ctx, t, h, by, activity.ProvisioningIssued); refused != nil || err != nil {
			return refused, err
		}
		// What a confirmed request has bound is not such a token.
		t.do(ctx, `DELETE FROM agent_tokens WHERE asset_id = ? AND asset_id <> '' AND company_id = ? AND device_id = '' AND NOT `+requested,
			h.id, h.companyID, millis(db.now()))
		t.check(insertToken(ctx, t, stored))
		return nil, h.record(ctx, t, activity.ProvisioningIssued,
			activity.Differences(activity.Change{Field: "policyId", After: stored.PolicyID})...)
	})
	return stored, err
}

func insertToken(ctx context.Context, t *tx, k agentdevice.Token) error {
	return t.Exec(ctx, `INSERT INTO agent_tokens (hash, company_id, policy_id, asset_id, epoch, expires_at, device_id, spent_at, code_id)
		VALUES (?, ?, ?, ?, ?, ?, '', 0, ?)`, hex.EncodeToString(k.Hash[:]), k.CompanyID, k.PolicyID, k.AssetID, k.Epoch,
		millis(k.ExpiresAt), k.Code)
}

// record records what happened to the asset.
func (h lockedAsset) record(ctx context.Context, t *tx, action activity.Action, changes ...activity.Change) error {
	return t.db.record(ctx, t, h.companyID, activity.Event{Action: action, Changes: changes,
		Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification}})
}

// recordEnrolled records that an asset has a new enrollment. It is another action if
// another device takes the place of an enrolled one.
func (h lockedAsset) recordEnrolled(ctx context.Context, t *tx, before lockedAsset, by joinedBy) error {
	action := activity.AssetEnrolled
	if before.status.Enrolled() && before.device != h.device {
		action = activity.AssetTakenOver
	}
	return h.record(ctx, t, action, activity.Differences(
		activity.Change{Field: "recognizedBy", After: string(by)},
		activity.Change{Field: "device", Before: before.device, After: h.device},
		activity.Change{Field: "management", Before: before.management, After: h.management},
		activity.Change{Field: "policyId", Before: before.policyID, After: h.policyID})...)
}

// recordEnded records the end of an asset's management, before the asset loses its policy: the event
// that it sends names the policy.
func (h lockedAsset) recordEnded(ctx context.Context, t *tx, reason string) error {
	return h.record(ctx, t, activity.AssetEnded, activity.Differences(activity.Change{Field: "reason", After: reason},
		activity.Change{Field: "device", Before: h.device})...)
}
