package database

import (
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// DecideProposal implements proposal.Store.
func (db *DB) DecideProposal(ctx context.Context, d proposal.Decision) (proposal.Proposal, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (proposal.Proposal, error) { return db.decideProposal(ctx, t, d) })
}

func (db *DB) decideProposal(ctx context.Context, t *tx, d proposal.Decision) (proposal.Proposal, error) {
	p, err := db.lockProposal(ctx, t, d.ID)
	if err != nil || p.CompanyID != d.CompanyID {
		_, err = found(p, err, "proposal")
		return p, err
	}
	current, err := lockPolicy(ctx, t, p.CompanyID, p.PolicyID)
	if err != nil {
		return p, err
	}
	if p, err = nowAt(ctx, t, p, current); err != nil {
		return p, err
	}
	switch {
	case p.Status != proposal.Pending:
		return p, fault.New(fault.NotPending, "the proposal is %s: there is nothing to decide any more", p.Status)
	case p.Approval.State != "":
		return p, fault.New(fault.NotPending, "%s has decided already", p.Approval.By)
	case current.Deleted || current.Version != p.BaseVersion:
		return p, fault.New(fault.Refused, "the policy was changed or deleted since: this can never be applied")
	case !p.NeedsApproval():
		return p, fault.New(fault.Refused, "the company asks for no approval of this change any more")
	}
	s, err := db.standing(ctx, t, p, d.Signed, d.UserID, d.PasskeyID, t.lock())
	if err != nil {
		return p, err
	}
	if err := d.Check(s, d.Want); err != nil {
		return p, err
	}
	if d.Want == signature.Approve && p.NeedsConfirmation() && !d.Confirmed {
		return p, fault.New(fault.ConfirmationRequired, "type the policy's name to approve this")
	}
	head, err := d.Signed.Head()
	if err != nil {
		return p, err
	}
	p.Approval = proposal.Approval{State: proposal.Approved, By: head.Approver.Name, At: instant(millis(db.now()))}
	return p, db.saveDecision(ctx, t, &p, d)
}

// saveDecision keeps a decision with its signature.
func (db *DB) saveDecision(ctx context.Context, t *tx, p *proposal.Proposal, d proposal.Decision) error {
	action := activity.ProposalApproved
	if d.Want == signature.Decline {
		action = activity.ProposalDeclined
		p.Approval.State, p.Status, p.Failure, p.Outcome = proposal.Declined, proposal.Failed, fault.Refused, proposal.DeclinedBy(p.Approval.By)
	}
	id, err := db.keepSigned(ctx, t, p.CompanyID, p.ID, d.Signed)
	if err != nil {
		return err
	}
	if err := t.exec(ctx, `UPDATE proposals SET status = ?, failure = ?, outcome = ?, impact = ?, devices = ?, approval = ?, approved_by = ?, approved_at = ?, signed_id = ?
		WHERE id = ?`, string(p.Status), string(p.Failure), p.Outcome, string(p.Impact), p.Devices, string(p.Approval.State), p.Approval.By,
		millis(p.Approval.At), id, p.ID); err != nil {
		return err
	}
	t.changed(p.CompanyID, "proposal", p.ID)
	return db.recordProposal(ctx, t, *p, action, activity.OK)
}

// approvalStands reports whether a proposal that is locked with its policy may be
// applied as far as approvals go. An approval of something else, or by a person who
// may not approve any more, is void.
func (db *DB) approvalStands(ctx context.Context, t *tx, p proposal.Proposal, c proposal.Claim) (bool, error) {
	if !p.NeedsApproval() {
		return true, nil
	}
	if p.Approval.State == proposal.Approved {
		why, err := db.whyVoid(ctx, t, p, c, t.lock())
		if err != nil || why == nil {
			return err == nil, err
		}
		if err := t.exec(ctx, `UPDATE proposals SET approval = '', approved_by = '', approved_at = 0, signed_id = '' WHERE id = ?`, p.ID); err != nil {
			return false, err
		}
		p.Outcome = why.Error()
		if err := db.recordProposal(ctx, t, p, activity.ApprovalVoid, activity.Refused); err != nil {
			return false, err
		}
	}
	return false, raise(ctx, t, p)
}

