// Package event is the feed of what happened in a company, in order. An event is written in the
// transaction of the change, and gets its position after that transaction has committed.
package event

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Type says what happened, as "area.action".
type Type string

// The types.
const (
	DeviceEnrolled     Type = "device.enrolled"
	DeviceLostMode     Type = "device.lost_mode" // status ON or OFF
	DeviceSilent       Type = "device.silent"
	DeviceUnenrolled   Type = "device.unenrolled"
	CommandSucceeded   Type = "command.succeeded"
	CommandFailed      Type = "command.failed"
	CommandUnconfirmed Type = "command.unconfirmed"
	PolicyChanged      Type = "policy.changed"
	PolicyFailed       Type = "policy.failed"
	ProposalWaiting    Type = "proposal.waiting"
	ProposalApproved   Type = "proposal.approved"
	ProposalDeclined   Type = "proposal.declined"
	ProposalApplied    Type = "proposal.applied"
	ProposalEnded      Type = "proposal.ended" // status EXPIRED, FAILED or UNCONFIRMED
	LimitReached       Type = "limit.reached"
	AutomationStopped  Type = "automation.stopped"
	AutomationResumed  Type = "automation.resumed"
	ControlLoosening   Type = "control.loosening"
	KeyCreated         Type = "key.created"
	KeyExpiring        Type = "key.expiring"
	KeyRevoked         Type = "key.revoked"
	ConnectionCreated  Type = "connection.created"
	PlatformFailing    Type = "platform.failing"
)

// Kind describes a type.
type Kind struct {
	Type Type
	Text string // says when an event of this type is written; part of the API description
}

// Kinds lists every type.
func Kinds() []Kind {
	return []Kind{
		{DeviceEnrolled, "A device enrolled, for the first time or again, or moved to its asset in a merge."},
		{DeviceLostMode, "A device's lost mode began (status ON) or ended (status OFF)."},
		{DeviceSilent, "A device became INACTIVE: it was silent for the company's inactivity period. Once for each silence."},
		{DeviceUnenrolled, "The management of a device ended, or its asset was merged into another."},
		{CommandSucceeded, "A command succeeded."},
		{CommandFailed, "A command failed, or expired."},
		{CommandUnconfirmed, "The service does not know whether a command reached its device. A later event may have the outcome."},
		{PolicyChanged, "A new version of a policy was saved."},
		{PolicyFailed, "The platform refused a saved policy, or an apply failed."},
		{ProposalWaiting, "A proposal waits for a person's approval."},
		{ProposalApproved, "A person approved a proposal."},
		{ProposalDeclined, "A person declined a proposal."},
		{ProposalApplied, "A proposal was applied."},
		{ProposalEnded, "A proposal expired or failed, or its outcome is not known (status EXPIRED, FAILED or UNCONFIRMED)."},
		{LimitReached, "A call was refused because the limit on destructive commands, or on a key's devices a day, is reached."},
		{AutomationStopped, "Changes by API keys and connections were stopped."},
		{AutomationResumed, "The stop ended."},
		{ControlLoosening, "A change that loosens a control was asked for; it takes effect later, and can be canceled."},
		{KeyCreated, "An API key was created."},
		{KeyExpiring, "An API key expires within seven days. Once for each key."},
		{KeyRevoked, "An API key was revoked."},
		{ConnectionCreated, "A person connected a client over OAuth."},
		{PlatformFailing, "Calls of the platform have failed for five minutes. Once for each outage."},
	}
}

// Types lists every type.
func Types() (all []Type) {
	for _, k := range Kinds() {
		all = append(all, k.Type)
	}
	return all
}

// Known reports whether there is such a type.
func (t Type) Known() bool { return slices.Contains(Types(), t) }

// Area is the part of the type before the dot. The rights to read an event depend on it.
func (t Type) Area() string { area, _, _ := strings.Cut(string(t), "."); return area }

// Event is something that happened. Fields that do not apply are empty.
type Event struct {
	ID         string
	CompanyID  string
	Type       Type
	At         time.Time
	AssetID    string
	PolicyID   string // the policy of the event, or the one that the device had
	ProposalID string
	Command    string // its type, such as LOCK
	Status     string
	RequestID  string // of the call that caused the event; empty: the service itself did
	Owner      string // of a proposal, as OwnerOf returns it
	Position   int64  // in the company's history
}

// Status of lost mode.
const (
	On  = "ON"
	Off = "OFF"
)

// ExpiresSoon is how long before its expiry a key gets the event KeyExpiring.
const ExpiresSoon = 7 * 24 * time.Hour

// OwnerOf identifies who made a proposal. For an OAuth connection it includes the user, for other kinds not.
func OwnerOf(kind access.Kind, id, userID string) string {
	if kind != access.Connection {
		userID = ""
	}
	return string(kind) + ":" + id + ":" + userID
}

// View is an event as callers see it.
type View struct {
	ID   string    `json:"id" doc:"Identifies the event: the same wherever it is delivered, and however often."`
	Type Type      `json:"type" doc:"What happened."`
	At   time.Time `json:"at" doc:"When, by the service's clock."`
	Data Data      `json:"data"`
}

// Data is what an event is about. What does not apply is left out.
type Data struct {
	AssetID    string `json:"assetId,omitempty" doc:"The asset, as a pathName."`
	PolicyID   string `json:"policyId,omitempty" doc:"The policy that the event is about, or that the device had, as a pathName."`
	ProposalID string `json:"proposalId,omitempty" doc:"The proposal."`
	Type       string `json:"type,omitempty" doc:"Of a command: its type, such as LOCK."`
	Status     string `json:"status,omitempty" doc:"Of a command: its status. Of lost mode: ON or OFF. Of a proposal that ended: EXPIRED, FAILED or UNCONFIRMED."`
	RequestID  string `json:"requestId,omitempty" doc:"X-Request-Id of the call that caused it. What the service does by itself has none."`
}
