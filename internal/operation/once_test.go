package operation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// fakeClaims gives the same answer to every claim, and records how it ends.
type fakeClaims struct {
	held      operation.Holding
	now       time.Time
	err       error  // of Claim and FindClaim
	method    string // "claim", or "find"
	end       string // "kept", "released", "left to its lease", or empty: none was made
	lastClaim operation.Claim
}

func (c *fakeClaims) Claim(_ context.Context, claim operation.Claim) (operation.Holding, error) {
	c.method, c.lastClaim = "claim", claim
	return c.held, c.err
}

func (c *fakeClaims) FindClaim(_ context.Context, claim operation.Claim) (operation.Holding, error) {
	c.method, c.lastClaim = "find", claim
	return c.held, c.err
}

func (c *fakeClaims) ExtendClaim(_ context.Context, _ operation.Holding, until time.Time) error {
	if until.Equal(c.now) {
		c.end = "left to its lease"
	}
	return nil
}

func (c *fakeClaims) SettleClaim(_ context.Context, _ operation.Holding, answer []byte) error {
	c.end, c.held.Answer = "kept", answer
	return nil
}

func (c *fakeClaims) ReleaseClaim(context.Context, operation.Holding) error {
	c.end = "released"
	return nil
}

// plainSealer does not encrypt, and opens only what was sealed for the same purpose.
type plainSealer struct{}

func (plainSealer) Seal(purpose string, data []byte) []byte {
	return append([]byte(purpose+"\n"), data...)
}

func (plainSealer) Open(purpose string, sealed []byte) ([]byte, error) {
	if n := len(purpose) + 1; len(sealed) >= n && string(sealed[:n]) == purpose+"\n" {
		return sealed[n:], nil
	}
	return nil, errors.New("sealed for another purpose")
}

// unconfirmed is a result; true: it is not known whether the effect happened.
type unconfirmed bool

func (u unconfirmed) Unconfirmed() bool { return bool(u) }

// idempotent runs a call under an Idempotency-Key.
func idempotent(t *testing.T, c *fakeClaims, budget operation.BudgetStore, p access.Principal, result any,
	failure error) operation.Outcome {
	t.Helper()
	c.now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var r operation.Registry
	operation.Define(&r, reboot, func(context.Context, operation.Call, target) (any, error) { return result, failure })
	once := operation.Once{Claims: c, Sealer: plainSealer{},
		Kernel: operation.NewKernel(operation.Config{Budgets: budgets(budget), Now: func() time.Time { return c.now }})}
	return once.Run(t.Context(), r.All()[0], p, operation.Meta{RequestID: "r"}, operation.Flat(`{"assetId":"a","text":"b"}`), "key")
}

// An Idempotency-Key keeps each outcome after which the call must not run again.
func TestOnce_Keeps(t *testing.T) {
	t.Parallel()
	const kept, released, left = "kept", "released", "left to its lease"
	retry := func(code fault.Code) error { return &fault.Error{Code: code, Retryable: true} }
	for _, c := range []struct {
		name    string
		failure error
		attempt int
		want    string
	}{
		{"a result", nil, 1, kept},
		{"no such device", fault.New(fault.NotFound, ""), 1, kept},
		{"a conflict", fault.New(fault.NotPending, ""), 1, kept},
		{"a refusal", fault.New(fault.Refused, ""), 1, kept},
		{"the platform's refusal", fault.New(fault.Provider, ""), 1, kept},
		{"the platform is out of order", retry(fault.Provider), 1, released},
		{"an unexpected error", errors.New("disk"), 1, kept},
		{"an unexpected error that says retry", retry(fault.Internal), 1, kept},
		{"unavailable", fault.New(fault.Unavailable, ""), 1, released},
		{"a limit", fault.Limited(time.Minute, ""), 1, released},
		{"arguments that the handler refuses", fault.Invalid(""), 1, released},
		{"a person has to approve it", &fault.Error{Code: fault.ConfirmationRequired, Approval: &fault.Approval{}}, 1, released},
		{"a right that a person has to grant", &fault.Error{Code: fault.Forbidden, Approval: &fault.Approval{}}, 1, released},
		{"a name has to be typed", fault.New(fault.ConfirmationRequired, ""), 1, kept},
		{"a commit whose answer was lost", &fault.Error{Code: fault.Unavailable, Err: operation.ErrDoubt}, 1, left},
		{"a result after a crash", nil, 2, kept},
		{"unavailable after a crash", fault.New(fault.Unavailable, ""), 2, left},
		{"a right that was lost on the way", fault.New(fault.Forbidden, ""), 1, left},
		{"a key that was revoked on the way", fault.New(fault.Unauthorized, ""), 1, left},
	} {
		claim := &fakeClaims{held: operation.Holding{Ref: "ref", Attempt: c.attempt}}
		idempotent(t, claim, nil, caller(), "done", c.failure)
		if claim.end != c.want {
			t.Errorf("%s: the claim was %s, want %s", c.name, claim.end, c.want)
		}
	}
}

// A call that did not reach its handler had no effect. An earlier attempt that a crash ended may have had one.
func TestOnce_RefusedBeforeItsHandler(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]string{1: "released", 2: "left to its lease"} {
		claim := &fakeClaims{held: operation.Holding{Attempt: attempt}}
		out := idempotent(t, claim, &counted{left: 0}, caller(), "done", nil)
		if fault.CodeOf(out.Fault) != fault.RateLimited || claim.end != want {
			t.Errorf("attempt %d: %v, the claim was %s, want %s", attempt, out.Fault, claim.end, want)
		}
	}
}

