package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// ControlFlags change what limits a company's callers, at once.
type ControlFlags struct {
	ApproverAge      *time.Duration `name:"approver-age" placeholder:"DURATION" help:"How old a user, a right and a passkey must be to approve or confirm, such as 24h; 0s: any age."`
	DestructiveLimit string         `name:"destructive-limit" placeholder:"N/DURATION|off" help:"How many devices may get destructive commands in how many minutes, from all callers together, such as 25/60m."`
	RequireReason    string         `name:"require-reason" default:"" enum:",off,destructive,all" placeholder:"off|destructive|all" help:"Which calls of keys and connections must give a reason."`
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
	c.RequireReason = cmp.Or(access.ReasonRule(strings.ToUpper(f.RequireReason)), c.RequireReason)
	if f.ApproverAge != nil {
		c.ApproverAge = *f.ApproverAge
	}
	if f.DestructiveLimit != "" {
		c.DestructiveLimit, _ = access.ParseDestructiveLimit(f.DestructiveLimit)
	}
}

// controlsView is access.Controls as -o json shows it.
type controlsView struct {
	ApproverAge      string            `json:"approverAge"`
	DestructiveLimit string            `json:"destructiveLimit"`
	RequireReason    access.ReasonRule `json:"requireReason"`
}

func viewControls(c access.Controls) controlsView {
	return controlsView{ApproverAge: c.ApproverAge.String(), DestructiveLimit: c.DestructiveLimit.String(), RequireReason: c.RequireReason}
}

func (v controlsView) show(w io.Writer) {
	row(w, "  destructive limit", v.DestructiveLimit)
	row(w, "  approver age", v.ApproverAge)
	row(w, "  require reason", string(v.RequireReason))
}
