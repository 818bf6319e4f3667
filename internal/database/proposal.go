package database

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

//nolint:gochecknoglobals // texts that are never written to
var (
	proposalColumns = lightColumns + `, v.next_document`
	ownerEnds       = callerEnds(`v.owner_kind`, `v.owner_id`, `v.owner_user_id`)
	// appliable is the condition that the maker of a proposal v can still apply it. Both parameters are the present.
	appliable = `v.status = 'PENDING' AND v.expires_at > ? AND ` + ownerEnds + ` NOT BETWEEN 1 AND ?`
	// currentlyAppliable is appliable, of a policy that was not saved or deleted since.
	currentlyAppliable = appliable + ` AND COALESCE((SELECT n.version = v.base_version AND NOT n.deleted FROM policies n WHERE n.id = v.policy_id), FALSE)`
)

// lightColumns are all but the document, which may be large.
//
//nolint:gochecknoglobals // a text that is never written to
var lightColumns = `v.id, v.company_id, (SELECT slug FROM companies WHERE id = v.company_id), v.capability, v.status,
	v.impact, v.title, v.summary, v.policy_id, v.target_name, v.base_version, v.next_policy_id, v.next_name, v.next_name_key,
	v.owner_kind, v.owner_id, v.owner_user_id, v.owner_name, v.created_at, v.expires_at, v.propose_ref, v.apply_ref, v.looks,
	v.version, v.failure, v.outcome, v.request, v.fields, v.devices, v.reason, v.ticket,
	v.warnings, v.approval, v.approved_by, v.approved_at, v.decline_reason, v.signed_id,
	COALESCE((SELECT n.version <> v.base_version OR n.deleted FROM policies n WHERE n.id = v.policy_id), FALSE),
	(SELECT apply_approval FROM companies WHERE id = v.company_id), ` + ownerEnds + `,
	` + usingNow + `, CASE WHEN v.status = 'PENDING' THEN ` + movingNow + ` ELSE 0 END`

// openMoves are the open commands, as m, that move a managed device to a policy which it does
// not count as using.
const openMoves = `FROM commands m JOIN assets d ON d.id = m.asset_id AND d.epoch = m.epoch AND d.policy_id <> m.policy_id
	WHERE m.state IN ('PREPARED', 'SENT', 'UNCONFIRMED') AND m.type = 'CHANGE_POLICY'` + enrolledOnly

// scanProposal reads a row. A PENDING proposal reads as EXPIRED once its time
// is over by the database's clock, or its maker can never call again; until
// then its impact and summary are those of the devices that use the policy now.
func (db *DB) scanProposal(r row) (p proposal.Proposal, err error) {
	var devices, present, moving int
	var key string
	var ends time.Time // of the maker; zero: never
	o := &p.Owner
	if err := r.Scan(&p.ID, &p.CompanyID, &p.CompanySlug, &p.Capability, &p.Status,
		&p.Impact, (*shownName)(&p.Title), &p.Form, &p.PolicyID, (*shownName)(&p.TargetName), &p.BaseVersion,
		&p.Next.PolicyID, &p.Next.Name, &key,
		&o.Kind, &o.ID, &o.UserID, &o.Name, at(&p.CreatedAt), at(&p.ExpiresAt), &p.ProposeRef, &p.ApplyRef, &p.Looks,
		&p.Version, &p.Failure, &p.Outcome, encoded{&p.Request}, encoded{&p.Fields}, &devices, &p.Note.Reason, &p.Note.Ticket,
		encoded{&p.Warnings}, &p.Approval.State, &p.Approval.By, at(&p.Approval.At), &p.Approval.Reason, &p.SignedID, &p.Outdated, &p.Rule,
		at(&ends), &present, &moving, asText(&p.Next.Document)); err != nil {
		return p, err
	}
	p.Renames = key != ""
	now := db.now()
	switch {
	case p.Status != proposal.Pending:
	case !now.Before(p.ExpiresAt):
		p.Status = proposal.Expired
	case !ends.IsZero() && !now.Before(ends):
		p.Status, p.Outcome = proposal.Expired, approval.NoCaller
	default:
		devices = present
		if p.Rule.On() {
			p.Moving = moving
		}
	}
	kept := p.Impact
	p = p.At(devices)
	p.Rose = p.Impact != kept
	return p, nil
}

// MovesTo implements proposal.Store.
func (db *DB) MovesTo(ctx context.Context, policyID string) (int, error) {
	return movesTo(ctx, db.read(), policyID)
}

func movesTo(ctx context.Context, c conn, policyID string) (int, error) {
	return value[int](ctx, c, `SELECT COUNT(DISTINCT m.asset_id) `+openMoves+` AND m.policy_id = ?`, policyID)
}

