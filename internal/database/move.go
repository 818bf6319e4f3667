package database

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/slice"
)

// onTheWay are the policies, other than one, to which open commands move a device that does
// not have them yet. A command that was sent does not count once the device has got a
// policy by a later one: that one was compared with it.
const onTheWay = `SELECT DISTINCT m.policy_id AS id, COALESCE((SELECT p.version FROM policies p WHERE p.id = m.policy_id), 0) AS version ` +
	movesElsewhere

const movesElsewhere = openMoves + `
	AND m.asset_id = ? AND m.policy_id <> ? AND NOT (m.state = 'SENT' AND EXISTS (SELECT 1 FROM commands l WHERE l.asset_id = m.asset_id
	AND l.epoch = m.epoch AND l.type = 'CHANGE_POLICY' AND l.created_at > m.created_at AND l.policy_id = d.policy_id AND l.state IN ('SENT', 'SUCCESS')))`

// OnTheWay implements command.Store.
func (db *DB) OnTheWay(ctx context.Context, assetID, except string) ([]approval.Policy, error) {
	return listOnTheWay(ctx, db.read(), assetID, except)
}

func listOnTheWay(ctx context.Context, c conn, assetID, except string) ([]approval.Policy, error) {
	return list(ctx, c, into(func(p *approval.Policy) []any { return []any{&p.ID, &p.Version} }), onTheWay+` ORDER BY 1`, assetID, except)
}

// What a move was compared with, as conditions of a query: device and policies are the
// same, and the policies on the way, as joined has them. busy is whether a proposal about
// one of the policies is being applied; the first look at the platform decides about one
// whose outcome is not known.
const (
	sameMove = `EXISTS (SELECT 1 FROM assets a JOIN policies p ON p.id = ? AND p.company_id = a.company_id
		WHERE a.id = ? AND a.company_id = ? AND a.policy_id = ? AND p.version = ?
		AND COALESCE((SELECT f.version FROM policies f WHERE f.id = a.policy_id), 0) = ?)`
	movesOnTheWay = `COALESCE((SELECT string_agg(w.id || ' ' || w.version, ',' ORDER BY w.id) FROM (` + onTheWay + `) w), '')`
)

func busyMove(policies []any) part {
	return part{`EXISTS (SELECT 1 FROM proposals WHERE look_at > 0 AND next_policy_id IN (` + marks(len(policies)) + `)
		AND (status = 'EXECUTING' OR status = 'UNCONFIRMED' AND looks = 0))`, policies}
}

// movePolicies are the policies that a move has to do with: those that it was compared with, or
// its own.
func movePolicies(c command.Command) []any {
	if c.Ask == nil || c.Ask.Move == (approval.Move{}) {
		return []any{c.PolicyID}
	}
	ids := []any{c.Ask.Move.From.ID, c.Ask.Move.To.ID}
	for _, p := range c.Ask.OnTheWay {
		ids = append(ids, p.ID)
	}
	return ids
}

func sameMoveArguments(c command.Command) []any {
	m := c.Ask.Move
	return []any{m.To.ID, c.AssetID, c.CompanyID, m.From.ID, m.To.Version, m.From.Version}
}

// elsewhere are the policies on the way, as joined has them. As a rule there are none, and
// that is cheaper to see.
func elsewhere(c command.Command) part {
	args := []any{c.AssetID, c.Ask.Move.To.ID}
	if len(c.Ask.OnTheWay) == 0 {
		return part{`CASE WHEN EXISTS (SELECT 1 ` + movesElsewhere + `) THEN 'some' ELSE '' END`, args}
	}
	return part{movesOnTheWay, args}
}

// moveConditions are what the row of a move is made under.
func moveConditions(c command.Command) []part {
	busy := busyMove(movePolicies(c))
	now := elsewhere(c)
	return []part{{sameMove, sameMoveArguments(c)}, {"NOT " + busy.text, busy.args},
		{now.text + ` = CAST(? AS TEXT)`, append(now.args, joined(c.Ask.OnTheWay))}}
}

// holdMove holds the device of a move, then shares the policies in the order of their ids: a claim
// of a proposal, and the deletion of a policy, lock theirs. It fails with fault.NotFound if the
// policy of the move was deleted, and with errInventory if it holds the company's row, or that of a
// key, and would wait for an import.
func holdMove(ctx context.Context, t *tx, c command.Command) error {
	if c.Type != command.ChangePolicy {
		return nil
	}
	if inTurn(c) || c.DevicesPerDay > 0 {
		t.check(shareInventory(ctx, t, c.CompanyID))
	}
	ids := movePolicies(c)
	gone, err := list(ctx, t, func(r row) (id string, err error) {
		var deleted bool
		if err = r.Scan(&id, &deleted); !deleted {
			id = ""
		}
		return id, err
	}, `SELECT p.id, p.deleted FROM assets a JOIN policies p ON p.id IN (`+marks(len(ids))+
		`) WHERE a.id = ? ORDER BY p.id`+t.Dialect().Rows().Device, append(ids, c.AssetID)...)
	if err == nil && slices.Contains(gone, c.PolicyID) {
		err = unlessRepeated(ctx, t, c, fault.New(fault.NotFound, "no such policy"))
	}
	return err
}

// compareMove refuses a change of policy that was compared with something else than there
// is now: its device, the device's other moves or one of the policies changed since, or a
// proposal about one of them is being applied.
func compareMove(ctx context.Context, t conn, c command.Command) error {
	busy, others := busyMove(movePolicies(c)), elsewhere(c)
	now, err := one(ctx, t, into(func(n *comparison) []any { return []any{&n.same, &n.busy, &n.onTheWay} }),
		`SELECT `+sameMove+`, `+busy.text+`, `+others.text, slices.Concat(sameMoveArguments(c), busy.args, others.args)...)
	switch {
	case err != nil:
		return err
	case !now.same || now.onTheWay != joined(c.Ask.OnTheWay):
		return errMoveChanged
	case now.busy:
		return fault.New(fault.Unavailable, "a change of the device's policy, or of the new one, is being applied: nothing was sent, "+
			"send it again in a moment")
	}
	return nil
}

var errMoveChanged error = fault.New(fault.Unavailable,
	"the device's policy, its other moves or the new policy changed at this moment: nothing was sent, send it again")

// comparison is what the decision about a move depends on: whether device and policies are
// what was compared, whether a proposal about one of the policies is being applied, and
// the policies on the way, as joined has them.
type comparison struct {
	same, busy bool
	onTheWay   string
}

// joined are policies in the order of their ids as one text.
func joined(policies []approval.Policy) string {
	return strings.Join(slice.Map(policies, func(p approval.Policy) string { return p.ID + " " + strconv.Itoa(p.Version) }), ",")
}
