package policy

import "github.com/musterhq/muster/internal/outcome"

// PushResult is the result of one attempt to bring the platform's copy of a policy up to
// date: Done (the platform holds the version), Refused (it evaluated and refused it),
// NotSent (nothing changed: nothing was sent, or the platform was busy or denied access)
// or Unknown. After Unknown the reconciler brings both copies together.
type PushResult struct {
	Code   outcome.Code
	Detail string // for people: why, unless it was pushed
	Cause  error  // for the log
}
