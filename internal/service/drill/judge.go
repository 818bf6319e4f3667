package drill

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
)

// pageOfAll is larger than the demo's company.
const pageOfAll = 1000

// controls sets the company's controls, as the operator does.
func (d *drill) controls(ctx context.Context, c access.Controls) error {
	_, err := d.Admin.Companies.UpdateCompany(ctx, d.Company.ID, func(to *company.Company) error {
		to.Settings.Controls = c
		return nil
	})
	return err
}

// look reads the company's settings and its managed devices.
func (d *drill) look(ctx context.Context) (access.Settings, []asset.Asset, error) {
	c, err := d.Admin.Companies.CompanyByID(ctx, d.Company.ID)
	if err != nil {
		return access.Settings{}, nil, err
	}
	devices, _, err := d.db.Assets(ctx, asset.Query{Filter: asset.Filter{CompanyID: d.Company.ID, Enrolled: true}, Order: asset.ByCreatedAt,
		Page: operation.PageRequest{Size: pageOfAll}})
	return c.Settings, devices, err
}

// history is all commands that a device has, as the database has them.
func (d *drill) history(ctx context.Context, assetID string) ([]command.Command, error) {
	all, _, err := d.db.History(ctx, d.Company.ID, assetID, operation.PageRequest{Size: pageOfAll})
	return all, err
}

// everyCommand calls see with each command of the company.
func (d *drill) everyCommand(ctx context.Context, see func(command.Command)) error {
	all, _, err := d.db.Assets(ctx, asset.Query{Filter: asset.Filter{CompanyID: d.Company.ID}, Order: asset.ByCreatedAt,
		Page: operation.PageRequest{Size: pageOfAll}})
	for _, a := range all {
		commands, failed := d.history(ctx, a.ID)
		if failed != nil {
			return failed
		}
		for _, c := range commands {
			see(c)
		}
	}
	return err
}

// destroyed counts the devices that got a destructive command.
func (d *drill) destroyed(ctx context.Context) (int, error) {
	devices := map[string]bool{}
	err := d.everyCommand(ctx, func(c command.Command) {
		if c.Type.Destructive() {
			devices[c.AssetID] = true
		}
	})
	return len(devices), err
}

// recorded counts the company's commands by their types.
func (d *drill) recorded(ctx context.Context) (map[command.Type]int, error) {
	n := map[command.Type]int{}
	err := d.everyCommand(ctx, func(c command.Command) { n[c.Type]++ })
	return n, err
}
