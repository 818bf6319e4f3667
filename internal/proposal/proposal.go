// Package proposal changes the policies of the platform in two steps, with a
// person in between: a change is proposed, its exact list is looked at, and
// then that list, and nothing else, is applied (contract 2.6, 3.2, 4.3, 7.3).
//
// A proposal keeps the document that it makes of the policy, and the list of
// what differs, as they were when it was made. Applying saves these bytes, if
// the policy still is at the version that they were made from.
//
// # Order
//
// Applying holds the policy's lease while it sends the document to the platform
// and until the outcome is saved. So no two documents of a policy can reach the
// platform out of order. While a proposal is EXECUTING the policy cannot be saved
// otherwise, so its version does not change between the check and the save. See Status for the
// states, and ADR 8 for why the platform comes before the save.
package proposal

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// Lifetime is how long a proposal can be applied (contract 8).
const Lifetime = 10 * time.Minute

// HighImpactDevices is the number of devices from which every change of a
// policy has high impact (contract 4.3, 8).
const HighImpactDevices = 50

// Status is the state of a proposal (contract 3.2).
//
//	(none) ──propose──► PENDING ──claim──► EXECUTING ──┬─saved──► SUCCEEDED
//	                     │   │                         ├─refused, not sent──► FAILED
//	                     │   │                         └─outcome unknown──► UNCONFIRMED
//	                     │   └─stale, cannot be done──► FAILED
//	                     └─ten minutes──► EXPIRED
//
// Every step is one compare-and-set in the store. The four on the right and
// EXPIRED are final.
type Status string

// The states. EXPIRED is not stored: it is what PENDING reads as when its time
// is over by the database's clock, or its maker can never call again.
const (
	Pending     Status = "PENDING"
	Executing   Status = "EXECUTING"
	Succeeded   Status = "SUCCEEDED"
	Failed      Status = "FAILED"
	Unconfirmed Status = "UNCONFIRMED"
	Expired     Status = "EXPIRED"
)

// Final reports whether the state never changes again.
func (s Status) Final() bool { return s != Pending && s != Executing }

// Capability is what a proposal does (contract 2.6).
type Capability string

// The capabilities.
const (
	UpdateSettings Capability = "update_policy_settings"
	CreatePolicy   Capability = "create_policy"
	RollBack       Capability = "rollback_policy"
)

// Origin is how the revision that the capability saves came about.
func (c Capability) Origin() policy.Origin {
	switch c {
	case CreatePolicy:
		return policy.FromCreate
	case RollBack:
		return policy.FromRollback
	default:
		return policy.FromProposal
	}
}

// Impact says whether applying needs the policy's name to be typed.
type Impact string

// The impacts.
const (
	Normal Impact = "NORMAL"
	High   Impact = "HIGH"
)

// ownedBy reports whether a caller made the proposal: the owner alone can apply it, and over
// the network the owner alone can read it (contract 5.6).
func (p Proposal) ownedBy(who access.Principal) bool {
	return p.Owner.Kind == who.Kind && p.Owner.ID == who.ID && p.Owner.UserID == who.UserID
}

// Field is one entry of the change list (contract 2.6).
type Field struct {
	Label         string `json:"label" doc:"Name of the setting." example:"Camera"`
	Value         string `json:"value" doc:"Value that it gets; NOT_SET and CUSTOM occur in rollbacks." example:"BLOCK"`
	PreviousValue string `json:"previousValue" doc:"Value that it has now." example:"ALLOW"`
}

// Request is what was asked for, so that another person can ask for the same.
type Request struct {
	Changes     []policy.Change `json:"changes,omitempty"`
	DisplayName string          `json:"displayName,omitempty"`
	Revision    int             `json:"revision,omitempty"`
}

// Next is the policy as applying makes it: the reviewed bytes.
type Next struct {
	PolicyID string // of a copy: the new policy's
	Name     string
	Document json.RawMessage
}

// Proposal is a reviewed change of a policy.
type Proposal struct {
	ID          string
	CompanyID   string
	CompanySlug string
	Capability  Capability
	Status      Status
	Impact      Impact
	Title       string
	Summary     string // Form with the number of devices
	Form        string
	Devices     int  // that use the policy: now while it is PENDING, later when it was claimed
	Moving      int  // that an open command moves to the policy: they count for the impact; 0 while the rule is OFF
	Rose        bool // the impact is higher than it is kept
	Fields      []Field
	Warnings    []string // what it can do to devices: erase data, cut them off
	Request     Request

	PolicyID    string // what it changes; of a copy: the source
	TargetName  string // the policy's name when proposed; of a copy: the new name
	BaseVersion int    // of PolicyID, when proposed
	Next        Next
	Renames     bool // Next.Name is not a name that the policy has already

	Owner     access.Actor // without Prefix
	Note      access.Note  // why it was proposed, in the caller's words
	CreatedAt time.Time
	ExpiresAt time.Time

	// How it ended.
	Version int        // of Next.PolicyID, when SUCCEEDED
	Failure fault.Code // when FAILED: what apply answered
	Outcome string     // for people: why it did not succeed; empty when its time is over

	// ProposeRef and ApplyRef are the idempotency references of the calls that
	// made it and that applied it.
	ProposeRef, ApplyRef string

	// Rule is the company's setting applyApproval now; Approval is what a person
	// decided under it.
	Rule     access.ApprovalRule
	Approval Approval
	SignedID string // of what that person signed
	Outdated bool   // its policy was saved since: it can never be applied

	// Looks is how often the platform's copy was looked at since the outcome
	// became doubtful.
	Looks int
}

// Creates reports whether applying makes a new policy.
func (p Proposal) Creates() bool { return p.Capability == CreatePolicy }

// At returns the proposal as it is when a number of devices uses its policy, and
// Moving ones are on their way to it. Impact rises with the devices and never falls.
func (p Proposal) At(devices int) Proposal {
	p.Devices, p.Summary = devices, summarize(p.Form, devices, p.Moving)
	high := slices.ContainsFunc(p.Fields, func(f Field) bool { return policy.HighImpact(f.Label) })
	if ImpactOf(p.Capability, devices+p.Moving, high) == High {
		p.Impact = High
	}
	return p
}

// NeedsConfirmation reports whether the policy's name must be typed to apply.
func (p Proposal) NeedsConfirmation() bool { return p.Impact == High }
