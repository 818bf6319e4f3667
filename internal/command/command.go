// Package command sends commands to devices and keeps their history
// (contract 2.2, 2.3, 3.3, 4.2, 7.1).
//
// A command's intent is committed before anything is sent. What happens then
// is a Receipt of the device's Channel, and one compare-and-set in the store
// per step; see State for the machine. Nothing is ever sent twice: a command
// of which it is not known whether it was sent is UNCONFIRMED.
package command

import (
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/authorization"
)

// State is where a command stands in the store.
//
//	(none) ──begin──► PREPARED ──accepted──► SENT ──device's word──► SUCCESS | ERROR
//	                     │  │                                            ▲
//	                     │  └──refused, not sent, done at once───────────┤
//	                     └──outcome unknown, crash──► UNCONFIRMED ──late─┘
//
// A command whose delivery is kept in the store begins as SENT or SUCCESS, in
// the same commit.
// SUCCESS and ERROR are final.
type State string

// The states.
const (
	Prepared    State = "PREPARED" // the intent is durable; whether it was sent is not yet known
	Sent        State = "SENT"     // the channel accepted it
	Unconfirmed State = "UNCONFIRMED"
	Succeeded   State = "SUCCESS"
	Failed      State = "ERROR"
)

// Status is the state as the contract speaks of it (contract 2.2, 2.3).
func (s State) Status() string {
	if s == Prepared || s == Sent {
		return "IN_PROGRESS"
	}
	return string(s)
}

// Final reports whether the state never changes again.
func (s State) Final() bool { return s == Succeeded || s == Failed }

// Actor is who sent a command: kept in the store, never in the API's history
// (contract 1.6).
type Actor struct {
	Kind   access.Kind
	ID     string
	Prefix string // of a key
	Name   string
}

// Command is one command to one device.
type Command struct {
	ID        string
	CompanyID string
	AssetID   string
	Epoch     int // the device's enrollment that it belongs to
	Type      Type
	State     State
	CreatedAt time.Time
	// FeedbackAt is the time of the device's own word; zero: none yet.
	FeedbackAt time.Time
	Outcome    string // a short text for people; empty: none yet
	Actor      Actor
	// Ref is the channel's name of the command, such as the platform's
	// operation; empty until the channel accepted it.
	Ref string
	// Deadline is when the channel gives up; zero: never.
	Deadline time.Time
	// PolicyID is the policy that CHANGE_POLICY moves the device to.
	PolicyID       string
	IdempotencyRef string
	Note           access.Note // why it was sent, in the caller's words
	// DevicesPerDay limits the key that sends it, while it begins; 0: no limit.
	DevicesPerDay int
	// Ask is what a person would have to authorize, while a command of a key or
	// connection begins; nil for one that never needs it.
	Ask *authorization.Ask
}
