package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

// ActivityCommands read the activity log.
type ActivityCommands struct {
	List   ActivityList   `cmd:"" help:"Show a company's newest entries."`
	Export ActivityExport `cmd:"" help:"Write a company's entries, newest first, as CSV or NDJSON."`
}

// within are the filters of both.
type within struct {
	OfCompany
	Last time.Duration `name:"last" default:"720h" placeholder:"DURATION" help:"How far back; by default 720h."`
	Area string        `name:"area" placeholder:"AREA" help:"Only command, proposal, policy, provisioning, signin, user, key, connection, company or asset."`
}

func (c within) filter(ctx context.Context, desk *Desk, now time.Time) (activity.Filter, error) {
	owner, err := desk.company(ctx, c.Company)
	if c.Last <= 0 {
		err = fault.Invalid("--last must be a positive duration, such as 24h")
	}
	return activity.Filter{CompanyID: owner.ID, Area: c.Area, From: now.Add(-c.Last), To: now.Add(time.Minute)}, err
}

// ActivityList lists entries.
type ActivityList struct {
	within
	Limit int `name:"limit" default:"50" help:"How many entries, at most 200."`
}

// Run prints the list.
func (c *ActivityList) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		filter, err := c.filter(ctx, desk, env.Now())
		if err != nil {
			return answer{}, err
		}
		entries, err := desk.Activity.Activity(ctx, filter, activity.Cursor{}, max(1, c.Limit))
		return answer{activity.Lines(entries), func(w io.Writer) {
			row(w, "AT", "KIND", "WHO", "ACTION", "TARGET", "OUTCOME")
			for _, e := range entries {
				row(w, day(e.At), string(e.Actor.Kind), orDash(e.Actor.Name+e.Actor.Prefix), string(e.Action), orDash(e.Target.Name), string(e.Outcome))
			}
		}}, err
	})
}

// ActivityExport writes entries as they are read.
type ActivityExport struct {
	within
	Format string `name:"format" enum:"csv,ndjson" default:"ndjson" help:"csv or ndjson."`
}

// Run writes the export to standard output and nothing else.
func (c *ActivityExport) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		filter, err := c.filter(ctx, desk, env.Now())
		if err != nil {
			return answer{}, err
		}
		if err := activity.Export(ctx, desk.Activity, filter, activity.Format(c.Format), env.Out); err != nil {
			return answer{}, fmt.Errorf("the export broke off: %w", err)
		}
		return answer{}, nil
	})
}
