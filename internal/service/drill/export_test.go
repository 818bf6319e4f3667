package drill

import (
	"context"

	"github.com/musterhq/muster/internal/access"
)

// Without runs a scenario with a control taken away after the company was made:
// by statements on its database, and by other settings. It is quick: the stolen
// session lasts four minutes, and the model obeys some texts of each kind.
func (s Settings) Without(ctx context.Context, name string, statements func(ctx context.Context, url string) error,
	change func(*access.Controls)) (Scenario, error) {
	one, err := find(name)
	if err != nil {
		return Scenario{}, err
	}
	return s.within(ctx, name, func(ctx context.Context, d *drill) error {
		d.minutes, d.most = 4, 24
		if err := one.prepare(ctx, d); err != nil {
			return err
		}
		settings, _, err := d.look(ctx)
		if err != nil {
			return err
		}
		change(&settings.Controls)
		if err := d.controls(ctx, settings.Controls); err != nil {
			return err
		}
		if err := statements(ctx, d.Store.Database); err != nil {
			return err
		}
		return one.attack(ctx, d)
	})
}
