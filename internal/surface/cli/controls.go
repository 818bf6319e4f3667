package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
)

// ControlFlags change what limits a company's callers, at once.
type ControlFlags struct {
	ApplyApproval       string         `name:"apply-approval" default:"" enum:",off,risky,all" placeholder:"off|risky|all" help:"Which policy changes of keys and connections a person must approve."`
	SecondPerson        string         `name:"second-person" default:"" enum:",on,off" placeholder:"on|off" help:"Whether the user behind a request is excluded from approving it."`
	DestructiveApproval string         `name:"destructive-approval" default:"" enum:",on,off" placeholder:"on|off" help:"Whether a person must authorize each destructive command of a key or connection."`
	ApproverAge         *time.Duration `name:"approver-age" placeholder:"DURATION" help:"How old a user, a right and a passkey must be to approve or confirm, such as 24h; 0s: any age."`
	DestructiveLimit    string         `name:"destructive-limit" placeholder:"N/DURATION|off" help:"How many devices may get destructive commands in how many minutes, from all callers together, such as 25/60m."`
	RequireReason       string         `name:"require-reason" default:"" enum:",off,destructive,all" placeholder:"off|destructive|all" help:"Which calls of keys and connections must give a reason."`
}

func (f ControlFlags) given() bool { return f != ControlFlags{} }

// check refuses what cannot be read.
func (f ControlFlags) check() error {
	if f.ApproverAge != nil && (*f.ApproverAge < 0 || *f.ApproverAge > access.MaxApproverAge) {
		return fmt.Errorf("--approver-age must be from 0s to %s", access.MaxApproverAge)
	}
	if f.DestructiveLimit == "" {
		return nil
	}
	if _, err := access.ParseDestructiveLimit(f.DestructiveLimit); err != nil {
		return fmt.Errorf("--destructive-limit: %w", err)
	}
	return nil
}

// apply changes controls. The flags have passed check.
func (f ControlFlags) apply(c *access.Controls) {
	c.ApplyApproval = cmp.Or(access.ApprovalRule(strings.ToUpper(f.ApplyApproval)), c.ApplyApproval)
	c.RequireReason = cmp.Or(access.ReasonRule(strings.ToUpper(f.RequireReason)), c.RequireReason)
	if f.SecondPerson != "" {
		c.SecondPerson = f.SecondPerson == "on"
	}
	if f.DestructiveApproval != "" {
		c.DestructiveApproval = f.DestructiveApproval == "on"
	}
	if f.ApproverAge != nil {
		c.ApproverAge = *f.ApproverAge
	}
	if f.DestructiveLimit != "" {
		c.DestructiveLimit, _ = access.ParseDestructiveLimit(f.DestructiveLimit)
	}
}

// controlsView is access.Controls as -o json shows it.
type controlsView struct {
	ApplyApproval       access.ApprovalRule `json:"applyApproval"`
	SecondPerson        string              `json:"secondPerson"`
	ApproverAge         string              `json:"approverAge"`
	DestructiveApproval string              `json:"destructiveApproval"`
	DestructiveLimit    string              `json:"destructiveLimit"`
	RequireReason       access.ReasonRule   `json:"requireReason"`
}

func viewControls(c access.Controls) controlsView {
	return controlsView{
		ApplyApproval: c.ApplyApproval, SecondPerson: strings.ToUpper(access.OnOff(c.SecondPerson)), ApproverAge: c.ApproverAge.String(),
		DestructiveApproval: strings.ToUpper(access.OnOff(c.DestructiveApproval)), DestructiveLimit: c.DestructiveLimit.String(),
		RequireReason: c.RequireReason,
	}
}

// CompanyStop stops what a company's callers change.
type CompanyStop struct {
	Named
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why; callers are told."`
	All    bool   `name:"all" help:"Stop changes in the portal as well, for an administrator's stolen account. Signing in, disabling users, ending sessions, canceling what waits, and resuming go on."`
}

// Validate wants a reason that can be kept.
func (c *CompanyStop) Validate() error {
	if err := c.Named.Validate(); err != nil {
		return err
	}
	return possible(func(to *company.Company) { to.Settings.Stop = c.next(to.Settings.Stop, time.Unix(0, 0)) })
}

// next is the stop after the one that there is.
func (c *CompanyStop) next(s access.Stop, now time.Time) access.Stop {
	return access.Stop{At: now, Reason: strings.TrimSpace(c.Reason), All: s.All || c.All}
}

// Run stops the company. One that is stopped already gets the new reason, and stays stopped as far
// as it was.
func (c *CompanyStop) Run(env *Env) error {
	return c.stop(env, "Stopped", func(s access.Stop) access.Stop { return c.next(s, env.Now()) })
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
		return admin.show(ctx, verb, changed, err)
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
