// Package limit decides about the destructive commands that all callers of a
// company send together: at most so many distinct devices in any window.
package limit

import (
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
)

// Reserve is how many devices more portal users with an old enough passkey have, so that
// automation cannot use up what people need.
const Reserve = 5

// State is all that a decision depends on, as it is at one moment.
type State struct {
	Limit access.DestructiveLimit
	// Devices is how many distinct devices count in the window that ends now.
	Devices int
	// Counts: the device in question is one of them already.
	Counts bool
	// Managed: the device in question is the one that its asset has now.
	Managed bool
	// Reserved: the caller is a portal user with a passkey that is older than the
	// company's approverAge.
	Reserved bool
	// Frees is when so many devices have left the window that another has room, or,
	// while there is room, when the next one leaves it; 0: none counts.
	Frees time.Duration
}

// Allows reports whether the device may get a destructive command.
func (s State) Allows() bool { return s.Limit.Off() || s.Counts || s.Remaining() > 0 }

// Remaining is how many devices more may get one now; of no meaning where the
// limit is off.
func (s State) Remaining() int { return max(0, s.most()-s.Devices) }

// Over is how many of the devices that count must leave the window before
// another has room.
func (s State) Over() int { return s.Devices - s.most() + 1 }

func (s State) most() int {
	if s.Reserved {
		return s.Limit.Devices + Reserve
	}
	return s.Limit.Devices
}

// Refusal is the error for a state that does not allow.
func (s State) Refusal() *fault.Error {
	return fault.Limited(s.Frees,
		"the company's limit of destructive commands is reached: %s, over all its callers; "+
			"retry in %d s, or ask an administrator of the company or the operator of the service to raise it",
		access.DestructiveLimit{Devices: s.most(), Window: s.Limit.Window}.Words(), operation.Seconds(s.Frees))
}

// KeyState is what a key's number of devices a day depends on. The zero value is
// of a key without one.
type KeyState struct {
	PerDay int
	Others int // devices that got a command of the key in 24 hours, without the one in question
	Counts bool
	Frees  time.Duration // as in State
}

// Allows reports whether the device may get a command of the key.
func (s KeyState) Allows() bool { return s.PerDay == 0 || s.Counts || s.Others < s.PerDay }

// Refusal is the error for a state that does not allow.
func (s KeyState) Refusal() *fault.Error {
	return fault.Limited(s.Frees, "this key may send commands to %s in 24 hours, and has: retry in %d s, or ask an administrator of the "+
		"company to raise it", phrase.Count(s.PerDay, "device", "devices"), operation.Seconds(s.Frees))
}

// Admission is all that the last decision about a command depends on, after those
// about its caller, its arguments and its device.
type Admission struct {
	// Known: the command is there already, and is answered again.
	Known bool
	Key   KeyState
	// Company is nil unless the command is destructive.
	Company *State
}

// Decide returns why the command is not begun, or nil.
func (a Admission) Decide() *fault.Error {
	switch {
	case a.Known:
		return nil
	case !a.Key.Allows():
		return a.Key.Refusal()
	case a.Company != nil && !a.Company.Allows():
		return a.Company.Refusal()
	}
	return nil
}

// OfCompany reports whether it is the company's limit that refuses.
func (a Admission) OfCompany() bool {
	return !a.Known && a.Key.Allows() && a.Company != nil && !a.Company.Allows()
}
