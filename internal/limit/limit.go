// Package limit decides about the destructive commands that all callers of a
// company send together: at most so many distinct devices in any window.
package limit

import (
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// Reserve is how many devices more portal users with a passkey have, so that
// automation cannot use up what people need.
const Reserve = 5

// State is all that a decision depends on, as it is at one moment.
type State struct {
	Limit access.DestructiveLimit
	// Devices is how many distinct devices count in the window that ends now.
	Devices int
	// Counts: the device in question is one of them already.
	Counts bool
	// Reserved: the caller is a portal user with a passkey.
	Reserved bool
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

// Refusal is the error for a state that does not allow; wait is when it will.
func (s State) Refusal(wait time.Duration) *fault.Error {
	return fault.Limited(wait, "the company's limit of destructive commands is reached: %d devices in %d minutes, over all its callers; "+
		"retry in %d s, or ask an administrator of the company or the operator of the service to raise it",
		s.most(), int(s.Limit.Window.Minutes()), operation.Seconds(wait))
}
