package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/approval/attention"
)

// News implements attention.MailStore. The database counts: of each type a few rows are
// read, however many events there are. An example gets the name that its device or policy
// has now, if the reader may see its policy of now, too.
func (db *DB) News(ctx context.Context, q attention.NewsQuery) ([]attention.News, error) {
	if len(q.Types) == 0 || q.Upto <= q.After {
		return nil, nil
	}
	sees, args := sight(q.See)
	args = append(append([]any{q.CompanyID, q.After, q.Upto, millis(q.Since)}, anys(q.Types)...), append(args, attention.Examples)...)
	type found struct {
		attention.Example
		count         int64
		policy, named string // of the device now; of the policy
	}
	rows, err := list(ctx, db.read(), func(r row) (f found, err error) {
		err = r.Scan(&f.Type, &f.count, at(&f.At), &f.AssetID, &f.PolicyID, &f.ProposalID, &f.Command, &f.Status, &f.Name,
			&f.policy, &f.named)
		return f, err
	}, `SELECT x.type, x.total, x.since, x.asset_id, x.policy_id, x.proposal_id, x.command, x.status,
			COALESCE(a.identification, ''), COALESCE(a.policy_id, ''), COALESCE(p.name, '')
		FROM (SELECT e.*, COUNT(*) OVER (PARTITION BY e.type) AS total, MIN(e.at) OVER (PARTITION BY e.type) AS since,
				ROW_NUMBER() OVER (PARTITION BY e.type ORDER BY e.pos) AS place
			FROM events e WHERE e.company_id = ? AND e.pos > 0 AND e.pos > ? AND e.pos <= ? AND e.at >= ? AND e.type IN (`+
		marks(len(q.Types))+`) AND (`+sees+`)) x
		LEFT JOIN assets a ON a.id = x.asset_id AND a.company_id = x.company_id LEFT JOIN policies p ON p.id = x.policy_id
			AND p.company_id = x.company_id
		WHERE x.place <= ? ORDER BY x.type, x.place`, args...)
	var all []attention.News
	for _, f := range rows {
		if len(all) == 0 || all[len(all)-1].Type != f.Type {
			all = append(all, attention.News{Type: f.Type, Count: f.count, First: f.At})
		}
		switch {
		case f.AssetID == "":
			f.Name = f.named
		case q.See.Only != nil && !slices.Contains(q.See.Only, f.policy):
			f.Name = ""
		}
		n := &all[len(all)-1]
		n.Examples = append(n.Examples, f.Example)
	}
	return all, err
}

// MailPassed implements attention.MailStore.
func (db *DB) MailPassed(ctx context.Context, companyID string, users []string, position int64) error {
	const some = 500 // users of a statement
	for chunk := range slices.Chunk(users, some) {
		args := append([]any{position, companyID, position}, anys(chunk)...)
		if err := db.exec(ctx, `UPDATE mail_users SET position = ? WHERE company_id = ? AND position < ? AND user_id IN (`+
			marks(len(chunk))+
			`)`, args...); err != nil {
			return err
		}
	}
	return nil
}