// Propose implements proposal.Store.
func (db *DB) Propose(ctx context.Context, p proposal.Proposal, lifetime time.Duration) (proposal.Proposal, error) {
	p.CreatedAt = instant(millis(db.now()))
	p.ExpiresAt = p.CreatedAt.Add(lifetime)
	key := ""
	if p.Renames {
		key = policy.NameKey(p.Next.Name)
	}
	made := false
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(db.holdOwner(ctx, t, p))
		n, err := t.ExecCount(ctx, `INSERT INTO proposals (id, company_id, capability, status, impact, title, summary, policy_id,
				target_name, base_version, next_policy_id, next_name, next_name_key, owner_kind, owner_id, owner_user_id,
				owner_name, created_at, expires_at, propose_ref, request, fields, next_document, devices, reason, ticket, warnings)
			VALUES (`+marks(27)+`) ON CONFLICT (company_id, propose_ref) WHERE propose_ref <> '' DO NOTHING`,
			p.ID, p.CompanyID, string(p.Capability), string(p.Status), string(p.Impact), p.Title, p.Form, p.PolicyID,
			p.TargetName, p.BaseVersion, p.Next.PolicyID, p.Next.Name, key, string(p.Owner.Kind), p.Owner.ID, p.Owner.UserID,
			p.Owner.Name, millis(p.CreatedAt), millis(p.ExpiresAt), p.ProposeRef, encode(p.Request), encode(p.Fields),
			string(p.Next.Document), p.Devices, p.Note.Reason, p.Note.Ticket, encodeSome(p.Warnings))
		if made = n == 1; err != nil || !made {
			return err
		}
		t.check(db.mayWait(ctx, t, p, 0))
		t.changed(p.CompanyID, "proposal", p.ID)
		return db.recordProposal(ctx, t, p, activity.ProposalMade, activity.OK)
	})
	if err == nil && !made {
		return db.ProposalByRef(ctx, p.CompanyID, p.ProposeRef)
	}
	return p, err
}

// Proposal returns a proposal of the company, and keeps that its impact rose. It returns the proposal also if that cannot be
// written, as while the disk is full: the next read tries again, and what decides computes the impact itself.
func (db *DB) Proposal(ctx context.Context, companyID, id string) (proposal.Proposal, error) {
	p, err := db.findProposal(ctx, db.read(), `v.company_id = ? AND v.id = ?`, companyID, id)
	if err != nil || p.Status != proposal.Pending || !p.Rose {
		return p, err
	}
	if p.Approval.State == proposal.Approved {
		p.Approval = proposal.Approval{}
	}
	err = db.write(ctx, func(ctx context.Context, t *tx) error { return db.rise(ctx, t, id) })
	if err == nil || errors.Is(err, access.ErrMoved) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return p, err
	}
	db.logger.WarnContext(ctx, "cannot keep that the impact of a proposal rose", "proposal", id, "error", err)
	return p, nil
}

// PeekProposal returns a proposal of the company and changes nothing.
func (db *DB) PeekProposal(ctx context.Context, companyID, id string) (proposal.Proposal, error) {
	return db.findProposal(ctx, db.read(), `v.company_id = ? AND v.id = ?`, companyID, id)
}

// ProposalByRef returns the proposal that a call with the reference made, or
// applied.
func (db *DB) ProposalByRef(ctx context.Context, companyID, ref string) (proposal.Proposal, error) {
	if ref == "" {
		return proposal.Proposal{}, fault.New(fault.NotFound, "no such proposal")
	}
	p, err := db.findProposal(ctx, db.read(), `v.company_id = ? AND v.propose_ref = ? AND v.propose_ref <> ''`, companyID, ref)
	if fault.CodeOf(err) == fault.NotFound {
		return db.findProposal(ctx, db.read(), `v.company_id = ? AND v.apply_ref = ? AND v.apply_ref <> ''`, companyID, ref)
	}
	return p, err
}

func (db *DB) findProposal(ctx context.Context, c conn, where string, args ...any) (proposal.Proposal, error) {
	return find(ctx, c, "proposal", db.scanProposal, `SELECT `+proposalColumns+` FROM proposals v WHERE `+where, args...)
}

// FailProposal implements proposal.Store.
func (db *DB) FailProposal(ctx context.Context, id string, code fault.Code, outcome string) (failed bool, err error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (bool, error) {
		if t.count(ctx, `UPDATE proposals SET status = 'FAILED', failure = ?, outcome = ?
			WHERE id = ? AND status = 'PENDING' AND expires_at > ?`, string(code), outcome, id, millis(db.now())) == 0 {
			return false, nil
		}
		p, err := db.findProposal(ctx, t, `v.id = ?`, id)
		t.check(err)
		t.changed(p.CompanyID, "proposal", id)
		return true, db.recordProposal(ctx, t, p, activity.ProposalApplied, activity.Failed)
	})
}

// recordProposal records what became of a proposal.
func (db *DB) recordProposal(ctx context.Context, t *tx, p proposal.Proposal, action activity.Action, outcome activity.Outcome) error {
	e := activity.Event{Action: action, Outcome: outcome, Reference: p.ID, Target: policyTarget(p.PolicyID, p.TargetName),
		Actor: access.OriginOf(ctx).Actor, Note: access.OriginOf(ctx).Note}
	if e.Note == (access.Note{}) {
		e.Note = p.Note
	}
	if e.Actor == (access.Actor{}) {
		e.Actor = p.Owner
	}
	for _, f := range p.Fields {
		e.Changes = append(e.Changes, activity.Change{Field: f.Label, Before: f.PreviousValue, After: f.Value})
	}
	if p.Outcome != "" {
		e.Changes = append(e.Changes, activity.Change{Field: "outcome", After: p.Outcome})
	}
	t.check(db.record(ctx, t, p.CompanyID, e))
	return db.tellProposal(ctx, t, p, action, outcome)
}

