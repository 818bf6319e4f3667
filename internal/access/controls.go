package access

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Controls limit what one caller, or all of a company's callers together, can
// do, whatever their permissions say.
type Controls struct {
	// ApplyApproval says which changes of policies by keys and connections a
	// person must approve.
	ApplyApproval ApprovalRule
	// SecondPerson: the user who proposed a change, or made the key that did, does not
	// approve it.
	SecondPerson bool
	// ApproverAge is how old a user, a right and a passkey must be to approve
	// something or to confirm it.
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

// What bounds the setting approverAge. In the portal it is MaxPortalApproverAge: a greater
// one keeps every administrator from confirming anything, until the operator lowers it.
const (
	MaxApproverAge       = 365 * 24 * time.Hour
	MaxPortalApproverAge = 7 * 24 * time.Hour
)

// DestructiveLimit is how many distinct devices a company's callers together may
// send destructive commands to in any window of the length. The zero value is
// no limit.
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

// Words are the limit for people.
func (l DestructiveLimit) Words() string {
	if l.Off() {
		return "no limit"
	}
	return fmt.Sprintf("%d devices in %d minutes", l.Devices, int(l.Window.Minutes()))
}

// Within reports whether everything that l allows, the limit other allows too.
func (l DestructiveLimit) Within(other DestructiveLimit) bool {
	return other.Off() || !l.Off() && l.Devices <= other.Devices && l.Window >= other.Window
}

// check reports what is wrong with the limit; empty: nothing.
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

// ParseDestructiveLimit reads a limit such as 25/60m, or off.
func ParseDestructiveLimit(text string) (DestructiveLimit, error) {
	if strings.EqualFold(text, "off") {
		return DestructiveLimit{}, nil
	}
	devices, window, found := strings.Cut(text, "/")
	n, err := strconv.Atoi(devices)
	span, spanErr := time.ParseDuration(window)
	if !found || err != nil || spanErr != nil || n < 1 {
		return DestructiveLimit{}, fmt.Errorf("%q is no limit: write DEVICES/DURATION, such as 25/60m, or off", text)
	}
	l := DestructiveLimit{Devices: n, Window: span}
	if wrong := l.check(); wrong != "" {
		return DestructiveLimit{}, fmt.Errorf("the limit %q %s", text, wrong)
	}
	return l, nil
}

// Wrong returns what is wrong with the controls by the name of the setting.
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

// known is the place of a value among those there are, or -1. A value that was
// never set is the first.
func known[T ~string](all []T, value T) int {
	if value == "" {
		return 0
	}
	for i, one := range all {
		if one == value {
			return i
		}
	}
	return -1
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

// ErrStopped is the cause of a refusal that no right changes: of a stop.
var ErrStopped = errors.New("access: changes are stopped")

// Refuses returns fault.Forbidden, with the reason, if a caller of the kind may
// change nothing now. Reading goes on.
func (s Stop) Refuses(kind Kind) error {
	switch {
	case !s.On():
		return nil
	case kind == APIKey || kind == Connection:
		return fault.New(fault.Forbidden, "automation is stopped: %s. Reading goes on; an administrator can resume it in the portal, the "+
			"operator with muster company resume", s.Reason).Because(ErrStopped)
	case kind == User && s.All:
		return fault.New(fault.Forbidden, "changes are stopped, in the portal too: %s. Reading goes on; an administrator can ask to "+
			"resume, the operator resumes with muster company resume", s.Reason).Because(ErrStopped)
	}
	return nil
}

// OnOff is a switch in a word.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
