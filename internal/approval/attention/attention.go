// Package attention is what waits for a person of a company: decisions, and commands whose
// end a person has to look at. It is a state and not a message: an item goes once there is
// nothing left to do about it. The package is pure; internal/database finds the items.
package attention

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Kind is what sort of thing waits.
type Kind string

// The kinds, in the order of lists. Of the first three a person decides with a passkey.
const (
	Authorization Kind = "AUTHORIZATION" // a command or move of a key or connection
	Approval      Kind = "APPROVAL"      // a change of a policy
	Loosening     Kind = "LOOSENING"     // of a control
	Enrollment    Kind = "ENROLLMENT"    // a device asks to be enrolled again
	FailedWipe    Kind = "FAILED_WIPE"
	Unconfirmed   Kind = "UNCONFIRMED" // a command
	// UnconfirmedChange is a proposal of which it is not known whether it was applied.
	UnconfirmedChange Kind = "UNCONFIRMED_CHANGE"
	// PausedJob is one that the service paused.
	PausedJob Kind = "PAUSED_JOB"
	// StoppedWebhook is one that the service disabled.
	StoppedWebhook Kind = "WEBHOOK"
)

// Kinds lists them in the order of lists.
func Kinds() []Kind {
	return []Kind{Authorization, Approval, Loosening, Enrollment, FailedWipe, Unconfirmed, UnconfirmedChange, PausedJob, StoppedWebhook}
}

// ShownFor is how long a command or change that ended badly is listed. It goes before if the
// device gets another command of the type, or the policy is changed.
const ShownFor = 7 * 24 * time.Hour

// Limit is how many items of one kind a person is shown at most.
const Limit = 50

// Item is one thing that waits.
type Item struct {
	Kind    Kind
	ID      string // of the proposal, authorization, loosening, request, command, job or webhook
	AssetID string // of kinds about a device
	Name    string // of the device or policy, not trusted; the command of the job; or the host of the webhook
	Detail  string // the command's type, the proposal's title, the control, or why the job is paused or the webhook disabled
	Before  string // of a control
	After   string
	Caller  string // the name of who asked, or made the job; not trusted
	At      time.Time
	Until   time.Time // when it can no longer be decided, or takes effect; zero: it stays
	Matter  access.Matter
}

// Signed reports whether a person decides it with a passkey.
func (i Item) Signed() bool {
	return i.Kind == Authorization || i.Kind == Approval || i.Kind == Loosening
}

// Seen reports whether a person sees the item at all: its kind, and its policies.
func (i Item) Seen(by access.Approver) bool {
	sees := by.Permissions.Has(access.DevicesRead)
	switch i.Kind {
	case Loosening, StoppedWebhook:
		sees = by.Manages
	case Approval, UnconfirmedChange: // their pages are for those who may edit policies
		sees = by.Permissions.Has(i.Matter.Needs)
	default: // it is about devices
	}
	return sees && !i.elsewhere(by)
}

// Concerns reports whether a person sees it, has the rights to decide it, and did not ask for it.
// What makes a decision wait, such as a passkey that is missing or young, does not count.
func (i Item) Concerns(by access.Approver, c access.Controls) bool {
	m := i.Matter
	return !by.Disabled && i.Seen(by) && by.Permissions.Has(m.Needs) && (!m.Administers || by.Manages) &&
		!(i.Signed() && m.Second(c) && m.AskedBy == by.UserID)
}

// May reports whether a person can decide it now.
func (i Item) May(by access.Approver, c access.Controls, now time.Time) bool {
	return i.Concerns(by, c) && (!i.Signed() || by.May(i.Matter, c, now) == nil)
}

// elsewhere reports whether an item concerns a policy that a person may not see. A webhook gets the events of all policies.
// Of jobs, who is limited to policies sees their own.
func (i Item) elsewhere(by access.Approver) bool {
	foreign := func(id string) bool { return !slices.Contains(by.Policies, id) }
	return by.Policies != nil && (i.Kind == StoppedWebhook || i.Kind == PausedJob && by.UserID != i.Matter.AskedBy ||
		slices.ContainsFunc(i.Matter.Policies, foreign))
}

// Query asks for what waits in a company.
type Query struct {
	CompanyID string
	Policies  []string // nil: of all policies, else only about these
	Most      int      // items of one kind that are found at most; 0: Limit
	Rule      access.ApprovalRule
}

// Sort puts items into the order of lists: by kind, and the oldest first.
func Sort(items []Item) {
	rank := func(i Item) int { return slices.Index(Kinds(), i.Kind) }
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
}
