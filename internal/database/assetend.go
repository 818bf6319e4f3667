package database

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// ending is how a device's management ended.
type ending struct {
	how    string // for the activity log
	erased bool   // a command erased the device
	// unknown: the platform can no longer reach the device. The results of its commands stay unknown.
	unknown bool
}

// end ends a device's management: the asset is DELETED and has no policy, its open commands are final, and
// a device with its name is not taken for it any more (bury).
func (h lockedAsset) end(ctx context.Context, t *tx, at time.Time, e ending) error {
	open := lockOpen(ctx, t, h.id)
	cause := h.caused(ctx, open, e)
	if h.lostMode { // told here, before the event of the end, which save would follow
		h.lostMode = false
		t.check(h.tellLost(cause, t))
		h.wasLost = false
	}
	t.check(h.recordEnded(cause, t, e.how))
	for _, c := range open { // before the save: the events name the asset's policy
		h.settle(ctx, t, c, e, at)
	}
	counts := counts{}
	h.count(counts, -1)
	name := h.device
	h.status, h.policyID, h.device = asset.Deleted, "", ""
	h.count(counts, 1)
	t.check(h.save(ctx, t))
	t.check(bury(ctx, t, h.companyID, name, h.id, at))
	h.hintCompanions(ctx, t)
	t.check(forgetApps(ctx, t, h.id))
	t.do(ctx, `DELETE FROM installed_apps WHERE asset_id = ?`, h.id)
	counts.save(ctx, t)
	return nil
}

// show changes an asset as its command c did, which succeeded, in the transaction that saves this. The device's next
// report confirms it.
func show(ctx context.Context, t *tx, c command.Command) error {
	// Events and entries name the request that sent the command.
	ctx = access.WithActor(ctx, access.OriginOf(ctx).Actor, c.RequestID)
	h, err := hold(ctx, t, c.AssetID)
	if err != nil || h.epoch != c.Epoch || h.status == asset.Deleted {
		return err
	}
	switch c.Type {
	case command.StartLostMode, command.StopLostMode:
		if h.overtaken(ctx, t, c) {
			return nil
		}
		h.lostMode = c.Type == command.StartLostMode
		return h.save(ctx, t)
	case command.WipeCompanyData, command.RelinquishOwnership:
		at := c.FeedbackAt
		if at.IsZero() {
			at = t.db.now()
		}
		wiped := c.Type == command.WipeCompanyData
		how := "released by its command"
		if wiped {
			how = "erased by its command"
		}
		return h.end(ctx, t, at, ending{how: how, erased: wiped})
	default:
		return nil
	}
}

// overtaken reports whether the device made its last report after it carried out c, or carried out a later command about
// lost mode: reports and the results of commands may arrive in any order. At one time, the command that was sent later counts.
func (h lockedAsset) overtaken(ctx context.Context, t *tx, c command.Command) bool {
	if !c.FeedbackAt.IsZero() && h.synced > millis(c.FeedbackAt) {
		return true
	}
	return h.switched(ctx, t, cmp.Or(c.FeedbackAt, c.CreatedAt), c.CreatedAt)
}

// switched reports whether the device carried out a command about lost mode after a time or, at that time, one that was created
// after another.
func (h lockedAsset) switched(ctx context.Context, t *tx, since, created time.Time) bool {
	return t.holds(ctx, `SELECT id FROM commands WHERE company_id = ? AND asset_id = ? AND epoch = ? AND state = 'SUCCESS'
		AND type IN ('START_LOST_MODE', 'STOP_LOST_MODE')
		AND (CASE WHEN feedback_at > 0 THEN feedback_at ELSE created_at END, created_at) > (?, ?) LIMIT 1`,
		h.companyID, h.id, h.epoch, millis(since), millis(created))
}

// caused returns a context with the request that sent the command which ended the management, if there is one.
func (h lockedAsset) caused(ctx context.Context, open []command.Command, e ending) context.Context {
	for _, c := range open {
		if state, _ := c.Type.EndOfManagement(asset.Management(h.management), e.erased); state == command.Succeeded && !e.unknown {
			return access.WithActor(ctx, access.OriginOf(ctx).Actor, c.RequestID)
		}
	}
	return ctx
}

// settle makes an open command final, as Type.EndOfManagement says, or UNCONFIRMED if no device will report its outcome.
func (h lockedAsset) settle(ctx context.Context, t *tx, c command.Command, e ending, at time.Time) {
	step := command.Transition{From: []command.State{c.State}, To: command.Unconfirmed,
		Outcome: "the company was disconnected from the platform; it is not known whether the device carried it out"}
	switch {
	case e.unknown && c.State == command.Unconfirmed:
		return
	case !e.unknown:
		step.To, step.Outcome = c.Type.EndOfManagement(asset.Management(h.management), e.erased)
	}
	if step.To == command.Succeeded {
		step.Feedback = at
	}
	_, err := t.db.advanceWithin(ctx, t, c.ID, step)
	t.check(err)
}

// enrolledAgain is the outcome of open commands to an earlier enrollment.
const enrolledAgain = "the device was enrolled again before it confirmed the command"

// failBeforeEnrollment makes an asset's open commands final as a new enrollment begins. The outcome of an agent's
// wipe says that nothing was erased.
func failBeforeEnrollment(ctx context.Context, t *tx, h lockedAsset) {
	wipeOutcome := enrolledAgain
	if h.management == string(asset.Agent) {
		wipeOutcome = command.ReleasedWithoutErasing
	}
	failed := listed(ctx, t, into(commandFields), `UPDATE commands SET state = 'ERROR',
			outcome = CASE WHEN type = 'WIPE_COMPANY_DATA' THEN CAST(? AS TEXT) ELSE CAST(? AS TEXT) END
		WHERE `+isOpen+` AND asset_id = ? RETURNING `+commandColumns, wipeOutcome, enrolledAgain, h.id)
	t.wroteEvent = t.wroteEvent || len(failed) > 0
	for _, c := range failed {
		t.check(t.db.recordStep(ctx, t, c))
		insert := t.db.tellCommand(c.ID, command.Failed)
		t.do(ctx, insert.text, insert.args...)
	}
}

// MarkDeleted ends a device's management because the platform no longer has the device. It does nothing
// if the asset was enrolled again since epoch, or is not enrolled.
func (db *DB) MarkDeleted(ctx context.Context, assetID string, epoch int, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		h, err := hold(ctx, t, assetID)
		if err != nil || h.epoch != epoch || !h.status.Enrolled() {
			return err
		}
		t.changed(h.companyID, "asset", assetID)
		return h.end(ctx, t, at, ending{how: "the channel no longer has the device"})
	})
}
