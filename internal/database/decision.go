package database

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/signature"
)

// What a person decides, whatever it is about, is locked, verified and kept here. The
// rows of what is decided on are in proposaldecision.go, authorizationdecision.go and
// loosening.go.

// matter is what a person decides about, locked.
type matter struct {
	approval.Subject
	closed error // why there is nothing to decide; nil: there is
	// keep saves an accepted decision and carries it out; refuse records one that does not count.
	keep   func(ctx context.Context, t *tx, d decided) error
	refuse func(ctx context.Context, t *tx, d signature.Decision) error
}

// decided is a decision that was accepted.
type decided struct {
	signature.Head
	by        access.Approver
	passkeyID string
	signedID  string
	at        time.Time
}

// Decide implements approval.Store.
func (db *DB) Decide(ctx context.Context, d approval.Decision) error {
	return db.refusing(ctx, func(ctx context.Context, t *tx) (refused, err error) { return db.decide(ctx, t, d) })
}

func (db *DB) decide(ctx context.Context, t *tx, d approval.Decision) (refused, err error) {
	m, err := db.matter(ctx, t, d)
	if err != nil {
		return nil, err
	}
	s, err := db.standing(ctx, t, m.Subject, d.Signed, d.UserID, d.PasskeyID)
	if err != nil {
		return nil, err
	}
	if refused = m.closed; refused == nil {
		signed, head, wrong := d.Verifier.Accept(s)
		if wrong == nil {
			id, err := db.keepSigned(ctx, t, d.CompanyID, d.ID, signed)
			if err != nil {
				return nil, err
			}
			return nil, m.keep(ctx, t, decided{head, s.Approver, d.PasskeyID, id, instant(millis(s.Now))})
		}
		refused = wrong
	}
	if fault.CodeOf(refused) == fault.Internal {
		return nil, refused
	}
	head, _ := d.Signed.Head() // of what cannot be read: an approval
	return refused, m.refuse(ctx, t, head.Decision)
}

// which is the action of a decision.
func which(d signature.Decision, approved, declined activity.Action) activity.Action {
	if d == signature.Decline {
		return declined
	}
	return approved
}

// matter locks what is decided on.
func (db *DB) matter(ctx context.Context, t *tx, d approval.Decision) (matter, error) {
	switch d.Kind {
	case approval.ChangeKind:
		return db.changeMatter(ctx, t, d)
	case approval.CallKind:
		return db.callMatter(ctx, t, d)
	case approval.LooseningKind:
		return db.looseningMatter(ctx, t, d.CompanyID, d.ID)
	}
	return matter{}, fmt.Errorf("database: a %q is not decided on", d.Kind)
}

// standing reads what a decision depends on. Who holds the company holds all of it.
func (db *DB) standing(ctx context.Context, t conn, of approval.Subject, signed signature.Signed,
	userID, passkeyID string) (approval.Standing, error) {
	s := approval.Standing{Subject: of, Signed: signed, Now: db.now()}
	c, err := findCompany(ctx, t, `c.id = ?`, of.CompanyID)
	if err != nil {
		return s, err
	}
	s.Controls = c.Settings.Controls
	by, key, err := approver(ctx, t, of.CompanyID, userID, passkeyID)
	if err == nil {
		s.Credential, s.Approver = key.Credential, by
	}
	return s, unlessGone(err) // what is missing gives no standing
}