// whyVoid says why the approval of a proposal does not count; nil: it does.
func (db *DB) whyVoid(ctx context.Context, t conn, p proposal.Proposal, c proposal.Claim, lock string) (why, err error) {
	signed, err := signedAs(ctx, t, `s.company_id = ? AND s.id = (SELECT signed_id FROM proposals WHERE id = ?)`, p.CompanyID, p.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	head, wrong := signed.Head()
	if wrong != nil {
		return wrong, nil
	}
	s, err := db.standing(ctx, t, p, signed, head.Approver.ID, hex.EncodeToString(signed.CredentialID), lock)
	if err != nil {
		return nil, err
	}
	return c.Check(s, signature.Approve), nil
}

// PeekApproval implements proposal.Store.
func (db *DB) PeekApproval(ctx context.Context, p proposal.Proposal, c proposal.Claim) (why, err error) {
	return db.whyVoid(ctx, db.read(), p, c, "")
}

// standing reads what a decision about a proposal depends on. With a lock it holds the
// person; the proposal is locked then.
func (db *DB) standing(ctx context.Context, t conn, p proposal.Proposal, signed signature.Signed, userID, passkeyID, lock string) (proposal.Standing, error) {
	s := proposal.Standing{Signed: signed, Now: db.now()}
	l, err := one(ctx, t, db.scanListed, `SELECT `+proposalColumns+`, `+listedColumns+listedTables+` WHERE v.id = ?`, p.ID)
	if err != nil {
		return s, err
	}
	s.Listed = proposal.Listed{Proposal: p, Maker: l.Maker}
	c, err := findCompany(ctx, t, `c.id = ?`, p.CompanyID)
	if err != nil {
		return s, err
	}
	s.Controls = c.Settings.Controls
	by, key, err := approver(ctx, t, p.CompanyID, userID, passkeyID, lock)
	if err == nil {
		s.Credential, s.Approver = key.Credential, by
	}
	if fault.CodeOf(err) == fault.NotFound { // what is missing gives no standing
		err = nil
	}
	return s, err
}

// Decider returns a user as one who may decide, with all of their passkeys.
func (db *DB) Decider(ctx context.Context, companyID, userID string) (access.Approver, error) {
	u, err := findRated(ctx, db.read(), companyID, userID, "")
	if err != nil {
		return access.Approver{}, err
	}
	keys, err := db.Passkeys(ctx, userID)
	return u.approver(keys...), err
}

// keepSigned keeps a document that a person signed, and returns its id.
func (db *DB) keepSigned(ctx context.Context, t *tx, companyID, subject string, s signature.Signed) (id string, err error) {
	file, err := s.Export()
	if err != nil {
		return "", err
	}
	id = resource.NewID()
	err = t.exec(ctx, `INSERT INTO signed_documents (id, company_id, subject, signed, at) VALUES (?, ?, ?, ?, ?)`,
		id, companyID, subject, string(file), millis(db.now()))
	return id, err
}

// SignedDocument returns the last document that a person signed about a subject, such
// as a proposal; fault.NotFound if there is none.
func (db *DB) SignedDocument(ctx context.Context, companyID, subject string) (signature.Signed, error) {
	return signedAs(ctx, db.read(), `s.company_id = ? AND s.subject = ?`, companyID, subject)
}

func signedAs(ctx context.Context, c conn, where string, args ...any) (signature.Signed, error) {
	file, err := find(ctx, c, "signed decision", scanValue[string],
		`SELECT s.signed FROM signed_documents s WHERE `+where+` ORDER BY s.at DESC, s.id DESC LIMIT 1`, args...)
	if err != nil {
		return signature.Signed{}, err
	}
	return signature.ParseExport([]byte(file))
}
