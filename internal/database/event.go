package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

const eventColumns = `id, company_id, area, type, at, asset_id, policy_id, proposal_id, command, status, request_id, owner`

// tell writes an event with the change that c is making, after what it is about was locked.
// An event of an asset gets the policy that the asset has now, unless it says one.
func (db *DB) tell(ctx context.Context, c conn, e event.Event) error {
	if t, ok := c.(*tx); ok {
		t.wroteEvent = true
	}
	p := db.telling(ctx, e)
	return c.Exec(ctx, p.text, p.args...)
}

// telling is tell as a part of a chain.
func (db *DB) telling(ctx context.Context, e event.Event) part {
	if e.RequestID == "" {
		e.RequestID = access.OriginOf(ctx).RequestID
	}
	policy, args := `CAST(? AS TEXT)`, []any{e.PolicyID}
	if e.PolicyID == "" && e.AssetID != "" {
		policy, args = `COALESCE((SELECT a.policy_id FROM assets a WHERE a.id = ? AND a.company_id = ?), '')`, []any{e.AssetID, e.CompanyID}
	}
	args = append([]any{resource.NewIDAt(db.now()), e.CompanyID, e.Type.Area(), string(e.Type), millis(db.now()), e.AssetID}, args...)
	number := db.engine.Dialect().Events()
	return part{`INSERT INTO events (` + number.Column + eventColumns + `) SELECT ` + number.Draw +
		`CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
		CAST(? AS BIGINT), CAST(? AS TEXT), ` + policy +
		`, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT) ` + fromFirst,
		append(args, e.ProposalID, e.Command, e.Status, e.RequestID, e.Owner)}
}

// silentAsset is an asset that became INACTIVE, and its policy.
type silentAsset struct{ id, policyID string }

// tellSilent tells that devices of a company became INACTIVE, in few statements.
func (db *DB) tellSilent(ctx context.Context, t *tx, companyID string, assets []silentAsset) {
	const some = 500 // rows of a statement
	t.wroteEvent = t.wroteEvent || len(assets) > 0
	number := db.engine.Dialect().Events()
	for chunk := range slices.Chunk(assets, some) {
		rows, args := "", make([]any, 0, 5*len(chunk))
		for _, a := range chunk {
			rows += `, (` + number.Draw + `?, ?, 'device', 'device.silent', ?, ?, ?, '', '', '', '', '')`
			args = append(args, resource.NewIDAt(db.now()), companyID, millis(db.now()), a.id, a.policyID)
		}
		t.do(ctx, `INSERT INTO events (`+number.Column+eventColumns+`) VALUES `+rows[2:], args...)
	}
}

// commandEventType is the event of a command's new state, if callers are told of it.
func commandEventType(s command.State) (event.Type, bool) {
	of, ok := map[command.State]event.Type{command.Succeeded: event.CommandSucceeded, command.Failed: event.CommandFailed,
		command.Unconfirmed: event.CommandUnconfirmed}[s]
	return of, ok
}

// tellCommand is the part of a chain that writes the event of a command's transition; the first
// part moves the command.
func (db *DB) tellCommand(id string, to command.State) part {
	of, _ := commandEventType(to)
	number := db.engine.Dialect().Events()
	return part{`INSERT INTO events (` + number.Column + eventColumns + `) SELECT ` + number.Draw +
		`CAST(? AS TEXT), m.company_id, 'command', CAST(? AS TEXT), CAST(? AS BIGINT),
		m.asset_id, a.policy_id, '', m.type, CAST(? AS TEXT), m.request_id, '' FROM commands m JOIN assets a ON a.id = m.asset_id WHERE m.id = ?` + ifFirst,
		[]any{resource.NewIDAt(db.now()), string(of), millis(db.now()), to.Status(), id}}
}

// activityEvent are the events of what the activity log records; those of commands are told by
// their transitions, and those of proposals by tellProposal.
func (db *DB) activityEvent(companyID string, e activity.Event) (event.Event, bool) {
	types := map[activity.Action]event.Type{
		activity.AssetEnrolled: event.DeviceEnrolled, activity.AssetTakenOver: event.DeviceEnrolled,
		activity.AssetMerged: event.DeviceEnrolled,
		activity.AssetEnded:  event.DeviceUnenrolled,
		activity.PolicySaved: event.PolicyChanged, activity.CompanyStopped: event.AutomationStopped,
		activity.CompanyResumed: event.AutomationResumed,
		activity.LooseningAsked: event.ControlLoosening, activity.KeyCreated: event.KeyCreated, activity.KeyRevoked: event.KeyRevoked,
	}
	logged := event.Event{CompanyID: companyID, Type: types[e.Action]}
	switch e.Target.Kind {
	case activity.Asset:
		logged.AssetID = e.Target.ID
	case activity.Policy:
		logged.PolicyID = e.Target.ID
	default: // no event names it
	}
	return logged, logged.Type != "" && (e.Outcome == "" || e.Outcome == activity.OK)
}

// tellProposal tells what became of a proposal, if callers are told of it.
func (db *DB) tellProposal(ctx context.Context, t *tx, p proposal.Proposal, action activity.Action, outcome activity.Outcome) error {
	ended := event.Event{CompanyID: p.CompanyID, PolicyID: p.PolicyID, ProposalID: p.ID,
		Owner: event.OwnerOf(p.Owner.Kind, p.Owner.ID, p.Owner.UserID)}
	switch {
	case action == activity.ProposalMade && p.NeedsApproval(), action == activity.ApprovalVoid && p.AwaitsApproval(): // it waits again
		ended.Type = event.ProposalWaiting
	case action == activity.ProposalApproved && outcome == activity.OK:
		ended.Type = event.ProposalApproved
	case action == activity.ProposalDeclined && outcome == activity.OK:
		ended.Type = event.ProposalDeclined
	case action == activity.ProposalApplied && outcome == activity.OK:
		ended.Type = event.ProposalApplied
	case action == activity.ProposalApplied && outcome == activity.Unconfirmed:
		ended.Type, ended.Status = event.ProposalEnded, string(proposal.Unconfirmed)
	case action == activity.ProposalApplied && outcome == activity.Failed:
		ended.Type, ended.Status = event.ProposalEnded, string(proposal.Failed)
		failed := ended
		failed.Type, failed.Status = event.PolicyFailed, ""
		t.check(db.tell(ctx, t, failed))
	default:
		return nil
	}
	return db.tell(ctx, t, ended)
}
