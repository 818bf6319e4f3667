package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Observer is informed what the kernel did, for metrics. It must be quick and safe
// for concurrent use.
type Observer interface {
	// Done is called once for each call; code is empty for a success.
	Done(o *Operation, code fault.Code, took time.Duration)
	// Limited is called for each call that was refused for its rate.
	Limited(o *Operation)
}

// Config is what a Kernel needs.
type Config struct {
	Limiter Limiter // the contract's budget (contract 8)
	// ReadsPerMinute is the ceiling of calls that spend no budget, for each
	// caller and on this replica; 0: none (contract 8).
	ReadsPerMinute int
	Observer       Observer     // may be nil
	Log            *slog.Logger // may be nil
	Now            func() time.Time
}

// Kernel runs operations. It is the one way in for every surface, so that
// rights, budget and rules are the same on all of them (contract 1.5).
type Kernel struct {
	limiter  Limiter
	reads    *ceiling
	usedUp   usedUp
	observer Observer
	log      *slog.Logger
	now      func() time.Time
}

// NewKernel returns a kernel.
func NewKernel(c Config) *Kernel {
	k := &Kernel{limiter: c.Limiter, observer: c.Observer, log: c.Log, now: c.Now}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if c.ReadsPerMinute > 0 {
		k.reads = &ceiling{limit: c.ReadsPerMinute, windows: map[string]window{}}
	}
	return k
}

// Meta is what a surface knows of a call beside its arguments.
type Meta struct {
	RequestID      string // empty: the kernel makes one where it needs one
	IdempotencyRef string
	// Wrong, if not nil, is what the surface found wrong with the request beside its
	// arguments. It is reported at the time of validation.
	Wrong *fault.Error
	// Note is what the caller says about the call, and ReasonField is what the surface
	// calls its reason.
	Note        access.Note
	ReasonField string
	// UsedUp, if not nil, refuses the call where it would spend its budget.
	UsedUp *Allowance
}

// Outcome is how a call ended.
type Outcome struct {
	Result any          // of the operation's result type, when Fault is nil
	Fault  *fault.Error // nil: success
	// Allowance is what is left of the caller's budget; nil where the call
	// ended before the budget.
	Allowance *Allowance
	// Reached reports whether the handler ran: only then may anything have happened.
	Reached bool
	// Replayed: the request ran before, and this is what became of it then.
	Replayed bool
}

// Run admits a call and runs it (contract 5.10). A zero principal is
// fault.Unauthorized.
func (k *Kernel) Run(ctx context.Context, o *Operation, p access.Principal, meta Meta, s Source) Outcome {
	start := k.now()
	ctx = access.WithActor(ctx, p.Actor(), meta.RequestID)
	if meta.Note != (access.Note{}) {
		ctx = access.WithNote(ctx, meta.Note)
	}
	var out Outcome
	result, err := k.admitAndRun(ctx, o, p, meta, s, &out)
	if err != nil && p.ID != "" && !out.Reached && out.Allowance == nil && o.Budget != Free {
		err = cmp.Or(k.Count(p), err) // a refused call that no budget counts
	}
	if err != nil {
		out.Fault = k.Explain(ctx, o, p, meta, err)
	} else {
		out.Result = result
	}
	if k.observer != nil {
		code := fault.Code("")
		if out.Fault != nil {
			code = out.Fault.Code
		}
		k.observer.Done(o, code, k.now().Sub(start))
		if code == fault.RateLimited && !out.Reached {
			k.observer.Limited(o)
		}
	}
	return out
}

func (k *Kernel) admitAndRun(ctx context.Context, o *Operation, p access.Principal, meta Meta, s Source, out *Outcome) (any, error) {
	if p.ID == "" {
		return nil, fault.New(fault.Unauthorized, "not signed in")
	}
	if err := k.spendBefore(ctx, o, p, meta, out); err != nil {
		return nil, err
	}
	if err := o.permits(p); err != nil {
		return nil, err
	}
	args, err := o.decode(s)
	if err == nil {
		err = meta.check(o, p)
	}
	if err != nil {
		return nil, err
	}
	if o.Budget == AfterValidation {
		if err := k.spend(ctx, o, p, meta, out); err != nil {
			return nil, err
		}
	}
	out.Reached = true
	call := Call{Principal: p, RequestID: meta.RequestID, IdempotencyRef: meta.IdempotencyRef, Note: meta.Note}
	return k.call(ctx, o, call, args)
}

