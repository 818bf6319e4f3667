// Package fault is the one error value that crosses the borders of the domain.
//
// Domain code says what is wrong, where, and what to do about it; each surface
// decides how that looks on its wire. An error that is not a *Error is
// unexpected: From turns it into an Internal whose cause goes to the log and
// never to a caller.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Code is a stable identifier of a kind of error, as the contract lists them
// (contract 7.2 to 7.5).
type Code string

// The codes that an operation may end in.
const (
	InvalidArguments     Code = "invalid_arguments"
	Unauthorized         Code = "unauthorized"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	Unsupported          Code = "unsupported"
	NotPending           Code = "not_pending"
	StaleProposal        Code = "stale_proposal"
	Refused              Code = "refused"
	ConfirmationRequired Code = "confirmation_required"
	RateLimited          Code = "rate_limited"
	Internal             Code = "internal_error"
	Provider             Code = "provider_error"
	Unavailable          Code = "unavailable"
	// InFlight: a request with the same Idempotency-Key is still running.
	InFlight Code = "idempotency_in_flight"
	// KeyReused: the Idempotency-Key was used with another body.
	KeyReused Code = "idempotency_key_reused"
	// CursorExpired: what comes after the cursor is not known; Error.Oldest is one that works.
	CursorExpired Code = "cursor_expired"
)

// Field names one argument and what is wrong with it.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Wrong collects every field that breaks a rule. The zero value is ready.
type Wrong struct{ fields []Field }

// Must notes the field, with what it must be, unless it is that.
func (w *Wrong) Must(kept bool, field, message string) {
	if !kept {
		w.fields = append(w.fields, Field{field, message})
	}
}

// Err is Invalid for the fields, in words that begin with what is given; nil: there are none.
func (w *Wrong) Err(begins string) error {
	if len(w.fields) == 0 {
		return nil
	}
	return Invalid(begins+w.fields[0].Field+" "+w.fields[0].Message, w.fields...)
}

// Review is what a person who has to confirm a change sees of it.
type Review struct {
	Impact               string `json:"impact"`
	RequiresConfirmation bool   `json:"requiresConfirmation"`
	Summary              string `json:"summary"`
}

// Approval says where a person can allow what was refused.
type Approval struct {
	Required bool   `json:"approvalRequired,omitempty"` // of a proposal
	URL      string `json:"approvalUrl,omitempty"`
	// Declined, if not nil: a person has declined it.
	Declined *Declined `json:"-"`
}

// Declined is who declined a call, when, and why in their words.
type Declined struct {
	By, Reason string
	At         time.Time
}

// Error is what an operation may fail with.
type Error struct {
	Code   Code
	Detail string  // for the caller: plain words, never internals, never a secret
	Fields []Field // for InvalidArguments: every argument at fault

	Retryable  bool          // whether the same request may be sent again
	RetryAfter time.Duration // with RateLimited: until the window resets
	Malformed  bool          // with InvalidArguments: not one JSON object, or an unknown member (contract 7.4)

	Review *Review // with ConfirmationRequired: what the person has to see
	// Approval, if not nil: the same call may succeed once a person has allowed it.
	Approval *Approval

	Oldest string // with CursorExpired: the cursor to go on with

	Err error // the cause, for the log only
}

// Error implements error. It is for logs; callers are shown Detail.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MayRetry reports whether the same call may be made again: fixed for some codes,
// else for the error to say.
func (e *Error) MayRetry() bool {
	switch e.Code {
	case RateLimited, Unavailable:
		return true
	case Internal:
		return false
	default:
		return e.Retryable
	}
}

// New makes an error of a code that is not retryable.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid makes an InvalidArguments error for the fields at fault.
func Invalid(detail string, fields ...Field) *Error {
	return &Error{Code: InvalidArguments, Detail: detail, Fields: fields}
}

// InvalidField makes an InvalidArguments error for one field, whose message follows its name.
func InvalidField(field, message string) *Error {
	return Invalid(field+" "+message, Field{Field: field, Message: message})
}

// Limited makes a RateLimited error; after is rounded up to whole seconds, at
// least one, where it is printed.
func Limited(after time.Duration, format string, args ...any) *Error {
	return &Error{Code: RateLimited, Detail: fmt.Sprintf(format, args...), RetryAfter: after, Retryable: true}
}

// Because returns a copy that carries cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

// From returns err's *Error, or an Internal that hides err from the caller.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Detail: "an unexpected error occurred", Err: err}
}

// CodeOf returns err's code: "" for nil, Internal for anything unexpected.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return From(err).Code
}

// Rescue, when it is deferred, hands a panic to fail as an unexpected error with the
// stack. A panic with one of the errors in passing goes on: it is no failure, but the
// way to end something early.
//
// It is deferred where a failure becomes an answer: in the kernel, which REST, MCP and
// the portal share, and around what these do beside the kernel. There is one more
// recover on the way of a command: where the command is sent, because only there it is
// known that its effect is not.
func Rescue(fail func(error), passing ...error) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && slices.Contains(passing, err) {
		panic(cause)
	}
	fail(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
}
