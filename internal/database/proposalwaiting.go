package database

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
)

// usingNow and movingNow count the devices that use the policy of a proposal v, and those
// that are on their way to it.
const (
	usingNow = `(SELECT COALESCE(CAST(SUM(n.count) AS BIGINT), 0) FROM asset_counts n
		WHERE n.company_id = v.company_id AND n.policy_id = v.policy_id)`
	movingNow = `(SELECT COUNT(DISTINCT m.asset_id) ` + openMoves + ` AND m.policy_id = v.next_policy_id)`
)

// mayRise is true if the impact of a PENDING proposal was kept as NORMAL and may be HIGH with
// the devices of now. One that was kept with a device is HIGH already if its changes are:
// only the number of devices can raise it.
const mayRise = `(v.impact <> 'HIGH' AND v.capability <> 'create_policy' AND
	CASE WHEN v.devices = 0 THEN ` + usingNow + ` + ` + movingNow + ` > 0 ELSE ` + usingNow + ` + ` + movingNow + ` >= 50 END)`

// mayAwait is proposal.AwaitsApproval as far as SQL can say it: no proposal that awaits an
// approval fails it, and few others pass it, which awaiting drops.
const mayAwait = `v.status = 'PENDING' AND v.owner_kind IN ('API_KEY', 'CONNECTION')
	AND COALESCE((SELECT n.version = v.base_version AND NOT n.deleted FROM policies n WHERE n.id = v.policy_id), TRUE)
	AND ((SELECT c.apply_approval FROM companies c WHERE c.id = v.company_id) = 'ALL' OR v.impact = 'HIGH' OR v.warnings <> ''
		OR ` + mayRise + `)
	AND (v.approval <> 'APPROVED' OR ` + mayRise + `)`

// waitingPage is how many proposals are read at once.
const waitingPage = 200

// awaiting lists the proposals that a person can approve now, without their documents. Those
// that expire first are first: under one rule these are the oldest. It returns at most limit.
func (db *DB) awaiting(ctx context.Context, c conn, limit int, where string, args ...any) (found []proposal.Listed, err error) {
	until, id := millis(db.now())+1, ""
	for {
		page, err := list(ctx, c, db.scanListed, `SELECT `+lightColumns+`, '{}', `+listedColumns+listedTables+` WHERE `+where+
			` AND `+mayAwait+` AND (v.expires_at, v.id) > (?, ?) ORDER BY v.expires_at, v.id LIMIT ?`,
			append(slices.Clone(args), until, id, waitingPage)...)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if l.AwaitsApproval() {
				found = append(found, l)
			}
			if len(found) == limit {
				return found, nil
			}
		}
		if len(page) < waitingPage {
			return found, nil
		}
		last := page[len(page)-1]
		until, id = millis(last.ExpiresAt), last.ID
	}
}

// approvalsWaiting are the oldest proposals that a person can approve now.
func (db *DB) approvalsWaiting(ctx context.Context, q attention.Query) (items []attention.Item, err error) {
	where, args := within(`v.company_id = ?`, []any{q.CompanyID}, q.Policies)
	all, err := db.awaiting(ctx, db.read(), cmp.Or(q.Most, attention.Limit), where, args...)
	for _, l := range all {
		items = append(items, attention.Item{Kind: attention.Approval, ID: l.ID, Name: l.TargetName, Detail: l.Title, Caller: l.Owner.Name,
			At: l.CreatedAt, Until: l.ExpiresAt, Matter: l.Subject().Matter})
	}
	return items, err
}

// holdOwner lets the proposals of one key or connection that a person must approve be made
// one after the other, so that they can be counted.
func (db *DB) holdOwner(ctx context.Context, t *tx, p proposal.Proposal) error {
	table := map[access.Kind]string{access.APIKey: "api_keys", access.Connection: "oauth_connections"}[p.Owner.Kind]
	if table == "" || !p.NeedsApproval() {
		return nil
	}
	_, err := list(ctx, t, scanValue[string], `SELECT k.id FROM `+table+` k WHERE k.id = ?`+t.hold(), p.Owner.ID)
	return err
}

// MayWait implements proposal.Store.
func (db *DB) MayWait(ctx context.Context, p proposal.Proposal) error {
	return db.mayWait(ctx, db.read(), p, 1)
}

// mayWait refuses a proposal that would wait for a person while too many of its owner do;
// more is how many there would be beside those that are kept.
func (db *DB) mayWait(ctx context.Context, c conn, p proposal.Proposal, more int) error {
	if !p.NeedsApproval() {
		return nil
	}
	kept, err := db.awaiting(ctx, c, proposal.MaxWaiting+1,
		`v.company_id = ? AND v.owner_kind = ? AND v.owner_id = ? AND v.owner_user_id = ?`,
		p.CompanyID, string(p.Owner.Kind), p.Owner.ID, p.Owner.UserID)
	if err != nil {
		return err
	}
	if len(kept)+more > proposal.MaxWaiting {
		return proposal.TooMany(kept[0].ExpiresAt.Sub(db.now()))
	}
	return nil
}

// rise keeps that the impact of a proposal rose, which voids its approval.
func (db *DB) rise(ctx context.Context, t *tx, id string) error {
	p, err := db.lockProposal(ctx, t, id)
	if err != nil || p.Status != proposal.Pending || !p.Rose {
		return err
	}
	return db.raise(ctx, t, p, p.Rule)
}

// raise keeps the impact that a PENDING proposal has now. If it awaits an approval, and did not
// with the impact that was kept and the rule of before, it tells that it waits.
func (db *DB) raise(ctx context.Context, t *tx, p proposal.Proposal, before access.ApprovalRule) error {
	switch {
	case p.Rose && p.Approval.State == proposal.Approved: // voidChange tells it
		t.check(db.voidChange(ctx, t, p, fault.New(fault.Refused, "the impact rose since it was approved")))
	case p.AwaitsApproval() && !proposal.NeedsApproval(before, p.Owner.Kind, keptImpact(p), p.Warnings):
		t.changed(p.CompanyID, "proposal", p.ID)
		t.check(db.tellProposal(ctx, t, p, activity.ProposalMade, activity.OK))
	}
	return keepImpact(ctx, t, p)
}

// keptImpact is the impact of a proposal's row.
func keptImpact(p proposal.Proposal) proposal.Impact {
	if p.Rose {
		return proposal.Normal
	}
	return p.Impact
}

// keepImpact keeps that a proposal was shown with HIGH impact, which does not fall
// again when devices leave the policy.
func keepImpact(ctx context.Context, c conn, p proposal.Proposal) error {
	return c.Exec(ctx, `UPDATE proposals SET impact = ?, devices = ? WHERE id = ? AND status = 'PENDING'`,
		string(p.Impact), p.Devices, p.ID)
}

// tellWaiting tells of each proposal that awaits an approval by the rule of a company, and did
// not by the rule of before.
func (db *DB) tellWaiting(ctx context.Context, t *tx, companyID string, before access.ApprovalRule) {
	all, err := db.awaiting(ctx, t, math.MaxInt, `v.company_id = ?`, companyID)
	t.check(err)
	for _, l := range all {
		t.check(db.raise(ctx, t, l.Proposal, before))
	}
}
