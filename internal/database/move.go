package database

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// onTheWay are the policies, other than one, to which open commands move a device that does
// not have them yet. A command that was sent does not count once the device has got a
// policy by a later one: that one was compared with it.
const onTheWay = `SELECT DISTINCT m.policy_id AS id, COALESCE((SELECT p.version FROM policies p WHERE p.id = m.policy_id), 0) AS version ` + openMoves + `
	AND m.asset_id = ? AND m.policy_id <> ? AND NOT (m.state = 'SENT' AND EXISTS (SELECT 1 FROM commands l WHERE l.asset_id = m.asset_id
	AND l.epoch = m.epoch AND l.type = 'CHANGE_POLICY' AND l.created_at > m.created_at AND l.policy_id = d.policy_id AND l.state IN ('SENT', 'SUCCEEDED')))`

// OnTheWay implements command.Store.
func (db *DB) OnTheWay(ctx context.Context, assetID, except string) ([]approval.Policy, error) {
	return listOnTheWay(ctx, db.read(), assetID, except)
}

func listOnTheWay(ctx context.Context, c conn, assetID, except string) ([]approval.Policy, error) {
	return list(ctx, c, into(func(p *approval.Policy) []any { return []any{&p.ID, &p.Version} }), onTheWay+` ORDER BY 1`, assetID, except)
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
	if l.device != "" {
		if _, err := list(ctx, t, scanValue[string], `SELECT p.id FROM assets a JOIN policies p ON p.id`+in+` WHERE a.id = ? ORDER BY p.id`+l.device,
			append(slices.Clone(ids), c.AssetID)...); err != nil {
			return err
		}
	}
	// looks: the first look at the platform decides about an outcome that is not known.
	now, err := one(ctx, t, into(func(n *comparison) []any { return []any{&n.same, &n.busy, &n.onTheWay} }), `SELECT
		EXISTS (SELECT 1 FROM assets a JOIN policies p ON p.id = ? AND p.company_id = a.company_id
			WHERE a.id = ? AND a.company_id = ? AND a.policy_id = ? AND p.version = ?
			AND COALESCE((SELECT f.version FROM policies f WHERE f.id = a.policy_id), 0) = ?),
		EXISTS (SELECT 1 FROM proposals WHERE look_at > 0 AND next_policy_id`+in+`
			AND (status = 'EXECUTING' OR status = 'UNCONFIRMED' AND looks = 0)),
		COALESCE((SELECT string_agg(w.id || ' ' || w.version, ',' ORDER BY w.id) FROM (`+onTheWay+`) w), '')`,
		slices.Concat([]any{m.To.ID, c.AssetID, c.CompanyID, m.From.ID, m.To.Version, m.From.Version}, ids, []any{c.AssetID, m.To.ID})...)
	switch {
	case err != nil:
		return err
	case !now.same || now.onTheWay != joined(c.Ask.OnTheWay):
		return fault.New(fault.Unavailable, "the device's policy, its other moves or the new policy changed at this moment: nothing was sent, send it again")
	case now.busy:
		return fault.New(fault.Unavailable, "a change of the device's policy, or of the new one, is being applied: nothing was sent, send it again in a moment")
	}
	return nil
}

// comparison is what the decision about a move depends on: whether device and policies are
// what was compared, whether a proposal about one of the policies is being applied, and
// the policies on the way, as joined has them.
type comparison struct {
	same, busy bool
	onTheWay   string
}

// joined are policies in the order of their ids as one text.
func joined(policies []approval.Policy) string {
	texts := make([]string, len(policies))
	for i, p := range policies {
		texts[i] = p.ID + " " + strconv.Itoa(p.Version)
	}
	return strings.Join(texts, ",")
}
