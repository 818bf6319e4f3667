package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

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
		Budget: operation.AfterValidation, Dialect: operation.Commands, Effect: operation.Writing, Disruptive: r.Disruptive || r.Irreversible,
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
	c := Command{AssetID: "8k2v0r6m4q1x7t9c3w5y2n8b6d", Type: r.Type, State: Sent, CreatedAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)}
	return []any{resultOf(c, "acme", asset.Platform), unconfirmedOf(c, "acme", asset.Platform, "")}
}

// arguments are a command's body: how it is declared, and what a form asks for.
type arguments struct {
	define func(*operation.Registry, executor, operation.Operation, Type)
	Inputs []operation.Input
}

// executor is the Service, as the catalog needs it.
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