// Unconfirmed implements proposal.ReconcilerStore.
func (db *DB) Unconfirmed(ctx context.Context, limit int) ([]proposal.Proposal, error) {
	return list(ctx, db.read(), db.scanProposal, `SELECT `+proposalColumns+` FROM proposals v
		WHERE v.look_at > 0 AND v.look_at <= ? ORDER BY v.look_at, v.id LIMIT ?`, millis(db.now()), limit)
}

// EndProposalLeases lets the lease of every policy be taken over at once. Only a service
// that is alone with its database may do so, and only before it serves: the
// process that held a lease is gone.
func (db *DB) EndProposalLeases(ctx context.Context) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.do(ctx, `DELETE FROM leases WHERE name LIKE ?`, policy.LeaseKey("%"))
		return t.Exec(ctx, `UPDATE proposals SET look_at = 1 WHERE look_at > 0 AND status = 'EXECUTING'`)
	})
}

var _ proposal.ReviewStore = (*DB)(nil)

// listedColumns are those of a proposal's maker, as people know them.
const listedColumns = `COALESCE(k.name, ''), COALESCE(k.prefix, ''),
	CASE k.created_by WHEN 'operator' THEN '' ELSE COALESCE(k.created_by, '') END, COALESCE(o.client_name, ''), COALESCE(u.name, ''),
		COALESCE(u.email, ''),
	COALESCE((SELECT ` + sinceColumn +
	` FROM users u WHERE u.id = CASE v.owner_kind WHEN 'API_KEY' THEN k.created_by ELSE v.owner_user_id END), 0)`

const listedTables = ` FROM proposals v
	LEFT JOIN api_keys k ON v.owner_kind = 'API_KEY' AND k.id = v.owner_id
	LEFT JOIN oauth_connections o ON v.owner_kind = 'CONNECTION' AND o.id = v.owner_id
	LEFT JOIN users u ON u.id = v.owner_user_id`

func (db *DB) scanListed(r row) (l proposal.Listed, err error) {
	m := &l.Maker
	l.Proposal, err = db.scanProposal(wider{r, []any{&m.KeyName, &m.KeyPrefix, &m.KeyMaker, &m.Client, &m.UserName,
		&m.UserEmail, at(&m.Since)}})
	m.Kind, m.ID = l.Owner.Kind, l.Owner.ID
	return l, err
}

// wider is a row whose last columns go elsewhere.
type wider struct {
	row
	last []any
}

func (w wider) Scan(fields ...any) error { return w.row.Scan(append(fields, w.last...)...) }

// ListedProposal implements proposal.ReviewStore.
func (db *DB) ListedProposal(ctx context.Context, companyID, id string) (proposal.Listed, error) {
	return find(ctx, db.read(), "proposal", db.scanListed, `SELECT `+proposalColumns+`, `+listedColumns+listedTables+
		` WHERE v.company_id = ? AND v.id = ?`, companyID, id)
}

// CompanyProposals implements proposal.ReviewStore.
func (db *DB) CompanyProposals(ctx context.Context, q proposal.Query) ([]proposal.Listed, error) {
	where, args := within(`v.company_id = ?`, []any{q.CompanyID}, q.Policies)
	if q.PolicyID != "" {
		where, args = where+` AND v.policy_id = ?`, append(args, q.PolicyID)
	}
	if q.Waiting {
		where, args = where+` AND `+currentlyAppliable, append(args, millis(db.now()), millis(db.now()))
	}
	before := int64(math.MaxInt64)
	if !q.Before.CreatedAt.IsZero() {
		before = millis(q.Before.CreatedAt)
	}
	return list(ctx, db.read(), db.scanListed, `SELECT `+lightColumns+`, '{}', `+listedColumns+listedTables+` WHERE `+where+
		` AND (v.created_at, v.id) < (?, ?) ORDER BY v.created_at DESC, v.id DESC LIMIT ?`,
		append(args, before, q.Before.ID, q.Limit)...)
}

// WaitingProposals counts proposals that can still be applied; ids nil: of all policies, else of these.
func (db *DB) WaitingProposals(ctx context.Context, companyID string, ids []string) (int, error) {
	where, args := within(`v.company_id = ? AND `+currentlyAppliable, []any{companyID, millis(db.now()), millis(db.now())}, ids)
	return value[int](ctx, db.read(), `SELECT COUNT(*) FROM proposals v WHERE `+where, args...)
}

// within limits a query to some policies, or not; see ofPolicies.
func within(where string, args []any, ids []string) (string, []any) {
	only, policies := ofPolicies(`v.policy_id`, ids)
	return where + only, append(args, policies...)
}
