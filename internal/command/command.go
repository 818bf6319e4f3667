// Package command sends commands to devices and keeps their history
// (contract 2.2, 2.3, 3.3, 4.2, 7.1).
//
// A command's intent is committed before anything is sent. What happens then
// is a Receipt of the device's Channel, and one compare-and-set in the store
// per step; see State for the machine. Nothing is ever sent twice: a command
// of which it is not known whether it was sent is UNCONFIRMED.
package command

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
)

// State is the state of a command in the store.
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

// Command is one command to one device.
type Command struct {
	ID        string
	CompanyID string
	AssetID   string
	AssetName string // what people call the asset, while the command begins; it is kept in the activity log
	Epoch     int    // the device's enrollment that it belongs to
	Type      Type
	State     State
	CreatedAt time.Time
	// FeedbackAt is the time of the device's own word; zero: none yet.
	FeedbackAt time.Time
	Outcome    string       // a short text for people; empty: none yet
	Actor      access.Actor // who sent it, without UserID; never in the history of the API (contract 1.6)
	// Ref is the channel's name of the command, such as the platform's
	// operation; empty until the channel accepted it.
	Ref string
	// Deadline is when the channel gives up; zero: never.
	Deadline time.Time
	// PolicyID is the policy that CHANGE_POLICY moves the device to.
	PolicyID       string
	IdempotencyRef string
	RequestID      string      // of the call that it came with
	Note           access.Note // why it was sent, in the caller's words
	// DevicesPerDay limits the key that sends it, while it begins; 0: no limit.
	DevicesPerDay int
	// Ask is what a person would have to authorize, while a command of a key or
	// connection begins; nil for one that never needs it.
	Ask *approval.Ask
}

// OfJob reports whether a job sends the command: its name is that of job.Ref, which no request can have.
func (c Command) OfJob() bool { return strings.HasPrefix(c.IdempotencyRef, "job:") }

// Channel carries commands to devices: the platform, the service for agents,
// push.
type Channel interface {
	// Prepare is asked before the intent is stored. A channel that keeps orders
	// in the service's own store until their devices fetch them returns the
	// delivery, and what it comes to once it is committed: intent, delivery and
	// outcome are one commit, and the store wakes the device. A receipt alone
	// says that nothing will be sent, and why; if its verdict is Unreachable, or
	// Throttled, no trace is kept. Nothing at all: the order goes by Send.
	Prepare(ctx context.Context, order Order) (*agentdevice.Delivery, *Receipt)
	// Send makes one attempt, without retries, to hand over an order whose
	// intent is durable. It never blocks longer than its own time limit, also
	// when ctx has none, and goes on when the caller has gone away.
	Send(ctx context.Context, order Order) Receipt
}

// Direct is embedded in channels that send every order themselves.
type Direct struct{}

// Prepare leaves the order to Send.
func (Direct) Prepare(context.Context, Order) (*agentdevice.Delivery, *Receipt) { return nil, nil }

// Order is all that a channel needs to carry out a command.
type Order struct {
	// Command is the intent as it is stored. Its Deadline, set from
	// Type.Lifetime, is what the channel must tell the device or the platform.
	Command Command
	AssetID string
	Device  asset.Device
	// Body is the command's own argument: nil, or one of the types of
	// arguments.go.
	Body any
}

// Receipt is the answer to an Order.
type Receipt struct {
	Code outcome.Code
	Ref  string // with Accepted: the channel's name of the command
	// Detail is for the caller: what happened and what to do.
	Detail string
	// Outcome is for the history; empty: Detail.
	Outcome string
	Cause   error // for the log
	// FeedbackAt is the time of the device's own word, with Done or Refused;
	// zero: the device itself has not spoken.
	FeedbackAt time.Time
}

// advice is what every command's description ends with.
const advice = " UNCONFIRMED: do not send it again; look at list_device_commands."

