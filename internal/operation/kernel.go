package operation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Config is what a Kernel needs.
type Config struct {
	Budgets Budgets // empty: every caller may make any number of calls
	// ReadsPerMinute is the ceiling of calls that spend no budget, for each
	// caller and on this replica; 0: none (contract 8).
	ReadsPerMinute int
	// Limited, if not nil, is called for each call that was refused for its rate, for
	// metrics. It must be quick and safe for concurrent use.
	Limited func(o *Operation)
	// Stands returns access.ErrMoved if the permit of the context is no longer valid; nil:
	// it is not asked. A call that fails before it records anything is decided once more
	// by what its caller may do now.
	Stands func(ctx context.Context) error
	Log    *slog.Logger // may be nil
	Now    func() time.Time
}

// Kernel runs operations. It is the one way in for every surface, so that
// rights, budget and rules are the same on all of them (contract 1.5).
type Kernel struct {
	Config
	reads  ceiling
	usedUp usedUp
}

// NewKernel returns a kernel.
func NewKernel(c Config) *Kernel {
	k := &Kernel{Config: c, reads: ceiling{limit: c.ReadsPerMinute}}
	if k.Log == nil {
		k.Log = slog.New(slog.DiscardHandler)
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
	// Again lets the caller in once more: it returns who they are now, or why they are
	// refused. Since is when they were let in. Nil: the context has a permit, or the
	// caller cannot be asked.
	Again func(context.Context) (access.Principal, error)
	Since time.Time
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
	ctx = access.WithActor(ctx, p.Actor(), meta.RequestID)
	if meta.Note != (access.Note{}) {
		ctx = access.WithNote(ctx, meta.Note)
	}
	var out Outcome
	var args, result any
	p, err := k.late(ctx, o, p, meta)
	if err == nil {
		args, err = o.admit(p, meta, s, purse{
			spend: func(args any) error {
				if o.Ahead == AheadToOrder && args != nil {
					ctx = access.Commands(ctx, p.CompanyID, o.assetOf(args))
				}
				return k.spend(ctx, o, p, meta, &out)
			},
			count: func() error { return k.Count(p) },
		})
	}
	if err == nil {
		result, err = k.carryOut(ctx, o, p, meta, args, &out)
	}
	if err != nil && p.ID != "" && !out.Reached && out.Allowance == nil && o.Budget != Free {
		err = cmp.Or(k.Count(p), err) // a refused call that no budget counts
	}
	if err != nil {
		out.Fault = k.Explain(ctx, o, p, meta, err)
	} else {
		out.Result = result
	}
	if k.Limited != nil && out.Fault != nil && out.Fault.Code == fault.RateLimited && !out.Reached {
		k.Limited(o)
	}
	return out
}

// carryOut runs a call that was admitted, under its caller's permit.
func (k *Kernel) carryOut(ctx context.Context, o *Operation, p access.Principal, meta Meta, args any, out *Outcome) (any, error) {
	out.Reached = true
	call := Call{Principal: p, RequestID: meta.RequestID, IdempotencyRef: meta.IdempotencyRef, Note: meta.Note,
		ReasonField: meta.ReasonField}
	permit := access.PermitOf(ctx)
	if permit == nil && p.Kind != access.System {
		permit = access.NewPermit(p, meta.Again)
		ctx = access.WithPermit(ctx, permit)
	}
	if permit == nil {
		return k.call(ctx, o, call, args)
	}
	moves := permit.Moves()
	result, err := k.call(ctx, o, call, args)
	// Commits go on without a caller who has gone, so what was not recorded by then will not be.
	gone := fault.CodeOf(err) == fault.Internal && errors.Is(err, context.Canceled)
	if gone && o.Effect != Reading && !permit.Used() {
		out.Reached = false // and nothing was recorded: a repetition runs as a new one
		return nil, NotSent(o, err)
	}
	if err != nil && o.Effect != Reading && k.Stands != nil && permit.Moves() == moves && !permit.Used() {
		_ = k.Stands(ctx) // moves the permit; where it cannot be read, the failure stands
	}
	if err == nil || permit.Moves() == moves {
		return result, err
	}
	out.Reached = permit.Used() // if not, nothing was recorded
	return k.runAgain(ctx, o, call, args, meta, permit, out)
}

// runAgain decides once more about a call whose caller's permit moved, and runs it by that
// decision, with its arguments as they were read. It spends and counts nothing. A call that
// has recorded something is not run twice.
func (k *Kernel) runAgain(ctx context.Context, o *Operation, call Call, args any, meta Meta, permit *access.Permit,
	out *Outcome) (any, error) {
	p, err := permit.Again(ctx)
	if fault.CodeOf(err) == fault.Internal {
		err = NotSent(o, err)
	}
	if err == nil {
		err = o.permits(p)
	}
	if err == nil {
		err = meta.check(o, p)
	}
	if err == nil && permit.Used() {
		err = errInPart
	}
	if err != nil {
		return nil, err
	}
	out.Reached, call.Principal = true, p
	moves := permit.Moves()
	result, err := k.call(access.WithActor(ctx, p.Actor(), ""), o, call, args)
	switch out.Reached = err == nil || permit.Moves() == moves || permit.Used(); {
	case err == nil || permit.Moves() == moves:
		return result, err
	case permit.Used():
		return nil, errInPart
	}
	return nil, access.ErrMoved
}

// errInPart is the error of a call that wrote, and may not write any more as it began.
var errInPart error = &fault.Error{Code: fault.Unavailable, Retryable: true,
	Detail: "what the caller may do changed while this was carried out, and a part of it may be done: look at what there is before you " +
		"send it again"}

// lateAfter is after how long a request that is still being read is one of a caller who
// was let in too long ago.
const lateAfter = time.Second

// late lets the caller of a request that took long to arrive in once more, so that a
// read too is not answered to who was refused while it arrived.
func (k *Kernel) late(ctx context.Context, o *Operation, p access.Principal, meta Meta) (access.Principal, error) {
	if meta.Again == nil || meta.Since.IsZero() || k.Now().Sub(meta.Since) < lateAfter {
		return p, nil
	}
	now, err := meta.Again(ctx)
	switch {
	case err == nil:
		return now, nil
	case fault.CodeOf(err) == fault.Internal:
		err = NotSent(o, err)
	}
	return p, err
}

// purse is what a call spends from while it is admitted. An explanation only looks
// into it.
type purse struct {
	spend func(args any) error // the budget, or the operation's own allowance; args are nil if they are wrong
	count func() error         // the ceiling of reads
}

// admit is the one decision about who may call what, with which arguments, and what it
// spends, in the order of contract 5.10. Calls and explanations ask it alike. It also
// returns the arguments of a call that it refuses, if nothing is wrong with them.
func (o *Operation) admit(p access.Principal, meta Meta, s Source, from purse) (args any, err error) {
	// Authenticated: the surface let the caller in.
	if p.ID == "" {
		return nil, fault.New(fault.Unauthorized, "not signed in")
	}
	// Spent before everything else, of the four older commands by those who may send them.
	args, invalid := o.decode(s)
	switch {
	case o.Budget == Free:
		err = from.count()
	case o.Budget == BeforeValidation && p.Permissions.Has(access.DevicesCommand):
		err = from.spend(args)
	}
	// Permitted.
	if err == nil {
		err = o.permits(p)
	}
	// Decoded.
	if err == nil {
		err = invalid
	}
	if err == nil {
		err = meta.check(o, p)
	}
	// Spent by calls that are valid. What is left to ask is the handler's.
	if err == nil && (o.Budget == AfterValidation || o.Budget == Apart) {
		err = from.spend(args)
	}
	return args, err
}

// permits decides whether p may run the operation: the rights, the company's
// setting, and whether changes are stopped.
func (o *Operation) permits(p access.Principal) error {
	if err := access.Grant(p, o.Needs, o.Gate); err != nil || o.Effect == Reading {
		return err
	}
	return p.Settings.Stop.Refuses(p.Kind)
}

// NotSentDetail is what a caller is told after a failure of our own before anything was done.
const NotSentDetail = "the service failed before anything was sent: it is safe to retry"

// NotSent is the fault for a failure of our own before an operation began:
// fault.Unavailable where the operation knows it, so that the caller learns
// that nothing was delivered (contract 7.1, 503), else fault.Internal.
func NotSent(o *Operation, cause error) error {
	if slices.Contains(o.Faults, fault.Unavailable) {
		return &fault.Error{Code: fault.Unavailable, Retryable: true, Err: cause, Detail: NotSentDetail}
	}
	return cause
}

// call runs the handler; a panic is an unexpected error, not the end of the process.
func (k *Kernel) call(ctx context.Context, o *Operation, call Call, args any) (result any, err error) {
	defer fault.Rescue(func(panicked error) { err = panicked })
	result, err = o.run(ctx, call, args)
	if err != nil && o.Effect == Reading && asFault(err) == nil { // nothing that it could have left half done
		err = NotSent(o, err)
	}
	return result, err
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
	k.Log.LogAttrs(ctx, level, "operation failed", slog.String("operation", o.Name), slog.String("code", string(e.Code)),
		slog.String("request_id", id), slog.String("caller", p.BudgetKey()), slog.Any("error", err))
	return e
}

// Seconds rounds a wait up to whole seconds, at least one, as Retry-After has it.
func Seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
