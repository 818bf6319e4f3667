// Package outcome names how an attempt to change something outside the service ended:
// one call of the platform, one push, one command, one policy.
package outcome

// Code is how an attempt ended. Only Unknown and Broken leave its effect open.
type Code string

// The codes.
const (
	// Accepted: it was taken; what the device makes of it comes later.
	Accepted Code = "accepted"
	// Done: carried out already, nothing more will come.
	Done Code = "done"
	// NotSent: it failed before anything left the service.
	NotSent Code = "not_sent"
	// Unknown: it may have been sent, and may have taken effect.
	Unknown Code = "unknown"
	// Refused: it was evaluated and refused for what was asked.
	Refused Code = "refused"
	// Gone: the device is no longer managed.
	Gone Code = "gone"
	// Unreachable: there is no way to this device, such as no valid push token.
	Unreachable Code = "unreachable"
	// Missing: the other side does not know what the call is about.
	Missing Code = "missing"
	// Throttled: the other side's quota is used up.
	Throttled Code = "throttled"
	// Conflict: something else changes the same thing.
	Conflict Code = "conflict"
	// Denied: this service may not do it: credentials, permissions, a wrong address.
	Denied Code = "denied"
	// Broken: an unexpected error on this side while it was attempted.
	Broken Code = "broken"
)

// Codes returns every code.
func Codes() []Code {
	return []Code{Accepted, Done, NotSent, Unknown, Refused, Gone, Unreachable, Missing, Throttled, Conflict, Denied, Broken}
}

// Rejected reports whether the other side took nothing, for a reason that is not
// in what was asked.
func (c Code) Rejected() bool { return c.Passing() || c == Denied }

// Passing reports whether the same attempt may succeed after a while.
func (c Code) Passing() bool { return c == Missing || c == Throttled || c == Conflict }
