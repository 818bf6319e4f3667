package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

// A name is looked for, and given, under the lock of its company; a version under that of
// its policy. For the order of locks, see the package comment.

// ClaimProposal implements proposal.Store.
func (db *DB) ClaimProposal(ctx context.Context, c proposal.Claim) (proposal.Claimed, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (proposal.Claimed, error) { return db.claimProposal(ctx, t, c) })
}

func (db *DB) claimProposal(ctx context.Context, t *tx, c proposal.Claim) (proposal.Claimed, error) {
	now, err := db.applying(ctx, t, c)
	if err != nil {
		return "", err
	}
	p := now.Proposal
	switch verdict := now.Decide(); verdict {
	case proposal.Begun:
	case proposal.NotConfirmed:
		return verdict, keepImpact(ctx, t, p)
	default:
		return verdict, nil
	}
	// One that is under way and whose lease has run out is looked after first.
	if changing(ctx, t, p.Next.PolicyID) || !db.takePolicyLease(ctx, t, p.Next.PolicyID, c.Holder, c.For) {
		return proposal.Busy, nil
	}
	t.changed(p.CompanyID, "proposal", p.ID)
	err = t.Exec(ctx, `UPDATE proposals SET status = 'EXECUTING', holder = ?, apply_ref = ?, look_at = ?, impact = ?, devices = ?
		WHERE id = ?`, c.Holder, c.Ref, millis(db.now().Add(c.For)), string(p.Impact), p.Devices, c.ID)
	return proposal.Begun, err
}

// applying reads what the decision about a claim depends on, and holds it: whatever
// was read before, its policy's devices and version count as they are now.
func (db *DB) applying(ctx context.Context, t *tx, c proposal.Claim) (proposal.Situation, error) {
	now := proposal.Situation{Confirmed: c.Confirmed}
	holdCompanyOf(ctx, t, "proposals", c.ID)
	var err error
	if now.Proposal, err = db.lockProposal(ctx, t, c.ID); err != nil || now.Status != proposal.Pending {
		return now, err
	}
	current, err := lockPolicy(ctx, t, now.CompanyID, now.PolicyID)
	t.check(err)
	now.Proposal, err = nowAt(ctx, t, now.Proposal, current)
	t.check(err)
	now.PolicyGone, now.PolicyVersion = current.Deleted, current.Version
	switch now.Decide() {
	case proposal.Begun, proposal.NotConfirmed:
		stands, err := db.approvalStands(ctx, t, now.Proposal, c)
		t.check(err)
		now.Unapproved = !stands
	default: // whatever else it is decides already
	}
	if now.Decide() == proposal.Begun {
		free, err := newNameFree(ctx, t, now.Proposal)
		now.NameTaken = !free
		return now, err
	}
	return now, nil
}

// nowAt is a proposal with the devices of now. The policy is locked: a move to it by a key
// or connection is recorded, and counts, or it will meet what the caller decides.
func nowAt(ctx context.Context, t *tx, p proposal.Proposal, of policy.Policy) (_ proposal.Proposal, err error) {
	if p.Moving = 0; p.Rule.On() {
		p.Moving, err = movesTo(ctx, t, p.Next.PolicyID)
	}
	kept := keptImpact(p)
	p = p.At(of.DeviceCount)
	p.Rose = p.Impact != kept
	return p, err
}

// TakeOverProposal implements proposal.ReconcilerStore.
func (db *DB) TakeOverProposal(ctx context.Context, id, holder string, ttl time.Duration) (p proposal.Proposal, taken bool, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		taken = false
		p, err = db.lockProposal(ctx, t, id)
		t.check(err)
		due := valueIn[bool](ctx, t, `SELECT look_at > 0 AND look_at <= ? FROM proposals WHERE id = ?`, millis(db.now()), id)
		if !due || !db.takePolicyLease(ctx, t, p.Next.PolicyID, holder, ttl) {
			return nil
		}
		taken = true
		return t.Exec(ctx, `UPDATE proposals SET holder = ?, look_at = ? WHERE id = ?`, holder, millis(db.now().Add(ttl)), id)
	})
	return p, taken, err
}

// FinishProposal implements proposal.Store.
func (db *DB) FinishProposal(ctx context.Context, e proposal.Ending) (after proposal.Proposal, held bool, err error) {
	err = db.write(ctx, func(ctx context.Context, t *tx) error {
		after, held, err = db.finishProposal(ctx, t, e)
		return err
	})
	return after, held, err
}

func (db *DB) finishProposal(ctx context.Context, t *tx, e proposal.Ending) (proposal.Proposal, bool, error) {
	holdCompanyOf(ctx, t, "proposals", e.ID)
	p, err := db.lockProposal(ctx, t, e.ID)
	t.check(err)
	if !valueIn[bool](ctx, t, `SELECT holder = ? AND look_at > 0 FROM proposals WHERE id = ?`, e.Holder, e.ID) {
		return p, false, nil
	}
	if e.Save {
		p.Version, err = db.saveNext(ctx, t, p, &e)
		t.check(err)
	}
	if e.Doubted {
		t.check(forgetPush(ctx, t, p.Next.PolicyID))
	}
	settled := p.Status == proposal.Executing
	if settled {
		p.Status, p.Failure, p.Outcome = e.Status, e.Failure, e.Outcome
	}
	if e.Looked {
		p.Looks++
	}
	lookAt := int64(0)
	if e.LookIn > 0 {
		lookAt = millis(db.now().Add(e.LookIn))
	}
	t.do(ctx, `UPDATE proposals SET status = ?, failure = ?, outcome = ?, version = ?, looks = ?, look_at = ?, holder = ''
		WHERE id = ?`, string(p.Status), string(p.Failure), p.Outcome, p.Version, p.Looks, lookAt, e.ID)
	if outcome := settling(p.Status); settled && outcome != "" {
		t.check(db.recordProposal(ctx, t, p, activity.ProposalApplied, outcome))
	}
	t.changed(p.CompanyID, "proposal", p.ID)
	t.changed(p.CompanyID, "policy", p.Next.PolicyID)
	return p, true, t.Exec(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, policy.LeaseKey(p.Next.PolicyID), e.Holder)
}