// whyVoid says why a decision that was kept does not count now by a judgment of its standing, or can have none; nil: it counts.
// It fails with signature.ErrUnknownKey if another replica may have the key that tells, so that the decision is not void.
func (db *DB) whyVoid(ctx context.Context, t conn, of approval.Subject, signedID string,
	judge func(approval.Standing) error) (why, err error) {
	file, err := find(ctx, t, "signed decision", scanValue[string],
		`SELECT s.signed FROM signed_documents s WHERE s.id = ? AND s.company_id = ? AND s.subject = ?`, signedID, of.CompanyID, of.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	signed, wrong := signature.ParseExport([]byte(file))
	if wrong != nil {
		return wrong, nil
	}
	head, wrong := signed.Head()
	if wrong != nil {
		return wrong, nil
	}
	s, err := db.standing(ctx, t, of, signed, head.Approver.ID, hex.EncodeToString(signed.CredentialID))
	if err != nil {
		return nil, err
	}
	if why = judge(s); !errors.Is(why, signature.ErrUnknownKey) {
		return why, nil
	}
	lost, err := holds(ctx, t, `SELECT k.id FROM service_keys k WHERE k.lost_at >= (SELECT s.at FROM signed_documents s
		WHERE s.id = ? AND s.company_id = ?) LIMIT 1`, signedID, of.CompanyID)
	if err == nil && !lost {
		return nil, why
	}
	return why, err
}

// orUnverified has a decision that another replica can verify shown as void: as one that waits.
func orUnverified(why, err error) (error, error) {
	if errors.Is(err, signature.ErrUnknownKey) {
		return err, nil
	}
	return why, err
}

// voidDecisions takes back what persons of a company approved, or asked for, who may not any
// more, in the transaction that takes their right: it does not count again if they may again.
func (db *DB) voidDecisions(ctx context.Context, t *tx, companyID string) {
	db.voidChanges(ctx, t, companyID)
	db.voidCalls(ctx, t, companyID)
	// Also what waits for persons who may not change the company's controls any more.
	db.cancelLoosenings(ctx, t, `l.company_id = ? AND NOT `+mayLoosen, companyID, int64(account.ManageCompany))
}

// followApproval takes back what a company's stricter rules do not allow any more. Where no
// approval is asked for any more, a proposal lives as long as any other; where one is asked for
// that was not before, it tells which proposals wait.
func (db *DB) followApproval(ctx context.Context, t *tx, before, after company.Company) {
	was, is := before.Settings.Controls, after.Settings.Controls
	if was.ApplyApproval != is.ApplyApproval && is.ApplyApproval == access.ApproveNone {
		t.do(ctx, `UPDATE proposals SET expires_at = created_at + ? WHERE company_id = ? AND status = 'PENDING'
			AND owner_kind IN ('API_KEY', 'CONNECTION') AND expires_at > created_at + ?`,
			proposal.Lifetime.Milliseconds(), after.ID, proposal.Lifetime.Milliseconds())
		t.changed(after.ID, "proposal", "")
	}
	if was.ApplyApproval != is.ApplyApproval && is.ApplyApproval.On() { // before voidDecisions, which tells what it takes back
		db.tellWaiting(ctx, t, after.ID, was.ApplyApproval)
	}
	if is.ApproverAge > was.ApproverAge || is.SecondPerson && !was.SecondPerson {
		db.voidDecisions(ctx, t, after.ID)
	}
}

// keepSigned keeps a document that a person signed, and returns its id.
func (db *DB) keepSigned(ctx context.Context, t *tx, companyID, subject string, s signature.Signed) (id string, err error) {
	file, err := s.Export()
	if err != nil {
		return "", err
	}
	id = resource.NewID()
	err = t.Exec(ctx, `INSERT INTO signed_documents (id, company_id, subject, signed, at) VALUES (?, ?, ?, ?, ?)`,
		id, companyID, subject, string(file), millis(db.now()))
	return id, err
}

// SignedDocument returns the last document that a person signed about a subject, such
// as a proposal; fault.NotFound if there is none.
func (db *DB) SignedDocument(ctx context.Context, companyID, subject string) (signature.Signed, error) {
	file, err := find(ctx, db.read(), "signed decision", scanValue[string], `SELECT s.signed FROM signed_documents s
		WHERE s.company_id = ? AND s.subject = ? ORDER BY s.at DESC, s.id DESC LIMIT 1`, companyID, subject)
	if err != nil {
		return signature.Signed{}, err
	}
	return signature.ParseExport([]byte(file))
}
