package database

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database/engine"
)

// What the handler of a request reads first is read in the round trip of its caller, or of
// what it spends: see access.Ahead. Each of these statements binds the asset to the company
// as the statement that it replaces does.

// group is some columns of a row, which are all NULL where an outer join found nothing.
type group struct {
	fields []any
	there  bool // the first column is not NULL
}

// scanGroups scans a row of groups. The fields of a group that is not there stay as they are.
func scanGroups(r row, groups ...*group) error {
	var ignored any
	var columns, all []any
	first := make([]any, len(groups))
	for i, g := range groups {
		columns = append(columns, &first[i])
		for range g.fields[1:] {
			columns = append(columns, &ignored)
		}
	}
	if err := r.Scan(columns...); err != nil {
		return err
	}
	for i, g := range groups {
		if g.there = first[i] != nil; g.there {
			all = append(all, g.fields...)
			continue
		}
		for range g.fields {
			all = append(all, &ignored)
		}
	}
	return r.Scan(all...)
}

// targetColumns are those of assetColumns that a command needs. The others are empty: no
// name of a policy, nothing that people or the device say.
//
//nolint:gochecknoglobals // a text that is never written to
var targetColumns = strings.NewReplacer(slugColumn, "tc.slug", policyNameColumn, "NULL",
	"a.custom_data", "''", "a.tags", "''", "a.specifications", "''", "a.location", "''", "a.status_report", "''").Replace(assetColumns)

// targetAgentColumns are agentColumns of the agent of the asset a, of which nothing is read again; what only its
// check-in is about is not read.
const targetAgentColumns = agentOwnColumns + `, a.status = 'INACTIVE',
	CASE WHEN agent_devices.role <> 'companion' THEN a.policy_id ELSE '' END,
	COALESCE((SELECT p.version FROM policies p WHERE p.id = a.policy_id AND agent_devices.role <> 'companion'), 0), FALSE`

// targetTables finds the asset of a company, by its id and the company's, with its agent.
const targetTables = `assets a JOIN companies tc ON tc.id = a.company_id AND a.id = ? AND tc.id = ?
	LEFT JOIN agent_devices ON ` + agentOfAsset

// agentOfAsset is the live agent of an enrollment of the asset a.
const agentOfAsset = `agent_devices.asset_id = a.id AND agent_devices.epoch = a.epoch
	AND agent_devices.state <> '` + string(agentdevice.Deleted) + `'`

// targetRow collects an asset as a command needs it, and its agent.
type targetRow struct {
	asset assetRow
	agent agentdevice.Device
}

// target is the asset that a command is for, as it is kept until it is taken.
type target struct{ asset.Asset }

// CommandTarget implements command.Inventory.
func (db *DB) CommandTarget(ctx context.Context, companyID, id string) (asset.Asset, error) {
	if t, ok := access.Take(ctx, func(t target) bool { return t.CompanyID == companyID && t.ID == id }); ok {
		return t.Asset, nil
	}
	t, err := find(ctx, db.read(), "asset", func(r row) (target, error) {
		var t targetRow
		a, d := t.groups()
		if err := scanGroups(r, a, d); err != nil {
			return target{}, err
		}
		found, err := t.asset.result()
		if d.there {
			access.AheadOf(ctx).Found(t.agent)
		}
		return target{found}, err
	}, `SELECT `+targetColumns+`, `+targetAgentColumns+` FROM `+targetTables, id, companyID)
	return t.Asset, err
}

func (t *targetRow) groups() (a, d *group) {
	return &group{fields: t.asset.targets()}, &group{fields: agentFields(&t.agent)}
}

// spendAhead counts a call, or returns engine.ErrNoRow, and reads in the same statement the
// asset that the call commands, where it is the company's.
func spendAhead(ctx context.Context, t conn, spending part) (budgetWindow, error) {
	ahead := access.AheadOf(ctx)
	return one(ctx, t, func(r row) (w budgetWindow, err error) {
		var found targetRow
		spent := &group{fields: windowFields(&w)}
		a, d := found.groups()
		if err := scanGroups(r, spent, a, d); err != nil {
			return w, err
		}
		if !spent.there {
			return w, engine.ErrNoRow
		}
		if !a.there {
			return w, nil
		}
		of, damaged := found.asset.result()
		if damaged == nil { // else the handler meets it
			ahead.Found(target{of}, found.agent) // without an agent, one that fits nothing
		}
		return w, nil
	}, `WITH spent AS (`+spending.text+`) SELECT spent.used, spent.closes_at, `+targetColumns+`, `+targetAgentColumns+`
		FROM (SELECT 1) AS always LEFT JOIN spent ON TRUE LEFT JOIN (`+targetTables+`) ON TRUE`,
		append(spending.args, ahead.Asset, ahead.CompanyID)...)
}
