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

// purses is a store in whose windows so many calls are counted, by their keys.
type purses map[string]int

var errPurse = errors.New("disk")

// The keys of a caller's budget, and of the one of separate.
const budgetKey, ownKey = "API_KEY:k1", "own:API_KEY:k1"

func (p purses) Spend(context.Context, string, int, time.Duration, time.Time) (int, bool, time.Time, error) {
	return 0, false, time.Time{}, errors.New("an explanation spends")
}

func (p purses) BudgetWindow(_ context.Context, key string, _ time.Duration, now time.Time) (int, time.Time, error) {
	used, ok := p[key]
	if !ok {
		return 0, time.Time{}, errPurse
	}
	return used, now.Add(time.Second), nil
}

// TestAssess compares what a call would be answered, and how much is said of its target.
func TestAssess(t *testing.T) {
	t.Parallel()
	full := purses{budgetKey: 9, ownKey: 6}
	may, poor, stopped := caller(), caller(), caller()
	poor.Permissions = access.DevicesRead
	stopped.Settings.Stop = access.Stop{At: time.Unix(1, 0), Reason: "test"}
	const good, bad, unreadable = `{"assetId":"a","text":"b"}`, `{"assetId":"a"}`, `{`
	url, declined := "https://m.test/1", &fault.Declined{By: "Ada", At: time.Unix(5, 0), Reason: "no"}
	waits := &fault.Error{Code: fault.Forbidden, Approval: &fault.Approval{}}
	at := &fault.Error{Code: fault.Forbidden, Approval: &fault.Approval{URL: url}}
	no := &fault.Error{Code: fault.Forbidden, Approval: &fault.Approval{URL: url, Declined: declined}}
	for _, c := range []struct {
		name      string
		operation operation.Operation
		p         access.Principal
		left      purses
		body      string
		foresee   error
		want      fault.Code
		known     bool   // there is a forecast
		approval  string // its state
		broken    bool
	}{
		{"accepted", reboot, may, full, good, nil, "", true, "", false},
		{"not signed in", reboot, access.Principal{}, purses{":": 0}, good, nil, fault.Unauthorized, false, "", false},
		{"not permitted", reboot, poor, full, good, nil, fault.Forbidden, false, "", false},
		{"stopped", reboot, stopped, full, good, nil, fault.Forbidden, true, "", false},
		{"wrong arguments", reboot, may, full, bad, nil, fault.InvalidArguments, false, "", false},
		{"what cannot be read", reboot, may, full, unreadable, nil, fault.InvalidArguments, false, "", false},
		{"the budget is used up", reboot, may, purses{budgetKey: 10}, good, nil, fault.RateLimited, true, "", false},
		{"the budget is used up, and the target is not found", reboot, may, purses{budgetKey: 10}, good, fault.New(fault.NotFound, ""),
			fault.RateLimited, false, "", false},
		{"its own allowance is used up", separate, may, purses{budgetKey: 9, ownKey: 7}, good, nil, fault.RateLimited, true, "", false},
		{"its own allowance is left, the budget is not", separate, may, purses{budgetKey: 10, ownKey: 6}, good, nil, "", true, "", false},
		{"the budget cannot be read", reboot, may, purses{}, good, nil, "", false, "", true},
		{"the budget cannot be read, its own allowance can", separate, may, purses{ownKey: 6}, good, nil, "", false, "", true},
		{"its own allowance cannot be read", separate, may, purses{budgetKey: 9}, good, nil, "", false, "", true},
		{"the target is not found", reboot, may, full, good, fault.New(fault.NotFound, ""), fault.NotFound, false, "", false},
		{"refused", reboot, may, full, good, fault.New(fault.Refused, ""), fault.Refused, true, "", false},
		{"it cannot be found out", reboot, may, full, good, errPurse, "", false, "", true},
		{"an internal error", reboot, may, full, good, fault.New(fault.Internal, ""), "", false, "", true},
		{"a person has to approve", reboot, may, full, good, waits, fault.Forbidden, true, "WAITING", false},
		{"a person has to approve, at an address", reboot, may, full, good, at, fault.Forbidden, true, "WAITING at", false},
		{"a person declined", reboot, may, full, good, no, fault.Forbidden, true, "DECLINED at by Ada: no", false},
	} {
		k := operation.NewKernel(operation.Config{Budgets: budgets(c.left), Now: time.Now})
		var r operation.Registry
		operation.DefineExplained(&r, c.operation, func(context.Context, operation.Call, target) (string, error) {
			t.Errorf("%s: it ran", c.name)
			return "", nil
		},
			func(context.Context, operation.Call, target) (operation.Forecast, error) {
				return operation.Forecast{Devices: 1}, c.foresee
			})
		a, err := k.Assess(t.Context(), r.All()[0], c.p, operation.Meta{}, operation.Flat(c.body))
		var code fault.Code
		if a.Fault != nil && err == nil {
			code = a.Fault.Code
		}
		expect.Equal(t, c.name, expect.Values{"code": {code, c.want}, "known": {a.Forecast != nil, c.known},
			"broken":   {err != nil, c.broken},
			"approval": {approvalText(a.Forecast), c.approval}})
	}
}

