package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Forecast is what a call would do, if it were made now.
type Forecast struct {
	Devices int      // that it would concern
	Effects []string // in plain words
	// Irreversible: what it would do cannot be undone.
	Irreversible bool
	Impact       string // of a change of a policy: NORMAL or HIGH; else empty
	// RequiresConfirmation: the policy's name has to be typed.
	RequiresConfirmation bool
	Approval             *Approval // what a person has to decide; nil: nothing
}

// Approval is a person's decision that a call needs.
type Approval struct {
	Required bool       `json:"required" doc:"Whether a person must decide before the call is carried out."`
	State    string     `json:"state" enum:"WAITING|APPROVED|DECLINED" doc:"WAITING until a person has decided."`
	URL      *string    `json:"url" doc:"Where a person decides; null until the call itself is made." example:"https://muster.example.com/approvals/prp_5h9j3f7p1s6z4g8a2e0k7m9q3v"`
	By       *string    `json:"by" doc:"Who decided; null until then." example:"Ada Example"`
	At       *Timestamp `json:"at" doc:"When; null until then."`
	Reason   *string    `json:"reason,omitempty" doc:"Why it was declined, in that person's words; only where they gave a reason." example:"Not before the holidays."`
}

// Assessment is what a call would be answered now, and what it would do.
type Assessment struct {
	// Fault is the refusal; nil: the call would be accepted, as far as that does not
	// depend on the vendor.
	Fault *fault.Error
	// Forecast is nil where nothing may be said of the call's target: it is not found,
	// or the caller lacks a permission; and where the arguments cannot be read.
	Forecast *Forecast
	// Budget is what is left of the caller's budget.
	Budget Allowance
}

// DefineExplained is Define for an operation that is more than a read. foresee says
// what the handler would do, and changes nothing. If the handler would refuse, it
// returns the handler's *fault.Error, and the forecast as far as it got.
func DefineExplained[A, R any](r *Registry, o Operation, handler func(context.Context, Call, A) (R, error), foresee func(context.Context,
	Call, A) (Forecast, error)) {
	o.foresee = func(ctx context.Context, call Call, args any) (Forecast, error) {
		return foresee(ctx, call, *args.(*A))
	}
	Define(r, o, handler)
}

// Assess decides about a call as Run does, by the same functions, and stops where
// Run would act: nothing is sent, changed or spent. The error is of an assessment
// that could not be made.
func (k *Kernel) Assess(ctx context.Context, o *Operation, p access.Principal, meta Meta, s Source) (Assessment, error) {
	var a Assessment
	var broken error
	if a.Budget, broken = k.left(ctx, p, nil); broken != nil {
		return a, broken
	}
	look := purse{
		spend: func(any) error {
			left := a.Budget
			if o.Budget == Apart {
				left, broken = k.left(ctx, p, o)
			}
			return refusal(left, left.Remaining > 0)
		},
		count: func() error { return k.reads.count(p.BudgetKey(), k.Now(), 0) },
	}
	args, err := o.admit(p, meta, s, look)
	if broken != nil {
		return a, broken
	}
	if a.Fault = asFault(err); err != nil && a.Fault == nil {
		return a, err
	}
	// A caller who has the rights is told of the target also if the call would be
	// refused for another reason.
	if access.Grant(p, o.Needs, access.NoGate) != nil {
		return a, nil
	}
	if args == nil {
		return a, nil // what cannot be read has no target
	}
	call := Call{Principal: p, RequestID: meta.RequestID, Note: meta.Note}
	forecast, err := o.forecast(ctx, call, args)
	refused := asFault(err)
	switch {
	case err != nil && refused == nil, refused != nil && refused.Code == fault.Internal:
		return a, err
	case a.Fault == nil:
		a.Fault = refused
	}
	if refused != nil && refused.Approval != nil && forecast.Approval == nil {
		forecast.Approval = &Approval{Required: true, State: "WAITING"}
		if refused.Approval.URL != "" {
			forecast.Approval.URL = &refused.Approval.URL
		}
		if d := refused.Approval.Declined; d != nil {
			forecast.Approval.State, forecast.Approval.By, forecast.Approval.At = "DECLINED", &d.By, TimestampOf(d.At)
			if d.Reason != "" {
				forecast.Approval.Reason = &d.Reason
			}
		}
	}
	if refused == nil || refused.Code != fault.NotFound {
		a.Forecast = &forecast
	}
	return a, nil
}

// forecast asks the operation; of a read, it is the read itself.
func (o *Operation) forecast(ctx context.Context, call Call, args any) (Forecast, error) {
	if o.foresee != nil {
		return o.foresee(ctx, call, args)
	}
	if o.Effect != Reading {
		return Forecast{}, fmt.Errorf("operation %s cannot be explained", o.Name)
	}
	_, err := o.run(ctx, call, args)
	return Forecast{Effects: []string{}}, err
}

// asFault is the fault in err, or nil.
func asFault(err error) *fault.Error {
	f, _ := errors.AsType[*fault.Error](err)
	return f
}
