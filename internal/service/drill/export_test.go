package drill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
)

// Without runs a scenario with a control taken away after the company was made:
// by statements on its database, and by other settings. It ends at the first harm.
func (s Settings) Without(ctx context.Context, name string, statements func(ctx context.Context, url string) error,
	change func(*access.Controls)) (Scenario, error) {
	return s.without(ctx, name, func(ctx context.Context, d *drill) error {
		settings, _, err := d.look(ctx)
		if err != nil {
			return err
		}
		change(&settings.Controls)
		if err := d.controls(ctx, settings.Controls); err != nil {
			return err
		}
		return statements(ctx, d.Store.Database)
	})
}

// WithCarelessPerson runs a scenario with an administrator who authorizes each command of a
// type as soon as it is asked for. It ends at the first harm.
func (s Settings) WithCarelessPerson(ctx context.Context, name string, kind command.Type) (Scenario, error) {
	return s.without(ctx, name, func(ctx context.Context, d *drill) error {
		admin, err := d.signIn(ctx)
		if err != nil {
			return err
		}
		if err := admin.AddPasskey(ctx); err != nil {
			return err
		}
		d.clock.advance(2 * access.DefaultControls().ApproverAge)
		d.person = func(ctx context.Context, refused answer) error {
			if refused.control() != "authorization" {
				return nil
			}
			a, err := d.db.Authorization(ctx, d.Company.ID, path.Base(refused.approvalURL))
			if err != nil || a.Command != string(kind) {
				return err
			}
			p, err := admin.Decide(ctx, refused.approvalURL)
			if got := outcome(p); err == nil && got.code != "" {
				err = fmt.Errorf("the administrator cannot authorize it: %s", got.detail)
			}
			return err
		}
		return admin.SignInByPasskey(ctx)
	})
}

// without runs a scenario after a control was taken away. It ends at the first harm.
func (s Settings) without(ctx context.Context, name string, take func(context.Context, *drill) error) (Scenario, error) {
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
		if err := take(ctx, d); err != nil {
			return err
		}
		if err := one.attack(ctx, d); !errors.Is(err, errHarm) {
			return err
		}
		return nil
	})
}
