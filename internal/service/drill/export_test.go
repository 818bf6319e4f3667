package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/access"
)

// Without runs a scenario with a control taken away after the company was made:
// by statements on its database, and by other settings. It ends at the first harm.
func (s Settings) Without(ctx context.Context, name string, statements func(ctx context.Context, url string) error,
	change func(*access.Controls)) (Scenario, error) {
	at := slices.Index(Names(), name)
	if at < 0 {
		return Scenario{}, fmt.Errorf("there is no scenario %q", name)
	}
	one := scenarios()[at]
	return s.within(ctx, name, func(ctx context.Context, d *drill) error {
		d.hurried = true
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
		if err := one.attack(ctx, d); !errors.Is(err, errHarm) {
			return err
		}
		return nil
	})
}