// permits decides whether p may run the operation: the rights, the company's
// setting, and whether changes are stopped.
func (o *Operation) permits(p access.Principal) error {
	if err := access.Grant(p, o.Needs, o.Gate); err != nil || o.Effect == Reading {
		return err
	}
	return p.Settings.Stop.Refuses(p.Kind)
}

// spendBefore counts a call whose budget, or ceiling, comes before everything
// else. Of the four older commands only callers with DEVICES_COMMAND spend.
func (k *Kernel) spendBefore(ctx context.Context, o *Operation, p access.Principal, meta Meta, out *Outcome) error {
	switch {
	case o.Budget == Free:
		return k.Count(p)
	case o.Budget == BeforeValidation && p.Permissions.Has(access.DevicesCommand):
		return k.spend(ctx, o, p, meta, out)
	}
	return nil
}

// Count counts what spends no budget against the ceiling of reads: a read, a
// refused call, a message of a protocol that calls no operation. Above the
// ceiling it returns fault.RateLimited.
func (k *Kernel) Count(p access.Principal) error {
	if k.reads == nil {
		return nil
	}
	wait, ok := k.reads.count(p.BudgetKey(), k.now())
	if ok {
		return nil
	}
	return fault.Limited(wait, "more than %d reads and refused calls a minute: retry in %d s", k.reads.limit, Seconds(wait))
}

func (k *Kernel) spend(ctx context.Context, o *Operation, p access.Principal, meta Meta, out *Outcome) error {
	left := cmp.Or(meta.UsedUp, k.usedUp.find(p.BudgetKey(), k.now()))
	if left == nil {
		asked, err := k.limiter.Spend(ctx, p)
		if err != nil {
			return NotSent(o, err)
		}
		if left = &asked; !left.Spent {
			k.usedUp.note(p.BudgetKey(), *left, k.now())
		}
	}
	out.Allowance = left
	if !left.Spent {
		return fault.Limited(left.Reset, "more than %d calls in %d s: retry in %d s", left.Limit, Seconds(left.Window), Seconds(left.Reset))
	}
	return nil
}

// NotSent is the fault for a failure of our own before an operation began:
// fault.Unavailable where the operation knows it, so that the caller learns
// that nothing was delivered (contract 7.1, 503), else fault.Internal.
func NotSent(o *Operation, cause error) error {
	if slices.Contains(o.Faults, fault.Unavailable) {
		return &fault.Error{Code: fault.Unavailable, Retryable: true, Err: cause,
			Detail: "the service failed before anything was sent: it is safe to retry"}
	}
	return cause
}

// unread is NotSent for the unexpected error that kept a read from its data:
// there is nothing that it could have left half done.
func unread(o *Operation, err error) error {
	if _, known := errors.AsType[*fault.Error](err); err == nil || known || o.Effect != Reading {
		return err
	}
	return NotSent(o, err)
}

// call runs the handler; a panic is an unexpected error, not the end of the process.
func (k *Kernel) call(ctx context.Context, o *Operation, call Call, args any) (result any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	result, err = o.run(ctx, call, args)
	return result, unread(o, err)
}

// Explain makes err fit for the caller and writes what he may not see to the
// log, under an id that he is told.
func (k *Kernel) Explain(ctx context.Context, o *Operation, p access.Principal, meta Meta, err error) *fault.Error {
	e := fault.From(err)
	if e.Code != fault.Internal && e.Err == nil {
		return e
	}
	id := meta.RequestID
	if id == "" {
		id = resource.NewID()
	}
	level := slog.LevelWarn
	if e.Code == fault.Internal {
		level = slog.LevelError
		if ctx.Err() != nil {
			level = slog.LevelInfo // the caller has gone: that is why it failed
		}
		c := *e
		c.Detail += "; its id is " + id
		e = &c
	}
	k.log.LogAttrs(ctx, level, "operation failed", slog.String("operation", o.Name), slog.String("code", string(e.Code)),
		slog.String("request_id", id), slog.String("caller", p.BudgetKey()), slog.Any("error", err))
	return e
}

// Seconds rounds a wait up to whole seconds, at least one, as Retry-After has it.
func Seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
