package drill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/script"
)

// Without runs a scenario with a control taken away after the company was made:
// by statements on its database, and by other settings. It ends at the first harm.
func (s Settings) Without(ctx context.Context, name string, statements func(ctx context.Context, url string) error,
	change func(*access.Controls)) (Scenario, error) {
	return s.without(ctx, name, func(ctx context.Context, d *drill) {
		settings, _ := d.look(ctx)
		change(&settings.Controls)
		d.controls(ctx, settings.Controls)
		script.Need(statements(ctx, d.Store.Database))
	})
}

// WithCarelessPerson runs a scenario with an administrator who authorizes each command of a
// type as soon as it is asked for. It ends at the first harm.
func (s Settings) WithCarelessPerson(ctx context.Context, name string, kind command.Type) (Scenario, error) {
	return s.without(ctx, name, func(ctx context.Context, d *drill) {
		admin := d.signIn(ctx)
		d.clock.advance(2 * access.DefaultControls().ApproverAge)
		d.person = func(ctx context.Context, refused answer) {
			if refused.control() != "authorization" {
				return
			}
			asked := func(a approval.Authorization) bool {
				return a.ID == path.Base(refused.approvalURL) && a.Command == string(kind)
			}
			if !slices.ContainsFunc(script.Must(d.db.Authorizations(ctx, d.Company.ID, nil, 100)), asked) {
				return
			}
			if got := outcome(admin.Decide(ctx, refused.approvalURL)); got.code != "" {
				script.Fail("the administrator cannot authorize it: %s", got.detail)
			}
		}
		admin.SignInByPasskey(ctx)
	})
}

// without runs a scenario after a control was taken away. It ends at the first harm.
func (s Settings) without(ctx context.Context, name string, take func(context.Context, *drill)) (Scenario, error) {
	at := slices.Index(Names(), name)
	if at < 0 {
		return Scenario{}, fmt.Errorf("there is no scenario %q", name)
	}
	one := scenarios()[at]
	return s.company(ctx, name, func(ctx context.Context, d *drill) {
		d.hurried = true
		one.prepare(ctx, d)
		take(ctx, d)
		if err := script.Attempt(func() { one.attack(ctx, d) }); !errors.Is(err, errHarm) {
			script.Need(err)
		}
	})
}
