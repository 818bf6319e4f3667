package database

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// onTheWay are the policies, other than one, to which open commands move a device that does
// not have them yet. A command that was sent does not count once the device has got a
// policy by a later one: that one was compared with it.
const onTheWay = `SELECT DISTINCT m.policy_id, COALESCE((SELECT p.version FROM policies p WHERE p.id = m.policy_id), 0) ` + openMoves + `
	AND m.asset_id = ? AND m.policy_id <> ? AND NOT (m.state = 'SENT' AND EXISTS (SELECT 1 FROM commands l WHERE l.asset_id = m.asset_id
	AND l.epoch = m.epoch AND l.type = 'CHANGE_POLICY' AND l.created_at > m.created_at AND l.policy_id = d.policy_id AND l.state IN ('SENT', 'SUCCEEDED')))
	ORDER BY 1`

// OnTheWay implements command.Store.
func (db *DB) OnTheWay(ctx context.Context, assetID, except string) ([]approval.Policy, error) {
	return listOnTheWay(ctx, db.read(), assetID, except)
}

func listOnTheWay(ctx context.Context, c conn, assetID, except string) ([]approval.Policy, error) {
	return list(ctx, c, into(func(p *approval.Policy) []any { return []any{&p.ID, &p.Version} }), onTheWay, assetID, except)
}

// mayMoveNow refuses a change of policy that was compared with something else than there
// is now: its device, the device's other moves or one of the policies changed since, or a
// proposal about one of them is being applied. With locks it holds the device, then shares
// the policies in the order of their ids: a claim of a proposal locks its policy.
func mayMoveNow(ctx context.Context, t conn, c command.Command, l locks) error {
	m := c.Ask.Move
	ids := []any{m.From.ID, m.To.ID}
	for _, p := range c.Ask.OnTheWay {
		ids = append(ids, p.ID)
	}
	in := ` IN (` + marks(len(ids)) + `)`
	if l.hold != "" {
		if _, err := holds(ctx, t, `SELECT id FROM assets WHERE id = ?`+l.hold, c.AssetID); err != nil {
			return err
		}
		if _, err := list(ctx, t, scanValue[string], `SELECT id FROM policies WHERE id`+in+` ORDER BY id`+l.share, ids...); err != nil {
			return err
		}
	}
	moving, err := listOnTheWay(ctx, t, c.AssetID, m.To.ID)
	if err != nil {
		return err
	}
	// looks: the first look at the platform decides about an outcome that is not known.
	now, err := one(ctx, t, into(func(n *comparison) []any { return []any{&n.same, &n.busy} }), `SELECT
		EXISTS (SELECT 1 FROM assets a JOIN policies p ON p.id = ? AND p.company_id = a.company_id
			WHERE a.id = ? AND a.company_id = ? AND a.policy_id = ? AND p.version = ?
			AND COALESCE((SELECT f.version FROM policies f WHERE f.id = a.policy_id), 0) = ?),
		EXISTS (SELECT 1 FROM proposals WHERE look_at > 0 AND next_policy_id`+in+`
			AND (status = 'EXECUTING' OR status = 'UNCONFIRMED' AND looks = 0))`,
		append([]any{m.To.ID, c.AssetID, c.CompanyID, m.From.ID, m.To.Version, m.From.Version}, ids...)...)
	switch {
	case err != nil:
		return err
	case !now.same || !slices.Equal(moving, c.Ask.OnTheWay):
		return fault.New(fault.Unavailable, "the device's policy, its other moves or the new policy changed at this moment: nothing was sent, send it again")
	case now.busy:
		return fault.New(fault.Unavailable, "a change of the device's policy, or of the new one, is being applied: nothing was sent, send it again in a moment")
	}
	return nil
}

// comparison is what the decision about a move depends on: whether device and policies are
// what was compared, and whether a proposal about one of the policies is being applied.
type comparison struct{ same, busy bool }