// settling is how the record describes a proposal that is no longer being applied; empty: it is.
func settling(s proposal.Status) activity.Outcome {
	return map[proposal.Status]activity.Outcome{proposal.Succeeded: activity.OK, proposal.Failed: activity.Failed,
		proposal.Unconfirmed: activity.Unconfirmed}[s]
}

// saveNext saves the reviewed policy as the next version, and returns it. When
// the policy was saved otherwise, or its name given away, since the outcome
// became doubtful, it saves nothing, and the platform's copy is doubted.
func (db *DB) saveNext(ctx context.Context, t *tx, p proposal.Proposal, e *proposal.Ending) (int, error) {
	free, err := newNameFree(ctx, t, p)
	t.check(err)
	now := instant(millis(db.now()))
	r := policy.Revision{SavedAt: now, SavedBy: policy.AuthorOf(p.Owner), Origin: p.Capability.Origin(), ProposalID: p.ID}
	var saved policy.Policy
	if p.Creates() && free {
		saved, err = createCopy(ctx, t, p, r)
	} else if !p.Creates() {
		saved, err = saveChange(ctx, t, p, r, free)
	}
	if err != nil || saved.Version == 0 {
		e.Doubted, e.Held, e.Status = e.Doubted || !p.Creates(), false, proposal.Unconfirmed
		return 0, err
	}
	if !e.Held {
		return saved.Version, nil
	}
	// The platform's copy is certain only if no one else could send in between.
	if !t.holds(ctx, `SELECT name FROM leases WHERE name = ? AND holder = ? AND expires_at > ?`,
		policy.LeaseKey(p.Next.PolicyID), e.Holder, millis(now)) {
		e.Doubted = true
		return saved.Version, nil
	}
	return saved.Version, setPushed(ctx, t, p.Next.PolicyID, saved.Version, e.VendorVersion, now)
}

// createCopy makes the new policy of a copy.
func createCopy(ctx context.Context, t *tx, p proposal.Proposal, r policy.Revision) (policy.Policy, error) {
	source, err := findPolicy(ctx, t, p.CompanyID, p.PolicyID)
	t.check(err)
	made := policy.Policy{ID: p.Next.PolicyID, CompanyID: p.CompanyID, Name: p.Next.Name, Type: source.Type, VROnly: source.VROnly,
		Version: 1, Document: p.Next.Document, CreatedAt: r.SavedAt, UpdatedAt: r.SavedAt}
	return made, createPolicy(ctx, t, made, r)
}

// saveChange saves a policy's next version: its description, labels and group
// stay. It saves nothing if the policy is not at the version that was reviewed.
func saveChange(ctx context.Context, t *tx, p proposal.Proposal, r policy.Revision, nameFree bool) (policy.Policy, error) {
	next, err := lockPolicy(ctx, t, p.CompanyID, p.Next.PolicyID)
	if err != nil || next.Deleted || next.Version != p.BaseVersion || !nameFree {
		return policy.Policy{}, err
	}
	was := next.Name
	next.Name, next.Document = p.Next.Name, p.Next.Document
	return writePolicy(ctx, t, next, was, p.BaseVersion, r)
}

func (db *DB) lockProposal(ctx context.Context, t *tx, id string) (proposal.Proposal, error) {
	return db.findProposal(ctx, t, `v.id = ?`+t.lock(), id)
}

// lockPolicy returns a policy that no one else changes until the transaction
// ends.
func lockPolicy(ctx context.Context, t *tx, companyID, id string) (policy.Policy, error) {
	t.holds(ctx, `SELECT id FROM policies WHERE id = ? AND company_id = ?`+t.lock(), id, companyID)
	return findPolicy(ctx, t, companyID, id)
}

// newNameFree reports whether a proposal's new name, if it has one, is free.
// The company is locked.
func newNameFree(ctx context.Context, t *tx, p proposal.Proposal) (bool, error) {
	if !p.Renames {
		return true, nil
	}
	err := nameFree(ctx, t, p.CompanyID, p.Next.Name, p.Next.PolicyID)
	if fault.CodeOf(err) == fault.Refused {
		return false, nil
	}
	return err == nil, err
}

// changing reports whether a proposal about the policy is being applied.
func changing(ctx context.Context, t *tx, policyID string) bool {
	return t.holds(ctx, `SELECT id FROM proposals WHERE next_policy_id = ? AND status = 'EXECUTING' LIMIT 1`, policyID)
}

// takePolicyLease gives the policy's lease to the holder unless another has it.
func (db *DB) takePolicyLease(ctx context.Context, t *tx, policyID, holder string, ttl time.Duration) bool {
	now := db.now()
	return t.count(ctx, engine.TakeLease, policy.LeaseKey(policyID), holder, millis(now.Add(ttl)), millis(now)) == 1
}
