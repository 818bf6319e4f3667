package operation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

var (
	read = operation.Operation{Name: "read", Method: "POST", Path: "/assets/{assetId}/x", Needs: access.DevicesRead}
	// separate has a budget of its own.
	separate = operation.Operation{Name: "own", Method: "POST", Path: "/assets/{assetId}/own", Needs: access.DevicesRead,
		Budget: operation.Apart, Calls: 7, Effect: operation.Writing}
)

// A call counts against the caller's budget, or against the operation's own.
func TestRun_CountsAgainstABudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		operation operation.Operation
		key       string // under which it is counted; empty: it is not
		limit     int
	}{
		{"a command", reboot, "API_KEY:k1", 10},
		{"a command that spends first", lock, "API_KEY:k1", 10},
		{"an operation with its own", separate, "own:API_KEY:k1", 7},
		{"a read", read, "", 0},
	} {
		store := &counted{left: 1}
		out := run(operation.NewKernel(operation.Config{Budgets: budgets(store), Now: time.Now}), c.operation,
			func(context.Context, operation.Call, target) (string, error) { return "", nil })
		limit := 0
		if out.Allowance != nil {
			limit = out.Allowance.Limit
		}
		expect.Equal(t, c.name, expect.Values{"fault": {fromOutcome(out), error(nil)}, "key": {strings.Join(store.spent, " "), c.key},
			"limit": {limit, c.limit}})
	}
}

// fromOutcome is the outcome's fault as an error, nil where there is none.
func fromOutcome(out operation.Outcome) error {
	if out.Fault == nil {
		return nil
	}
	return out.Fault
}

// A budget is known to be used up from the call that was refused until its window closes.
func TestUsedUp(t *testing.T) {
	t.Parallel()
	reader, other := caller(), caller()
	reader.Permissions, other.ID = access.DevicesRead, "k2"
	for _, c := range []struct {
		name      string
		refused   operation.Operation // the call that was refused
		operation operation.Operation
		p         access.Principal
		after     time.Duration
		want      time.Duration // until the window closes; 0: not known to be used up
	}{
		{"at once", reboot, reboot, caller(), 0, 30 * time.Second},
		{"just before the window closes", reboot, reboot, caller(), 30*time.Second - 1, 1},
		{"when the window closes", reboot, reboot, caller(), 30 * time.Second, 0},
		{"the clock was set back, within the window", reboot, reboot, caller(), -30 * time.Second, time.Minute},
		{"the clock was set back", reboot, reboot, caller(), -30*time.Second - 1, 0},
		{"another caller", reboot, reboot, other, 0, 0},
		{"another operation of the budget", reboot, propose, caller(), 0, 30 * time.Second},
		{"one that spends first", reboot, lock, caller(), 0, 30 * time.Second},
		{"one that spends first, of a caller who spends nothing", reboot, lock, reader, 0, 0},
		{"one that spends later, of a caller who may not", reboot, reboot, reader, 0, 30 * time.Second},
		{"a read", reboot, read, caller(), 0, 0},
		{"a separate budget", reboot, separate, caller(), 0, 0},
		{"the separate budget that was used up", separate, separate, caller(), 0, 30 * time.Second},
		{"the budget, where a separate one was used up", separate, reboot, caller(), 0, 0},
	} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{}),
			Now: func() time.Time { return now }})
		nothing := func(context.Context, operation.Call, target) (string, error) { return "", nil }
		if out := run(k, c.refused, nothing); out.Fault == nil || out.Fault.Code != fault.RateLimited {
			t.Fatalf("%s: %+v", c.name, out)
		}
		now = now.Add(c.after)
		left := k.UsedUp(define(c.operation, nothing), c.p)
		if left == nil != (c.want == 0) || left != nil && (left.Reset != c.want || left.Spent) {
			t.Errorf("%s: %+v, want %s", c.name, left, c.want)
		}
	}
}

// aheadRecorder records which asset is to be read ahead when a call spends.
type aheadRecorder struct {
	operation.BudgetStore
	asset, company string
}

func (a *aheadRecorder) Spend(ctx context.Context, _ string, _ int, _ time.Duration, now time.Time) (int, bool, time.Time, error) {
	ahead := access.AheadOf(ctx)
	a.asset, a.company = ahead.Asset, ahead.CompanyID
	return 1, true, now, nil
}

// Only a command whose arguments are right reads its device when it spends.
func TestRun_ReadsAhead(t *testing.T) {
	t.Parallel()
	ahead := lock
	ahead.Ahead = operation.AheadToOrder
	for _, c := range []struct {
		name      string
		operation operation.Operation
		body      string
		asset     string
	}{
		{"a command", ahead, `{"assetId":"a","text":"b"}`, "a"},
		{"a command whose arguments are wrong", ahead, `{"assetId":"a"}`, ""},
		{"another operation", lock, `{"assetId":"a","text":"b"}`, ""},
	} {
		a, p := &aheadRecorder{}, caller()
		p.CompanyID = "c1"
		k := operation.NewKernel(operation.Config{Budgets: budgets(a), Now: time.Now})
		k.Run(t.Context(), define(c.operation, func(context.Context, operation.Call, target) (string, error) { return "", nil }), p,
			operation.Meta{}, operation.Flat(c.body))
		if a.asset != c.asset || (a.company != "") != (c.asset != "") {
			t.Errorf("%s: reads asset %q of %q ahead, want %q", c.name, a.asset, a.company, c.asset)
		}
	}
}