// Define declares the commands, the history and the logs (contract 4.2, 2.3, 4.7).
func Define(r *operation.Registry, s *Service) {
	for i := range catalog {
		row := &catalog[i]
		define := row.Arguments.define
		if define == nil {
			define = bare
		}
		define(r, s, row.operation(), row.Type)
	}
	defineHistory(r, s)
	defineLogs(r, s)
}

func (r *Row) operation() operation.Operation {
	o := operation.Operation{
		Name: r.Operation, Title: r.Title, Description: r.Description + advice,
		Method: "POST", Path: "/assets/{assetId}/commands/" + r.Segment,
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands,
		Budget: operation.AfterValidation, Dialect: operation.Commands, Effect: operation.Writing,
		Disruptive:  r.Disruptive || r.Irreversible,
		Faults:      []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable},
		Unconfirmed: true, Ahead: operation.AheadToOrder,
		Samples: r.samples(),
	}
	if r.Irreversible {
		o.Effect = operation.Destroying
	}
	if r.Early {
		o.Budget, o.Dialect = operation.BeforeValidation, operation.FirstFour
	}
	if r.Destructive {
		o.Needs, o.Gate = access.DevicesCommandDestructive|access.DevicesRead, access.DestructiveCommands
	}
	if r.NamesPolicy {
		o.Needs |= access.PoliciesRead
	}
	if r.Type == NotificationMessage { // contract 7.1: messages never return 502
		o.Faults = []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Unavailable}
	}
	return o
}

// samples are what the command answers for a device of the platform.
func (r *Row) samples() []any {
	c := Command{AssetID: "8k2v0r6m4q1x7t9c3w5y2n8b6d", Type: r.Type, State: Sent,
		CreatedAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)}
	return []any{resultOf(c, "acme", asset.Platform), unconfirmedOf(c, "acme", asset.Platform, "")}
}

// arguments are a command's body: how it is declared, and what a form asks for.
type arguments struct {
	define func(*operation.Registry, executor, operation.Operation, Type)
	Inputs []operation.Input
}

// executor is the Service, as the catalog needs it. It is an interface because the Service's
// methods read the catalog: with their names in it, it could not be initialized.
type executor interface {
	// Execute carries out a command. Its errors are a refusal (a fault), or that it is not
	// known whether anything was committed (operation.ErrDoubt).
	Execute(ctx context.Context, call operation.Call, r Request) (Result, error)
	// Foresee says what Execute would do. Its error is Execute's refusal; any other means that
	// it could not be found out.
	Foresee(ctx context.Context, call operation.Call, r Request) (operation.Forecast, error)
}

// bare defines a command without a body.
func bare(r *operation.Registry, s executor, o operation.Operation, t Type) {
	define(r, s, o, func(a asset.Target) Request { return Request{Type: t, AssetID: a.AssetID} })
}

// with are the arguments of a command with a body.
func with[A interface{ Asset() string }](body func(A) any) arguments {
	return arguments{
		Inputs: operation.Inputs[A](),
		define: func(r *operation.Registry, s executor, o operation.Operation, t Type) {
			define(r, s, o, func(a A) Request { return Request{Type: t, AssetID: a.Asset(), Body: body(a)} })
		},
	}
}

func define[A any](r *operation.Registry, s executor, o operation.Operation, request func(A) Request) {
	operation.DefineExplained(r, o, func(ctx context.Context, call operation.Call, a A) (Result, error) {
		return s.Execute(ctx, call, request(a))
	}, func(ctx context.Context, call operation.Call, a A) (operation.Forecast, error) {
		return s.Foresee(ctx, call, request(a))
	})
}

// Sentence is an entry of the activity log for people, with the words of the commands.
func Sentence(e activity.Entry) activity.Sentence {
	return e.Tell(func(commandType string) (past, base, noun string) {
		row := Type(commandType).Row()
		return row.Past, row.Base, row.Noun
	})
}