func approvalText(f *operation.Forecast) string {
	if f == nil || f.Approval == nil {
		return ""
	}
	text := f.Approval.State
	if f.Approval.URL != nil {
		text += " at"
	}
	if f.Approval.By != nil {
		text += " by " + *f.Approval.By
	}
	if f.Approval.Reason != nil {
		text += ": " + *f.Approval.Reason
	}
	return text
}

// An explanation of a call that is known to be refused asks no store.
func TestAssess_UsedUp(t *testing.T) {
	t.Parallel()
	k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{}), Now: time.Now})
	nothing := func(context.Context, operation.Call, target) (string, error) { return "", nil }
	run(k, reboot, nothing)
	var r operation.Registry
	operation.DefineExplained(&r, reboot, nothing, func(context.Context, operation.Call, target) (operation.Forecast, error) {
		return operation.Forecast{}, nil
	})
	for id, want := range map[string]fault.Code{"k1": fault.RateLimited, "k2": ""} {
		p := caller()
		p.ID = id
		a, err := k.Assess(t.Context(), r.All()[0], p, operation.Meta{}, operation.Flat(`{"assetId":"a","text":"b"}`))
		if err != nil || (a.Fault != nil) != (want != "") || a.Fault != nil && a.Fault.Code != want {
			t.Errorf("%s: %+v, %v, want %q", id, a.Fault, err, want)
		}
	}
}

// Reads can be explained as they are, other operations only by a function of their own.
func TestExplains(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, operation.Call, target) (string, error) { return "", nil }
	var r operation.Registry
	operation.DefineExplained(&r, reboot, nothing, func(context.Context, operation.Call, target) (operation.Forecast, error) {
		return operation.Forecast{}, nil
	})
	for what, o := range map[string]*operation.Operation{"a read": define(read, nothing), "an explained command": r.All()[0],
		"a command": define(lock, nothing)} {
		if got, want := o.Explains(), what != "a command"; got != want {
			t.Errorf("%s explains: %t, want %t", what, got, want)
		}
	}
	k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now})
	if _, err := k.Assess(t.Context(), define(lock, nothing), caller(), operation.Meta{},
		operation.Flat(`{"assetId":"a","text":"b"}`)); err == nil {
		t.Error("a command without an explanation is explained")
	}
	gone := func(context.Context, operation.Call, target) (string, error) {
		return "", fault.New(fault.NotFound, "")
	}
	a, err := k.Assess(t.Context(), define(read, gone), caller(), operation.Meta{}, operation.Flat(`{"assetId":"a","text":"b"}`))
	if err != nil || a.Fault == nil || a.Forecast != nil {
		t.Errorf("a read of what is not there: %+v, %v", a, err)
	}
}
