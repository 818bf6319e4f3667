package operation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// looks lets every call spend, and has the windows of purses to look at.
type looks struct{ purses }

func (looks) Spend(_ context.Context, _ string, _ int, window time.Duration, now time.Time) (int, bool, time.Time, error) {
	return 1, true, now.Add(window), nil
}

// explained is an explanation of reboot, and what it depends on.
type explained struct {
	name      string
	rule      access.ReasonRule
	note      string // the reason that is given beside the arguments
	arguments string
	forecast  operation.Forecast
	foresee   error
	limited   bool  // the company has a limit of destructive commands
	failure   error // of looking at that limit
	windows   purses
	code      fault.Code // of the explanation's own fault
	status    int        // of the answer that is foretold
	message   string     // the same
	known     bool       // what the call would do is said
	effects   int
	impact    string
	left      operation.ExplainLeft // of destructive commands
}

func (c *explained) run(t *testing.T, store operation.BudgetStore) operation.Outcome {
	t.Helper()
	e := &operation.Explainer{Registry: &operation.Registry{},
		Kernel: operation.NewKernel(operation.Config{Budgets: budgets(store), Now: time.Now}),
		DestructiveLeft: func(context.Context, string) (int, time.Duration, bool, error) {
			return 24, 1500 * time.Millisecond, c.limited, c.failure
		},
		Status: func(fault.Code) int { return 409 }, Success: func(bool) int { return 200 }}
	operation.DefineExplained(e.Registry, reboot, func(context.Context, operation.Call, target) (string, error) {
		t.Errorf("%s: it ran", c.name)
		return "", nil
	}, func(context.Context, operation.Call, target) (operation.Forecast, error) {
		return c.forecast, c.foresee
	})
	operation.DefineExplain(e.Registry, e)
	p := caller()
	p.Settings.Controls.RequireReason = c.rule
	return e.Kernel.Run(t.Context(), e.Registry.Find("explain_operation"), p,
		operation.Meta{Note: access.Note{Reason: c.note}, ReasonField: "reason"},
		operation.Flat(`{"operation":"reboot_device","arguments":`+c.arguments+`}`))
}

// TestExplain compares what an explanation says of a call, in which the company may require a reason.
func TestExplain(t *testing.T) {
	t.Parallel()
	const good, reasoned = `{"assetId":"a","text":"b"}`, `{"assetId":"a","text":"b","reason":"why"}`
	const accepted, unknown = "The call would be accepted.", "reason is not known here"
	const required = "reason is required: the company requires a reason for this operation"
	disk, destroys := errors.New("disk"), operation.Forecast{Effects: []string{"It restarts."}, Impact: "HIGH"}
	left := operation.ExplainLeft{Remaining: 24, ResetSeconds: 2}
	for _, c := range []explained{
		{name: "accepted", arguments: good, status: 200, message: accepted, known: true},
		{name: "with effects", arguments: good, forecast: destroys, limited: true, status: 200, message: accepted, known: true, effects: 1,
			impact: "HIGH", left: left},
		{name: "refused", arguments: good, foresee: fault.New(fault.Refused, "no"), status: 409, message: "no", known: true},
		{name: "not found", arguments: good, foresee: fault.New(fault.NotFound, "none"), status: 409, message: "none"},
		{name: "it cannot be found out", arguments: good, foresee: disk, code: fault.Unavailable},
		{name: "the limit cannot be read", arguments: good, failure: disk, code: fault.Unavailable},
		{name: "the budget cannot be read", arguments: good, windows: purses{}, code: fault.Unavailable},
		{name: "a reason that is not required", arguments: reasoned, status: 409, message: unknown},
		{name: "a reason", rule: access.ReasonAll, arguments: reasoned, status: 200, message: accepted, known: true},
		{name: "a reason beside the arguments", rule: access.ReasonAll, note: "why", arguments: good, status: 200,
			message: accepted, known: true},
		{name: "two reasons", rule: access.ReasonAll, note: "why", arguments: reasoned, status: 409, message: unknown},
		{name: "no reason", rule: access.ReasonAll, arguments: good, status: 409, message: required, known: true},
		{name: "a reason that is no text", rule: access.ReasonAll, arguments: `{"assetId":"a","text":"b","reason":1}`, status: 409,
			message: "reason must be one text", known: true},
		{name: "a reason that breaks a rule", rule: access.ReasonAll, arguments: `{"assetId":"a","text":"b","reason":"a\nb"}`, status: 409,
			message: "reason must not have control characters", known: true},
	} {
		if c.windows == nil {
			c.windows = purses{budgetKey: 9}
		}
		out := c.run(t, looks{c.windows})
		r, _ := out.Result.(operation.ExplainResult)
		expect.Equal(t, c.name, expect.Values{"fault": {fault.CodeOf(fromOutcome(out)), c.code}, "allowed": {r.Allowed, c.status == 200},
			"status": {r.Answer.Status, c.status}, "message": {r.Answer.Message, c.message}, "known": {r.Devices != nil, c.known},
			"effects": {len(of(r.Effects)), c.effects}, "null effects": {r.Effects != nil && *r.Effects == nil, false},
			"impact": {of(r.Impact), c.impact}, "limit": {r.Destructive != nil, c.limited}, "left": {of(r.Destructive), c.left},
			"budget": {r.Budget.Remaining, map[bool]int{true: 1}[c.code == ""]}})
	}
}

// of is the value of a pointer, zero for nil.
func of[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// Only a call of a known operation is explained.
func TestExplain_Unknown(t *testing.T) {
	t.Parallel()
	var r operation.Registry
	k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now})
	operation.DefineExplain(&r, &operation.Explainer{Registry: &operation.Registry{}, Kernel: k})
	out := k.Run(t.Context(), r.All()[0], caller(), operation.Meta{}, operation.Flat(`{"operation":"explain_operation"}`))
	if out.Fault == nil || out.Fault.Code != fault.InvalidArguments || out.Fault.Fields[0].Field != "operation" {
		t.Errorf("%+v, want operation refused", out.Fault)
	}
}
