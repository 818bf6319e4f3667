package database

import (
	"context"
	"math"

	"github.com/musterhq/muster/internal/proposal"
)

var _ proposal.ReviewStore = (*DB)(nil)

// listedColumns are those of a proposal's maker, as people know them.
const listedColumns = `COALESCE(k.name, ''), COALESCE(k.prefix, ''),
	CASE k.created_by WHEN 'operator' THEN '' ELSE COALESCE(k.created_by, '') END, COALESCE(o.client_name, ''), COALESCE(u.name, ''), COALESCE(u.email, '')`

const listedTables = ` FROM proposals v
	LEFT JOIN api_keys k ON v.owner_kind = 'API_KEY' AND k.id = v.owner_id
	LEFT JOIN oauth_connections o ON v.owner_kind = 'CONNECTION' AND o.id = v.owner_id
	LEFT JOIN users u ON u.id = v.owner_user_id`

func (db *DB) scanListed(r row) (l proposal.Listed, err error) {
	m := &l.Maker
	l.Proposal, err = db.scanProposal(wider{r, []any{&m.KeyName, &m.KeyPrefix, &m.KeyMaker, &m.Client, &m.UserName, &m.UserEmail}})
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
	if q.Policies != nil && len(q.Policies) == 0 {
		return nil, nil
	}
	where, args := within(`v.company_id = ?`, []any{q.CompanyID}, q.Policies)
	if q.PolicyID != "" {
		where, args = where+` AND v.policy_id = ?`, append(args, q.PolicyID)
	}
	if q.Waiting {
		where, args = where+` AND v.status = 'PENDING' AND v.expires_at > ?`, append(args, millis(db.now()))
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
	if ids != nil && len(ids) == 0 {
		return 0, nil
	}
	where, args := within(`v.company_id = ? AND v.status = 'PENDING' AND v.expires_at > ?`, []any{companyID, millis(db.now())}, ids)
	return value[int](ctx, db.read(), `SELECT COUNT(*) FROM proposals v WHERE `+where, args...)
}

// within limits a query to some policies, or not.
func within(where string, args []any, ids []string) (string, []any) {
	if ids == nil {
		return where, args
	}
	return where + ` AND v.policy_id IN (` + marks(len(ids)) + `)`, append(args, anys(ids)...)
}
