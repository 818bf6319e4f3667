package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
)

// replacing runs work that may let a managed device leave its asset, under the lock of
// the company: the limit and all destructive commands wait for each other. What work
// refused is returned once its entry in the activity log is kept.
func (db *DB) replacing(ctx context.Context, companyID string, work func(ctx context.Context, t *tx) (refused, err error)) error {
	return db.refusing(ctx, func(ctx context.Context, t *tx) (refused, err error) {
		if err := holdCompany(ctx, t, companyID); err != nil {
			return nil, err
		}
		return work(ctx, t)
	})
}

// letLeave lets the device of an asset that is locked with its company leave it, if it is
// managed: it counts as one that gets a destructive command. by is nil for the operator,
// who is not counted. A refusal by the limit is recorded as one of the action.
func (db *DB) letLeave(ctx context.Context, t *tx, h lockedAsset, by *access.Replacement, action activity.Action) (refused, err error) {
	if by == nil || !h.status.Enrolled() {
		return nil, nil
	}
	if err := by.Refusal(); err != nil {
		return nil, err
	}
	device := command.Command{CompanyID: h.companyID, AssetID: h.id, Epoch: h.epoch, Actor: command.Actor{Kind: access.User, ID: by.UserID}}
	s, _, now, err := db.companyState(ctx, t, device, t.hold())
	if err != nil {
		return nil, err
	}
	if !s.Allows() {
		return s.Refusal(), db.recordLimited(ctx, t, h.companyID, s.Limit, activity.Event{Action: action,
			Target: activity.Target{Kind: activity.Asset, ID: h.id, Name: h.identification}})
	}
	for _, note := range noteUse(device, now) {
		t.do(ctx, note.text, note.args...)
	}
	return nil, nil
}
