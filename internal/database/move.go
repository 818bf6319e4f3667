package database

import (
	"context"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// mayMoveNow refuses a change of policy that was compared with something else than there
// is now: its device or one of the two policies changed since, or a proposal about one
// of them is being applied. With a lock it holds the device, then both policies in the
// order of their ids: a claim of a proposal holds its policy.
func mayMoveNow(ctx context.Context, t conn, c command.Command, lock string) error {
	m := c.Ask.Move
	if lock != "" {
		if _, err := holds(ctx, t, `SELECT id FROM assets WHERE id = ?`+lock, c.AssetID); err != nil {
			return err
		}
		if _, err := list(ctx, t, scanValue[string], `SELECT id FROM policies WHERE id IN (?, ?) ORDER BY id`+lock, m.From.ID, m.To.ID); err != nil {
			return err
		}
	}
	same, err := holds(ctx, t, `SELECT a.id FROM assets a JOIN policies p ON p.id = ? AND p.company_id = a.company_id
		WHERE a.id = ? AND a.company_id = ? AND a.policy_id = ? AND p.version = ?
		AND COALESCE((SELECT f.version FROM policies f WHERE f.id = a.policy_id), 0) = ?`,
		m.To.ID, c.AssetID, c.CompanyID, m.From.ID, m.To.Version, m.From.Version)
	if err == nil && !same {
		return fault.New(fault.Unavailable, "the device's policy or the new one changed at this moment: nothing was sent, send it again")
	}
	if err != nil {
		return err
	}
	// looks: the first look at the platform decides about an outcome that is not known.
	busy, err := holds(ctx, t, `SELECT id FROM proposals WHERE look_at > 0 AND next_policy_id IN (?, ?)
		AND (status = 'EXECUTING' OR status = 'UNCONFIRMED' AND looks = 0) LIMIT 1`, m.From.ID, m.To.ID)
	if err == nil && busy {
		err = fault.New(fault.Unavailable, "a change of the device's policy, or of the new one, is being applied: nothing was sent, send it again in a moment")
	}
	return err
}
