package database

import (
	"context"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/policy"
)

const revisionColumns = `r.policy_id, r.revision, r.version, r.saved_at, r.saved_by_kind, r.saved_by_id,
	r.saved_by_name, r.name, r.origin, r.proposal_id, r.description, r.labels, r.group_name, r.document`

func scanRevision(r row) (v policy.Revision, err error) {
	err = r.Scan(&v.PolicyID, &v.Revision, &v.Version, at(&v.SavedAt), &v.SavedBy.Kind, &v.SavedBy.ID,
		&v.SavedBy.Name, &v.Name, &v.Origin, &v.ProposalID, &v.Description, encoded{&v.Labels}, &v.Group, asText(&v.Document))
	shown := policy.ShownName(v.Name)
	v.Name, v.NameRefused = shown, shown != v.Name
	return v, err
}

// addRevision records the policy as it now is. Every save makes one revision,
// so its number is the one after the last.
func addRevision(ctx context.Context, t *tx, p policy.Policy, r policy.Revision) error {
	t.do(ctx, `INSERT INTO policy_revisions (policy_id, revision, version, saved_at, saved_by_kind,
			saved_by_id, saved_by_name, name, origin, proposal_id, description, labels, group_name, document)
		SELECT CAST(? AS TEXT), COALESCE(MAX(revision), 0) + 1, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT),
			CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
			CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT)
		FROM policy_revisions WHERE policy_id = ?`,
		p.ID, p.Version, millis(r.SavedAt), r.SavedBy.Kind, r.SavedBy.ID, r.SavedBy.Name, p.Name, string(r.Origin),
		r.ProposalID, p.Description, encode(p.Labels), p.Group, string(p.Document), p.ID)
	action := activity.PolicySaved
	if p.Version == 1 {
		action = activity.PolicyCreated
	}
	return t.db.record(ctx, t, p.CompanyID, activity.Event{Action: action, Target: policyTarget(p.ID, p.Name), Reference: r.ProposalID,
		Actor:   authorOf(ctx, r.SavedBy),
		Changes: []activity.Change{{Field: "version", After: strconv.Itoa(p.Version)}, {Field: "origin", After: string(r.Origin)}}})
}

// authorOf is who saved a revision, with what the context knows beside.
func authorOf(ctx context.Context, by policy.Author) access.Actor {
	o := access.OriginOf(ctx).Actor
	if o.ID == by.ID && string(o.Kind) == by.Kind {
		return o
	}
	return access.Actor{Kind: access.Kind(by.Kind), ID: by.ID, Name: by.Name}
}

func policyTarget(id, name string) activity.Target {
	return activity.Target{Kind: activity.Policy, ID: id, Name: name}
}

// Revisions returns a policy's newest revisions, newest first.
func (db *DB) Revisions(ctx context.Context, companyID, policyID string, limit int) ([]policy.Revision, error) {
	if _, err := db.Policy(ctx, companyID, policyID); err != nil {
		return nil, err
	}
	return list(ctx, db.read(), scanRevision, `SELECT `+revisionColumns+` FROM policy_revisions r
		WHERE r.policy_id = ? ORDER BY r.revision DESC LIMIT ?`, policyID, limit)
}

// Revision returns one revision of a policy.
func (db *DB) Revision(ctx context.Context, companyID, policyID string, revision int) (policy.Revision, error) {
	return find(ctx, db.read(), "revision", scanRevision, `SELECT `+revisionColumns+` FROM policy_revisions r
		JOIN policies p ON p.id = r.policy_id
		WHERE r.policy_id = ? AND r.revision = ? AND p.company_id = ?`, policyID, revision, companyID)
}