// No claim is made while the company is stopped, but an answer that was given is repeated.
func TestOnce_States(t *testing.T) {
	t.Parallel()
	stopped := caller()
	stopped.Settings.Stop = access.Stop{At: time.Unix(1, 0), Reason: "test"}
	mayNot := caller()
	mayNot.Permissions = access.DevicesRead
	for _, c := range []struct {
		name   string
		p      access.Principal
		state  operation.ClaimState
		method string
		want   fault.Code
		end    string
	}{
		{"free", caller(), operation.Claimed, "claim", "", "kept"},
		{"the same request runs", caller(), operation.Running, "claim", fault.InFlight, ""},
		{"used for another request", caller(), operation.Differs, "claim", fault.KeyReused, ""},
		{"stopped", stopped, operation.Claimed, "find", fault.Forbidden, ""},
		{"stopped, and the same request runs", stopped, operation.Running, "find", fault.InFlight, ""},
		{"not permitted", mayNot, operation.Claimed, "", fault.Forbidden, ""},
	} {
		claim := &fakeClaims{held: operation.Holding{State: c.state, Attempt: 1}}
		out := idempotent(t, claim, nil, c.p, "done", nil)
		var code fault.Code
		if out.Fault != nil {
			code = out.Fault.Code
		}
		expect.Equal(t, c.name, expect.Values{"method": {claim.method, c.method}, "code": {code, c.want},
			"claim": {claim.end, c.end}})
	}
}

// A repetition is answered as the first call was, also while the company is stopped.
func TestOnce_Repeats(t *testing.T) {
	t.Parallel()
	stopped := caller()
	stopped.Settings.Stop = access.Stop{At: time.Unix(1, 0), Reason: "test"}
	for _, c := range []struct {
		name        string
		result      any
		failure     error
		unconfirmed bool
		code        fault.Code
	}{
		{"a result", unconfirmed(false), nil, false, ""},
		{"an uncertain result", unconfirmed(true), nil, true, ""},
		{"a fault", nil, fault.New(fault.NotFound, "no such device").Because(errors.New("secret")), false, fault.NotFound},
	} {
		claim := &fakeClaims{held: operation.Holding{Ref: "ref", Attempt: 1}}
		idempotent(t, claim, nil, caller(), c.result, c.failure)
		claim.held.State = operation.Answered
		for _, p := range []access.Principal{caller(), stopped} {
			out := idempotent(t, claim, nil, p, "not run", nil)
			result, _ := out.Result.(operation.Repeated)
			var code fault.Code
			var cause error
			if out.Fault != nil {
				code, cause = out.Fault.Code, out.Fault.Err
			}
			expect.Equal(t, c.name, expect.Values{"repeated": {out.Replayed, true}, "unconfirmed": {result.Unconfirmed(), c.unconfirmed},
				"code": {code, c.code}, "cause": {cause, error(nil)}})
		}
	}
	damaged := &fakeClaims{held: operation.Holding{State: operation.Answered, Answer: []byte("idempotency answer \n{}")}}
	if out := idempotent(t, damaged, nil, caller(), "not run", nil); fault.CodeOf(out.Fault) != fault.Internal || out.Replayed {
		t.Errorf("an answer without a result or a fault: %+v, want %s", out, fault.Internal)
	}
}

// A claim is the same only for the same request of the same caller.
func TestOnce_Same(t *testing.T) {
	t.Parallel()
	claim := &fakeClaims{held: operation.Holding{Attempt: 1}}
	idempotent(t, claim, nil, caller(), "done", nil)
	first := claim.lastClaim
	other := caller()
	other.ID = "k2"
	idempotent(t, claim, nil, other, "done", nil)
	same := func(stored string) string {
		is, err := first.Same(stored)
		return fmt.Sprint(is, fault.CodeOf(err))
	}
	const unreadable = "false" + string(fault.InFlight)
	expect.Equal(t, "claims", expect.Values{
		"same request":             {same(first.Fingerprint), "true"},
		"damaged fingerprint":      {same("!"), "false" + string(fault.Internal)},
		"fingerprint of no length": {same(""), unreadable},
		"another caller's":         {same(claim.lastClaim.Fingerprint), unreadable},
		"another caller's id":      {first.ID == claim.lastClaim.ID, false},
	})
}

// A request is the same whether it names its asset by id or by full name.
func TestOnce_NamesOfOneAsset(t *testing.T) {
	t.Parallel()
	p := caller()
	p.CompanySlug = "acme"
	claimed := func(asset string) operation.Claim {
		var r operation.Registry
		operation.Define(&r, reboot, func(context.Context, operation.Call, target) (any, error) { return "done", nil })
		c := &fakeClaims{}
		once := operation.Once{Claims: c, Sealer: plainSealer{},
			Kernel: operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now})}
		once.Run(t.Context(), r.All()[0], p, operation.Meta{}, operation.Flat(`{"assetId":"`+asset+`","text":"b"}`), "key")
		return c.lastClaim
	}
	first := claimed("a")
	for asset, want := range map[string]bool{"a": true, "enterprises/acme/assets/a": true, "b": false, "enterprises/other/assets/a": false,
		"enterprises/acme/policies/a": false} {
		if got, err := claimed(asset).Same(first.Fingerprint); got != want || err != nil {
			t.Errorf("%s is the same request as a: %t, want %t", asset, got, want)
		}
	}
}
