package access

import (
	"time"

	"github.com/musterhq/muster/internal/fault"
)

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

// Refuses returns fault.Forbidden, with the reason, if a caller of the kind may
// change nothing now. Reading goes on.
func (s Stop) Refuses(kind Kind) error {
	switch {
	case !s.On():
		return nil
	case kind == APIKey || kind == Connection:
		return fault.New(fault.Forbidden, "automation is stopped: %s. Reading goes on; an administrator can resume it in the portal, the operator with muster company resume", s.Reason)
	case kind == User && s.All:
		return fault.New(fault.Forbidden, "changes are stopped, in the portal too: %s. Reading goes on; an administrator can ask to resume, the operator resumes with muster company resume", s.Reason)
	}
	return nil
}
