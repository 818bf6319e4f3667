package command

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// maxText is the limit of an outcome or a detail that a channel supplied, in
// characters.
const maxText = 500

// label names an outcome for logs and metrics.
func label(c outcome.Code) string {
	if c.Rejected() {
		return "rejected"
	}
	return string(c)
}

// Outcomes lists everything that an Observer may learn of a command: what
// became of sending it, and how it ended.
func Outcomes() []string {
	return []string{"accepted", "done", "not_sent", "unknown", "gone", "unreachable", "refused", "rejected", "broken",
		"success", "error", "expired", "unconfirmed"}
}

// failed reports whether the outcome ends the command ERROR.
func failed(c outcome.Code) bool {
	switch c {
	case outcome.NotSent, outcome.Gone, outcome.Unreachable, outcome.Refused:
		return true
	default:
		return c.Rejected()
	}
}

// admissible returns the receipt as the contract allows it for the type, its
// texts fit to be shown.
func (r Receipt) admissible(t Type) Receipt {
	if !slices.Contains(outcome.Codes(), r.Code) {
		r.Code = outcome.Broken
	}
	if t == NotificationMessage && r.Code.Rejected() {
		r.Code = outcome.NotSent // contract 7.1: messages never return 502
	}
	r.Detail, r.Outcome = validate.Clean(r.Detail, maxText), validate.Clean(r.Outcome, maxText)
	return r
}

// step is the transition that the receipt means. A final word also settles a
// command that the sweeper has made UNCONFIRMED.
func (r Receipt) step(t Type) Transition {
	said := cmp.Or(r.Outcome, r.Detail)
	final := []State{Prepared, Unconfirmed}
	switch r.Code {
	case outcome.Accepted:
		if t == NotificationMessage {
			return Transition{From: final, To: Succeeded, Ref: r.Ref, Outcome: cmp.Or(said, "accepted for delivery")}
		}
		return Transition{From: []State{Prepared}, To: Sent, Ref: r.Ref, Outcome: r.Outcome}
	case outcome.Done:
		return Transition{From: final, To: Succeeded, Ref: r.Ref, Outcome: said, Feedback: r.FeedbackAt}
	case outcome.NotSent:
		return Transition{From: final, To: Failed, Outcome: "not sent: " + cmp.Or(said, "failed inside the service")}
	case outcome.Gone:
		return Transition{From: final, To: Failed, Outcome: cmp.Or(said, "the device is no longer managed")}
	case outcome.Unreachable:
		return Transition{From: final, To: Failed, Outcome: cmp.Or(said, "the device cannot be reached")}
	case outcome.Refused:
		return Transition{From: final, To: Failed, Ref: r.Ref, Outcome: "refused: " + cmp.Or(said, "no reason was given"), Feedback: r.FeedbackAt}
	case outcome.Missing, outcome.Throttled, outcome.Conflict, outcome.Denied:
		return Transition{From: final, To: Failed, Outcome: "not sent: " + cmp.Or(said, "the platform rejected it")}
	case outcome.Unknown:
		return Transition{From: []State{Prepared}, To: Unconfirmed, Ref: r.Ref, Outcome: cmp.Or(said, "it is not known whether it was sent")}
	default:
		return Transition{From: []State{Prepared}, To: Unconfirmed, Ref: r.Ref, Outcome: cmp.Or(r.Outcome, "unexpected error; it is not known whether it was sent")}
	}
}

// fault is the error that the receipt is answered with (contract 7.1).
func (r Receipt) fault() error {
	f := func(code fault.Code, retryable bool, otherwise string) error {
		return (&fault.Error{Code: code, Retryable: retryable, Detail: cmp.Or(r.Detail, otherwise)}).Because(r.Cause)
	}
	switch r.Code {
	case outcome.NotSent:
		return f(fault.Unavailable, true, "the command was not sent: it failed inside the service; send it again")
	case outcome.Gone:
		return f(fault.Unsupported, false, "the platform reports that the device is no longer managed; the asset is now DELETED")
	case outcome.Unreachable:
		return f(fault.Unsupported, false, "the device cannot be reached")
	case outcome.Refused:
		return f(fault.Refused, false, "the command was refused for this device")
	case outcome.Missing, outcome.Throttled, outcome.Conflict:
		return f(fault.Provider, true, "the platform rejected the command for a passing reason: send it again after a short delay")
	case outcome.Denied:
		return f(fault.Provider, false, "the platform rejected the command because of the company's set-up: do not send it again, contact support")
	default:
		return (&fault.Error{Code: fault.Internal,
			Detail: "an unexpected error occurred, and it is not known whether the command reached the device: do not send it again at once, look at the asset and at the command history"}).Because(r.Cause)
	}
}

// Result is the command result object (contract 2.2).
type Result struct {
	AssetID   string               `json:"assetId" doc:"The device's asset id: its pathName."`
	Type      Type                 `json:"type" doc:"What was commanded."`
	Status    string               `json:"status" enum:"SUCCESS|IN_PROGRESS|UNCONFIRMED" doc:"SUCCESS, IN_PROGRESS until the device confirms, or UNCONFIRMED: the outcome is not known."`
	CreatedAt *operation.Timestamp `json:"createdAt,omitempty" doc:"When the command was accepted."`
	Detail    string               `json:"detail,omitempty" doc:"With UNCONFIRMED: what happened and what to do."`
}

// Unconfirmed implements operation.Uncertain: REST answers 202.
func (r Result) Unconfirmed() bool { return r.Status == Unconfirmed.Status() }

// resultOf is the result of a command that is not known to have failed.
func resultOf(c Command, slug string, m asset.Management) Result {
	r := Result{AssetID: resource.Of(slug, resource.Assets, c.AssetID), Type: c.Type, Status: c.State.Status()}
	if c.Type == NotificationMessage && c.State == Sent {
		r.Status = Succeeded.Status() // accepted for delivery is all that a message promises (contract 3.3)
	}
	if !c.Type.silentOn(m) {
		r.CreatedAt = operation.TimestampOf(c.CreatedAt)
	}
	return r
}

// unconfirmedOf is the result of a command whose outcome is unknown; detail,
// if not empty, says why and what to do.
func unconfirmedOf(c Command, slug string, m asset.Management, detail string) Result {
	c.State = Unconfirmed
	r := resultOf(c, slug, m)
	if !c.Type.Row().Early {
		r.CreatedAt = nil // contract 7.1, 202
	}
	r.Detail = cmp.Or(detail, notKnown("nothing confirmed it"))
	return r
}

// notKnown is the guidance of an unconfirmed command.
func notKnown(because string) string {
	return "it is not known whether the device will carry out the command: " + because +
		". Do not send it again: look at the command history, and ask the user before resending."
}

// silentOn reports whether success is answered without createdAt
// (contract 7.1). A device whose management is no longer known
// counts as the platform's.
func (t Type) silentOn(m asset.Management) bool {
	return m != asset.Agent && t.Row().Silent
}
