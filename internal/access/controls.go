package access

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
)

// Controls are a company's limits on its callers, alone or all together. They apply in addition to permissions. The zero
// value has no limit.
type Controls struct {
	// ApplyApproval says which changes of policies by keys and connections a
	// person must approve.
	ApplyApproval ApprovalRule
	// SecondPerson: a user cannot approve a request of their own, of their connection, or of a key that they made.
	SecondPerson bool
	// ApproverAge is how long ago a user, their right and their passkey must have been added, so that the user can
	// approve or confirm. 0: no age is needed.
	ApproverAge time.Duration
	// DestructiveApproval: a person must authorize each destructive command of a
	// key or connection.
	DestructiveApproval bool
	DestructiveLimit    DestructiveLimit
	// RequireReason says which calls must give a reason.
	RequireReason ReasonRule
}

// DefaultControls are those of a new company.
func DefaultControls() Controls {
	return Controls{ApplyApproval: ApproveNone, ApproverAge: 24 * time.Hour, RequireReason: ReasonNone,
		DestructiveLimit: DestructiveLimit{Devices: 25, Window: time.Hour}}
}

// ApprovalRule is a value of the setting applyApproval.
type ApprovalRule string

// The values of applyApproval, from loose to strict.
const (
	ApproveNone  ApprovalRule = "OFF"
	ApproveRisky ApprovalRule = "RISKY"
	ApproveAll   ApprovalRule = "ALL"
)

// On reports whether changes need an approval at all. A value that was never set is OFF.
func (r ApprovalRule) On() bool { return r != "" && r != ApproveNone }

// ApprovalRules lists the values from loose to strict.
func ApprovalRules() []ApprovalRule { return []ApprovalRule{ApproveNone, ApproveRisky, ApproveAll} }

// ReasonRule is a value of the setting requireReason.
type ReasonRule string

// The values of requireReason.
const (
	ReasonNone        ReasonRule = "OFF"
	ReasonDestructive ReasonRule = "DESTRUCTIVE"
	ReasonAll         ReasonRule = "ALL"
)

// ReasonRules lists the values from loose to strict.
func ReasonRules() []ReasonRule { return []ReasonRule{ReasonNone, ReasonDestructive, ReasonAll} }

// The largest values of the setting approverAge: MaxApproverAge on the command line, MaxPortalApproverAge in the portal. A
// large value prevents every administrator from confirming anything, until the operator lowers it.
const (
	MaxApproverAge       = 365 * 24 * time.Hour
	MaxPortalApproverAge = 7 * 24 * time.Hour
)

// DestructiveLimit limits to how many distinct devices a company's callers together may send destructive commands, within
// any period of the length Window. The zero value is no limit.
type DestructiveLimit struct {
	Devices int
	Window  time.Duration // whole minutes
}

// The largest DestructiveLimit.
const (
	MaxLimitDevices = 100_000
	MaxLimitWindow  = 7 * 24 * time.Hour
)

// Off reports whether there is no limit.
func (l DestructiveLimit) Off() bool { return l.Devices == 0 }

// String writes the limit as ParseDestructiveLimit reads it.
func (l DestructiveLimit) String() string {
	if l.Off() {
		return "OFF"
	}
	return fmt.Sprintf("%d/%dm", l.Devices, int(l.Window.Minutes()))
}

// Words returns the limit as text for people.
func (l DestructiveLimit) Words() string {
	if l.Off() {
		return "no limit"
	}
	return phrase.Count(l.Devices, "device", "devices") + " in " + phrase.Count(int(l.Window.Minutes()), "minute", "minutes")
}

// Within reports whether other allows everything that l allows.
func (l DestructiveLimit) Within(other DestructiveLimit) bool {
	return other.Off() || !l.Off() && l.Devices <= other.Devices && l.Window >= other.Window
}

// check returns what is wrong with the limit, to follow its name; empty: nothing.
func (l DestructiveLimit) check() string {
	switch {
	case l == DestructiveLimit{}:
		return ""
	case l.Devices < 1 || l.Devices > MaxLimitDevices:
		return "must be for 1 to 100000 devices"
	case l.Window < time.Minute || l.Window > MaxLimitWindow || l.Window%time.Minute != 0:
		return "must be for whole minutes, from one to 10080 (7 days)"
	}
	return ""
}

// ParseDestructiveLimit reads DEVICES/DURATION, such as 25/60m, or off in any case. The duration is one of
// time.ParseDuration, in whole minutes.
func ParseDestructiveLimit(text string) (DestructiveLimit, error) {
	if strings.EqualFold(text, "off") {
		return DestructiveLimit{}, nil
	}
	devices, window, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(devices)
	span, spanErr := time.ParseDuration(window)
	if err != nil || spanErr != nil || n < 1 {
		return DestructiveLimit{}, fmt.Errorf("%q is no limit: write DEVICES/DURATION, such as 25/60m, or off", text)
	}
	l := DestructiveLimit{Devices: n, Window: span}
	if wrong := l.check(); wrong != "" {
		return DestructiveLimit{}, fmt.Errorf("the limit %q %s", text, wrong)
	}
	return l, nil
}

// Wrong returns what is wrong with the controls, by the name of the setting; empty: nothing.
func (c Controls) Wrong() map[string]string {
	wrong := map[string]string{}
	if known(ApprovalRules(), c.ApplyApproval) < 0 {
		wrong["applyApproval"] = "must be OFF, RISKY or ALL"
	}
	if known(ReasonRules(), c.RequireReason) < 0 {
		wrong["requireReason"] = "must be OFF, DESTRUCTIVE or ALL"
	}
	if c.ApproverAge < 0 || c.ApproverAge > MaxApproverAge {
		wrong["approverAge"] = "must be from 0 to 365 days"
	}
	if text := c.DestructiveLimit.check(); text != "" {
		wrong["destructiveLimit"] = text
	}
	return wrong
}

// known returns the index of a value in all, or -1. An empty value, which was never set, counts as the first.
func known[T ~string](all []T, value T) int {
	if value == "" {
		return 0
	}
	return slices.Index(all, value)
}

// Stop says that an administrator or the operator has stopped what a company's
// callers change. The zero value is no stop.
type Stop struct {
	At     time.Time
	Reason string
	All    bool // changes in the portal are stopped as well
}

// MaxStopReason is the limit of a reason, in characters.
const MaxStopReason = 200

// On reports whether there is a stop.
func (s Stop) On() bool { return !s.At.IsZero() }

// ErrStopped is the cause of the refusals by a Stop, whatever rights the caller has.
var ErrStopped = errors.New("access: changes are stopped")

// Refuses returns fault.Forbidden, with the reason, if the stop prevents a caller of the kind from changing anything. The
// stop does not affect reading, and never the operator.
func (s Stop) Refuses(kind Kind) error {
	switch {
	case !s.On():
		return nil
	case kind.Automated():
		return fault.New(fault.Forbidden, "automation is stopped: %s. Reading goes on; an administrator can resume it in the portal, the "+
			"operator with muster company resume", s.Reason).Because(ErrStopped)
	case kind == User && s.All:
		return fault.New(fault.Forbidden, "changes are stopped, in the portal too: %s. Reading goes on; an administrator can ask to "+
			"resume, the operator resumes with muster company resume", s.Reason).Because(ErrStopped)
	}
	return nil
}

// OnOff returns "on" or "off".
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
