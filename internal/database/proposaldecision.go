package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
)

// changeMatter returns the matter of a decision about a proposal. It locks the company, the proposal and its policy until
// the transaction ends. An approval that does not count any more is removed first. A proposal of another company is
// fault.NotFound.
func (db *DB) changeMatter(ctx context.Context, t *tx, d approval.Decision) (m matter, err error) {
	t.check(holdCompany(ctx, t, d.CompanyID))
	p, err := db.lockProposal(ctx, t, d.ID)
	if err == nil && p.CompanyID != d.CompanyID {
		err = fault.New(fault.NotFound, "no such proposal")
	}
	if err != nil {
		return m, err
	}
	current, err := lockPolicy(ctx, t, p.CompanyID, p.PolicyID)
	t.check(err)
	p, err = nowAt(ctx, t, p, current)
	t.check(err)
	if p.Status == proposal.Pending && p.Approval.State == proposal.Approved {
		why, err := db.whyNoApproval(ctx, t, p, d.Verifier.Stands)
		t.check(err)
		if why != nil {
			t.check(db.voidChange(ctx, t, p, why))
			p.Approval = proposal.Approval{}
		}
	}
	switch {
	case p.Status != proposal.Pending:
		m.closed = fault.New(fault.NotPending, "the proposal has ended, or is being applied: there is nothing to decide any more")
	case p.Approval.State != "":
		m.closed = fault.New(fault.NotPending, "%s has decided already", p.Approval.By)
	case current.Deleted || current.Version != p.BaseVersion:
		m.closed = fault.New(fault.Refused, "the policy was changed or deleted since: this can never be applied")
	case !p.NeedsApproval():
		m.closed = fault.New(fault.Refused, "the company asks for no approval of this change any more")
	}
	m.Subject, err = db.changeSubject(ctx, t, p)
	t.check(err)
	m.keep = func(ctx context.Context, t *tx, d decided) error { return db.saveDecision(ctx, t, p, d) }
	m.refuse = func(ctx context.Context, t *tx, d signature.Decision) error {
		return db.recordProposal(ctx, t, p, which(d, activity.ProposalApproved, activity.ProposalDeclined), activity.Refused)
	}
	return m, nil
}

// changeSubject returns what a person decides about: the proposal p, with its maker as the database has it now.
func (db *DB) changeSubject(ctx context.Context, t conn, p proposal.Proposal) (approval.Subject, error) {
	l, err := one(ctx, t, db.scanListed, `SELECT `+proposalColumns+`, `+listedColumns+listedTables+` WHERE v.id = ?`, p.ID)
	return proposal.Listed{Proposal: p, Maker: l.Maker}.Subject(), err
}

// saveDecision saves and records the approval or the refusal of a proposal. A proposal that was declined has failed.
func (db *DB) saveDecision(ctx context.Context, t *tx, p proposal.Proposal, d decided) error {
	p.Approval = proposal.Approval{State: proposal.Approved, By: d.Approver.Name, At: d.at}
	if d.Decision == signature.Decline {
		p.Approval.State, p.Approval.Reason = proposal.Declined, d.Reason
		p.Status, p.Failure, p.Outcome = proposal.Failed, fault.Refused, proposal.DeclinedBy(p.Approval.By, d.Reason)
	}
	t.do(ctx,
		`UPDATE proposals SET status = ?, failure = ?, outcome = ?, impact = ?, devices = ?, approval = ?, approved_by = ?, approved_at = ?,
		decline_reason = ?, signed_id = ? WHERE id = ?`, string(p.Status), string(p.Failure), p.Outcome, string(p.Impact), p.Devices,
		string(p.Approval.State),
		p.Approval.By, millis(p.Approval.At), p.Approval.Reason, d.signedID, p.ID)
	t.changed(p.CompanyID, "proposal", p.ID)
	return db.recordProposal(ctx, t, p, which(d.Decision, activity.ProposalApproved, activity.ProposalDeclined), activity.OK)
}

// approvalStands reports whether p, which is locked with its policy, needs no approval or has one that counts. An approval
// counts only if the claim c applies exactly what p proposes. One that does not count is removed. If there is none, the
// impact that p has now is kept, and people are told that p waits.
func (db *DB) approvalStands(ctx context.Context, t *tx, p proposal.Proposal, c proposal.Claim) (bool, error) {
	if !p.NeedsApproval() {
		return true, nil
	}
	if p.Approval.State == proposal.Approved {
		why, err := db.whyNoApproval(ctx, t, p, c.Verifier.Stands)
		if why == nil && (c.Next.PolicyID != p.Next.PolicyID || c.Next.Name != p.Next.Name ||
			!slices.Equal(c.Next.Document, p.Next.Document)) {
			why = fault.New(fault.Refused, "the proposal was altered while it was applied")
		}
		if err != nil || why == nil {
			return err == nil, err
		}
		t.check(db.voidChange(ctx, t, p, why))
		return false, keepImpact(ctx, t, p)
	}
	return false, db.raise(ctx, t, p, p.Rule)
}

// voidChange removes the approval of a proposal, and records why. The proposal waits for an approval again, so people get
// mail about it again.
func (db *DB) voidChange(ctx context.Context, t *tx, p proposal.Proposal, why error) error {
	t.do(ctx, `UPDATE proposals SET approval = '', approved_by = '', approved_at = 0, signed_id = '' WHERE id = ?`,
		p.ID)
	t.check(mailAgain(ctx, t, p.CompanyID, p.ID))
	t.changed(p.CompanyID, "proposal", p.ID)
	p.Outcome, p.Approval = fault.From(why).Detail, proposal.Approval{}
	return db.recordProposal(ctx, t, p, activity.ApprovalVoid, activity.Refused)
}

// voidChanges removes the approvals of a company's proposals by persons who may not give them any more. See voidDecisions.
func (db *DB) voidChanges(ctx context.Context, t *tx, companyID string) {
	for _, p := range listed(ctx, t, db.scanProposal, `SELECT `+proposalColumns+` FROM proposals v
		WHERE v.company_id = ? AND v.approval = 'APPROVED' AND `+appliable+` ORDER BY v.id`,
		companyID, millis(db.now()), millis(db.now())) {
		why, err := db.whyNoApproval(ctx, t, p, approval.Standing.Entitled)
		t.check(err)
		if why != nil {
			t.check(db.voidChange(ctx, t, p, why))
		}
	}
}

// whyNoApproval returns why the approval that p has does not count, as judge says; nil: it counts.
func (db *DB) whyNoApproval(ctx context.Context, t conn, p proposal.Proposal, judge func(approval.Standing) error) (why, err error) {
	of, err := db.changeSubject(ctx, t, p)
	if err != nil {
		return nil, err
	}
	return db.whyVoid(ctx, t, of, p.SignedID, judge)
}

// PeekApproval implements proposal.Store.
func (db *DB) PeekApproval(ctx context.Context, p proposal.Proposal, v approval.Verifier) (why, err error) {
	return orUnverified(db.whyNoApproval(ctx, db.read(), p, v.Stands))
}
