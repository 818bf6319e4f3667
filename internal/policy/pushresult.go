package policy

// PushOutcome is the result of one attempt to bring the platform's copy of a
// policy up to date.
type PushOutcome string

// The outcomes. Only PushUnknown leaves open what the platform now holds; the
// pusher brings both copies together later.
const (
	PushDone    PushOutcome = "PUSHED"   // the platform holds the version
	PushRefused PushOutcome = "REFUSED"  // the platform evaluated and refused it; its copy is as it was
	PushNotSent PushOutcome = "NOT_SENT" // nothing changed: nothing was sent, or the platform was busy or denied access
	PushUnknown PushOutcome = "UNKNOWN"  // it may have taken effect
)

// PushResult is an attempt's outcome.
type PushResult struct {
	Outcome PushOutcome
	Detail  string // for people: why, unless it was pushed
	Cause   error  // for the log
}
