package access

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// LoosenAfter is how long a change waits that loosens a control, unless a second
// administrator confirms it.
const LoosenAfter = 24 * time.Hour

// ControlName names one of the controls that wait when they are loosened.
type ControlName string

// The names, as the settings have them.
const (
	ApplyApprovalControl       ControlName = "applyApproval"
	SecondPersonControl        ControlName = "secondPerson"
	ApproverAgeControl         ControlName = "approverAge"
	DestructiveApprovalControl ControlName = "destructiveApproval"
	DestructiveLimitControl    ControlName = "destructiveLimit"
	StopControl                ControlName = "stop"
	KeepActivityControl        ControlName = "keepActivity"
)

// Title names a control for people.
func (n ControlName) Title() string {
	titles := map[ControlName]string{
		DestructiveLimitControl:    "Limit of destructive commands",
		ApproverAgeControl:         "Minimum age of a second administrator",
		StopControl:                "Stop",
		ApplyApprovalControl:       "Approval of policy changes",
		SecondPersonControl:        "Second person",
		DestructiveApprovalControl: "Authorization of destructive commands",
		KeepActivityControl:        "How long activity is kept",
	}
	return cmp.Or(titles[n], string(n))
}

// ValueText is a value of the control for people.
func (n ControlName) ValueText(text string) string {
	switch n {
	case ApplyApprovalControl:
		return wordOf(map[string]string{"OFF": "none", string(ApproveRisky): "risky changes", string(ApproveAll): "all changes"}, text)
	case StopControl:
		return wordOf(map[string]string{"OFF": "no stop", "ON": "API keys and AI clients stopped",
			"ALL": "API keys, AI clients and the portal stopped"}, text)
	case SecondPersonControl, DestructiveApprovalControl:
		return wordOf(map[string]string{"OFF": "off", "ON": "on"}, text)
	case DestructiveLimitControl:
		if l, err := ParseDestructiveLimit(text); err == nil {
			return l.Words()
		}
	case ApproverAgeControl, KeepActivityControl:
		return durationText(n, text)
	}
	return text
}

// Wanted says what the change would do: change a control to a value, or resume changes.
func (l Loosening) Wanted() string {
	if l.Control == StopControl { // a stop can only be ended: see SetControl
		return "resume changes"
	}
	return "change “" + l.Control.Title() + "” to " + l.Control.ValueText(l.After)
}

func wordOf(words map[string]string, text string) string { return cmp.Or(words[text], text) }

// durationText is how long something is, in the unit in which it is set.
func durationText(n ControlName, text string) string {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return text
	case n == KeepActivityControl:
		return strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) + " days"
	}
	return strconv.FormatFloat(d.Hours(), 'f', -1, 64) + " hours"
}

// ControlNames lists all of them.
func ControlNames() []ControlName {
	return []ControlName{ApplyApprovalControl, SecondPersonControl, ApproverAgeControl, DestructiveApprovalControl, DestructiveLimitControl,
		StopControl, KeepActivityControl}
}

// Control is the value of a control as text.
func (s Settings) Control(name ControlName) string {
	c := s.Controls
	switch name {
	case ApplyApprovalControl:
		return string(c.ApplyApproval)
	case SecondPersonControl:
		return strings.ToUpper(OnOff(c.SecondPerson))
	case ApproverAgeControl:
		return c.ApproverAge.String()
	case DestructiveApprovalControl:
		return strings.ToUpper(OnOff(c.DestructiveApproval))
	case DestructiveLimitControl:
		return c.DestructiveLimit.String()
	case StopControl:
		if !s.Stop.On() {
			return "OFF"
		}
		if s.Stop.All {
			return "ALL"
		}
		return "ON"
	case KeepActivityControl:
		return s.KeepActivity.String()
	}
	return ""
}

// SetControl sets a control to what Control wrote. A stop can only be ended so.
func (s *Settings) SetControl(name ControlName, text string) (err error) {
	c := &s.Controls
	switch name {
	case ApplyApprovalControl:
		c.ApplyApproval = ApprovalRule(text)
	case SecondPersonControl:
		c.SecondPerson = text == "ON"
	case ApproverAgeControl:
		c.ApproverAge, err = time.ParseDuration(text)
	case DestructiveApprovalControl:
		c.DestructiveApproval = text == "ON"
	case DestructiveLimitControl:
		c.DestructiveLimit, err = ParseDestructiveLimit(text)
	case StopControl:
		if text != "OFF" {
			return fmt.Errorf("a stop cannot become %s", text)
		}
		s.Stop = Stop{}
	case KeepActivityControl:
		s.KeepActivity, err = time.ParseDuration(text)
	default:
		err = fmt.Errorf("there is no control %s", name)
	}
	return err
}

// Loosens reports whether the control allows more after the change than before.
func Loosens(name ControlName, before, after Settings) bool {
	b, a := before.Controls, after.Controls
	switch name {
	case ApplyApprovalControl:
		return known(ApprovalRules(), a.ApplyApproval) < known(ApprovalRules(), b.ApplyApproval)
	case SecondPersonControl:
		return b.SecondPerson && !a.SecondPerson
	case ApproverAgeControl:
		return a.ApproverAge < b.ApproverAge
	case DestructiveApprovalControl:
		return b.DestructiveApproval && !a.DestructiveApproval
	case DestructiveLimitControl:
		return !a.DestructiveLimit.Within(b.DestructiveLimit)
	case StopControl:
		return before.Stop.On() && !after.Stop.On() || before.Stop.All && !after.Stop.All
	case KeepActivityControl: // what is deleted can no longer be looked at
		return after.KeepActivity < before.KeepActivity
	}
	return true
}

// Loosening is a change that waits.
type Loosening struct {
	ID          string
	CompanyID   string
	Control     ControlName
	Before      string // when it was asked for
	After       string
	AskedBy     Actor
	AskedAt     time.Time
	EffectiveAt time.Time
}

// MayTakeEffect returns fault.Refused for a loosening that does not take effect
// while the company is stopped.
func (l Loosening) MayTakeEffect(s Settings) error {
	if s.Stop.On() && l.Control != StopControl {
		return fault.New(fault.Refused, "the company is stopped: until it is resumed, nothing that loosens a control takes effect")
	}
	return nil
}

// Keep sets a control to what it is in other settings.
func (s *Settings) Keep(name ControlName, other Settings) {
	if name == StopControl {
		s.Stop = other.Stop
		return
	}
	_ = s.SetControl(name, other.Control(name)) // a value that was written by Control can be read
}
