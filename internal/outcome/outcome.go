// Package outcome names how an attempt to change something outside the service ended:
// one call of the platform, one push, one command, one policy.
package outcome

// Code is how an attempt ended. Only after Unknown and Broken is it not known whether the attempt had an effect.
type Code string

// The codes.
const (
	// Accepted: the other side accepted it; the device reports the result later.
	Accepted Code = "accepted"
	// Done: it is carried out; no result follows.
	Done Code = "done"
	// NotSent: it failed before anything left the service.
	NotSent Code = "not_sent"
	// Unknown: it may have been sent, and may have taken effect.
	Unknown Code = "unknown"
	// Refused: the other side evaluated the request and refused its content.
	Refused Code = "refused"
	// Gone: the device is no longer managed.
	Gone Code = "gone"
	// Unreachable: there is no way to this device, such as no valid push token.
	Unreachable Code = "unreachable"
	// Missing: the other side does not know the object of the call, such as the device or the policy.
	Missing Code = "missing"
	// Throttled: the other side's quota is used up.
	Throttled Code = "throttled"
	// Conflict: another call changes the same object at this moment.
	Conflict Code = "conflict"
	// Denied: this service may not do it: credentials, permissions, a wrong address.
	Denied Code = "denied"
	// Broken: an unexpected error in the service during the attempt.
	Broken Code = "broken"
)

// Codes returns every code.
func Codes() []Code {
	return []Code{Accepted, Done, NotSent, Unknown, Refused, Gone, Unreachable, Missing, Throttled, Conflict, Denied, Broken}
}

// Rejected reports whether the other side rejected the attempt for a reason other than its content: the codes of Passing,
// and Denied.
func (c Code) Rejected() bool { return c.Passing() || c == Denied }

// Passing reports whether the same attempt may succeed later without a change.
func (c Code) Passing() bool { return c == Missing || c == Throttled || c == Conflict }
