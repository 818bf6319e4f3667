package cli

import (
	"context"
	"io"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
)

// CompanyStop stops what a company's callers change.
type CompanyStop struct {
	Named
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why; callers are told."`
	All    bool   `name:"all" help:"Stop changes in the portal as well, for an administrator's stolen account. Signing in, disabling users, ending sessions, canceling what waits, and resuming go on."`
}

// Run stops the company. One that is stopped already gets the new reason.
func (c *CompanyStop) Run(env *Env) error {
	return c.stop(env, "Stopped", func(s access.Stop) access.Stop {
		next := access.Stop{At: s.At, Reason: strings.TrimSpace(c.Reason), All: c.All}
		if !s.On() {
			next.At = env.Now()
		}
		return next
	})
}

// CompanyResume ends a stop.
type CompanyResume struct{ Named }

// Run resumes the company.
func (c *CompanyResume) Run(env *Env) error {
	return c.stop(env, "Resumed", func(access.Stop) access.Stop { return access.Stop{} })
}

func (n Named) stop(env *Env, verb string, next func(access.Stop) access.Stop) error {
	return n.run(env, func(ctx context.Context, admin *Admin, found company.Company) (answer, error) {
		changed, err := admin.Companies.UpdateCompany(ctx, found.ID, company.Change(func(to *company.Company) {
			to.Settings.Stop = next(to.Settings.Stop)
		}))
		return showCompany(verb, changed), err
	})
}

// stopView is access.Stop as -o json shows it; null: none.
type stopView struct {
	At     *operation.Timestamp `json:"at"`
	Reason string               `json:"reason"`
	All    bool                 `json:"all"`
}

func viewStop(s access.Stop) *stopView {
	if !s.On() {
		return nil
	}
	return &stopView{At: operation.TimestampOf(s.At), Reason: s.Reason, All: s.All}
}

func (v *stopView) show(w io.Writer) {
	if v == nil {
		return
	}
	what := "API keys and connections"
	if v.All {
		what = "API keys, connections and the portal"
	}
	row(w, "  stopped", what+": "+v.Reason)
}
