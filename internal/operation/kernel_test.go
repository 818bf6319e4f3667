package operation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

type target struct {
	AssetID string `path:"assetId" doc:"The asset."`
	Text    string `json:"text" rule:"required" doc:"Text."`
}

// counted is a budget of a few calls that counts who spends.
type counted struct {
	left  int
	spent []string
	err   error
}

func (c *counted) Spend(_ context.Context, key string, limit int, _ time.Duration, now time.Time) (int, bool, time.Time, error) {
	if c.err != nil {
		return 0, false, time.Time{}, c.err
	}
	c.spent = append(c.spent, key)
	c.left--
	return limit - max(0, c.left), c.left >= 0, now.Add(30 * time.Second), nil
}

func (c *counted) BudgetWindow(context.Context, string, time.Duration, time.Time) (int, time.Time, error) {
	return 0, time.Time{}, nil
}

func define(o operation.Operation, handler func(context.Context, operation.Call, target) (string, error)) *operation.Operation {
	var r operation.Registry
	operation.Define(&r, o, handler)
	return r.All()[0]
}

var (
	lock = operation.Operation{Name: "lock_device", Method: "POST", Path: "/assets/{assetId}/lock",
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands, Budget: operation.BeforeValidation,
		Dialect: operation.FirstFour, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.Unavailable}}
	reboot = operation.Operation{Name: "reboot_device", Method: "POST", Path: "/assets/{assetId}/reboot",
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands, Budget: operation.AfterValidation,
		Dialect: operation.Commands, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.Unavailable}}
	propose = operation.Operation{Name: "propose_change", Method: "POST", Path: "/assets/{assetId}/x",
		Needs: access.PoliciesWrite, Gate: access.PolicyChanges, Budget: operation.AfterValidation,
		Dialect: operation.Policies, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound}}
)

// The order of checks (contract 5.10): each row breaks several rules, and the
// response must name the first in the order.
func TestRun_OrderOfChecks(t *testing.T) {
	t.Parallel()
	const command, read = access.DevicesCommand, access.DevicesRead
	on := access.Settings{DeviceCommands: true}
	tests := []struct {
		name      string
		operation operation.Operation
		principal access.Principal
		left      int
		body      string
		want      fault.Code
		spends    bool
	}{
		{"no caller", lock, access.Principal{}, 1, `{}`, fault.Unauthorized, false},
		{"no caller, later", reboot, access.Principal{}, 1, `{}`, fault.Unauthorized, false},

		{"four: budget before permission", lock, access.Principal{ID: "k", Permissions: command}, 0, `{}`, fault.RateLimited, true},
		{"four: forbidden spends with DEVICES_COMMAND", lock, access.Principal{ID: "k", Permissions: command}, 1, `{}`,
			fault.Forbidden, true},
		{"four: forbidden spends nothing without", lock, access.Principal{ID: "k", Permissions: read, Settings: on}, 0, `{}`,
			fault.Forbidden, false},
		{"four: the setting", lock, access.Principal{ID: "k", Permissions: command | read}, 1, `{}`, fault.Forbidden, true},
		{"four: permission before body", lock, access.Principal{ID: "k", Permissions: command, Settings: on}, 1, `{`,
			fault.Forbidden, true},
		{"four: an invalid body spends", lock, access.Principal{ID: "k", Permissions: command | read, Settings: on}, 1, `{}`,
			fault.InvalidArguments, true},
		{"four: an unknown asset spends", lock, access.Principal{ID: "k", Permissions: command | read, Settings: on}, 1, `{"text":"a"}`,
			fault.NotFound, true},

		{"other: permission before all", reboot, access.Principal{ID: "k", Permissions: command, Settings: on}, 0, `{}`,
			fault.Forbidden, false},
		{"other: the setting", reboot, access.Principal{ID: "k", Permissions: command | read}, 0, `{}`, fault.Forbidden, false},
		{"other: body before budget", reboot, access.Principal{ID: "k", Permissions: command | read, Settings: on}, 0, `{}`,
			fault.InvalidArguments, false},
		{"other: budget before the asset", reboot, access.Principal{ID: "k", Permissions: command | read, Settings: on}, 0, `{"text":"a"}`,
			fault.RateLimited, true},
		{"other: the asset", reboot, access.Principal{ID: "k", Permissions: command | read, Settings: on}, 1, `{"text":"a"}`,
			fault.NotFound, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			budget, limited := &counted{left: test.left}, 0
			k := operation.NewKernel(operation.Config{Budgets: budgets(budget), Limited: func(*operation.Operation) { limited++ },
				Now: time.Now})
			o := define(test.operation, func(context.Context, operation.Call, target) (string, error) {
				return "", fault.New(fault.NotFound, "no such asset")
			})
			test.principal.Kind = access.APIKey
			out := k.Run(t.Context(), o, test.principal, operation.Meta{}, &operation.Parts{Path: []string{"x"}, Body: []byte(test.body)})
			if out.Fault == nil || out.Fault.Code != test.want {
				t.Errorf("got %v, want %s", out.Fault, test.want)
			}
			if spent := len(budget.spent) > 0; spent != test.spends || spent != (out.Allowance != nil) {
				t.Errorf("spent %v, allowance %v", budget.spent, out.Allowance)
			}
			if out.Reached != (test.want == fault.NotFound) {
				t.Errorf("reached %v", out.Reached)
			}
			if (limited == 1) != (test.want == fault.RateLimited) {
				t.Errorf("%d calls were limited", limited)
			}
		})
	}
}

func run(k *operation.Kernel, o operation.Operation, handler func(context.Context, operation.Call,
	target) (string, error)) operation.Outcome {
	return k.Run(context.Background(), define(o, handler), caller(), operation.Meta{RequestID: "req-1", IdempotencyRef: "ref-1"},
		operation.Flat(`{"assetId":"a","text":"b"}`))
}

func TestRun_HandlerGetsTheCall(t *testing.T) {
	t.Parallel()
	budget := &counted{left: 5}
	k := operation.NewKernel(operation.Config{Budgets: budgets(budget), Now: time.Now})
	out := run(k, reboot, func(_ context.Context, c operation.Call, a target) (string, error) {
		return fmt.Sprint(c.Principal.ID, c.RequestID, c.IdempotencyRef, a.AssetID, a.Text), nil
	})
	if out.Fault != nil || out.Result != "k1req-1ref-1ab" || !out.Reached || out.Allowance.Remaining != 4 {
		t.Errorf("%+v", out)
	}
	if len(budget.spent) != 1 || budget.spent[0] != "API_KEY:k1" {
		t.Errorf("spent %v", budget.spent)
	}
}

func TestNoteFields_Read(t *testing.T) {
	t.Parallel()
	fields := operation.NoteFields{Reason: "reason", Ticket: "ticket"}
	long := strings.Repeat("n", access.MaxReason)
	for _, c := range []struct {
		name, reason, ticket string
		want                 access.Note
		wrong                string // the field; empty: none
	}{
		{"both", " broken ", "T-1", access.Note{Reason: "broken", Ticket: "T-1"}, ""},
		{"none", "", "", access.Note{}, ""},
		{"of blanks", "  ", " ", access.Note{}, ""},
		{"of characters that are not shown", "\u200b", " \u2060\u00ad", access.Note{}, ""},
		{"the longest", long, "", access.Note{Reason: long}, ""},
		{"too long", long + "n", "", access.Note{}, "reason"},
		{"a ticket too long", "", strings.Repeat("n", access.MaxTicket+1), access.Note{}, "ticket"},
		{"no UTF-8", "\xff", "", access.Note{}, "reason"},
		{"with a line's end in the ticket", "", "T\n1", access.Note{}, "ticket"},
	} {
		got, invalid := fields.Read(c.reason, c.ticket)
		var wrong string
		if invalid != nil {
			wrong = invalid.Fields[0].Field
		}
		expect.Equal(t, c.name, expect.Values{"note": {got, c.want}, "wrong field": {wrong, c.wrong}})
	}
}

func TestRun_FailuresAreHiddenAndLogged(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(context.Context, operation.Call, target) (string, error){
		"error": func(context.Context, operation.Call, target) (string, error) { return "", errors.New("dreadful cause") },
		"panic": func(context.Context, operation.Call, target) (string, error) { panic("dreadful cause") },
		"internal": func(context.Context, operation.Call, target) (string, error) {
			return "", fault.New(fault.Internal, "read the proposal").Because(errors.New("dreadful cause"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
			out := run(k, reboot, handler)
			if out.Fault == nil || out.Fault.Code != fault.Internal || !out.Reached {
				t.Fatalf("%s: %+v", name, out)
			}
			if strings.Contains(out.Fault.Detail, "dreadful") || !strings.Contains(out.Fault.Detail, "req-1") {
				t.Errorf("%s: the caller is told %q", name, out.Fault.Detail)
			}
			if !strings.Contains(log.String(), "dreadful cause") || !strings.Contains(log.String(), "request_id=req-1") {
				t.Errorf("%s: the log says %s", name, &log)
			}
			if name == "panic" && !strings.Contains(log.String(), "kernel_test.go") {
				t.Errorf("no stack in the log: %s", &log)
			}
		})
	}
}

func TestRun_BudgetFails(t *testing.T) {
	t.Parallel()
	k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{err: errors.New("disk")}), Now: time.Now})
	handler := func(context.Context, operation.Call, target) (string, error) { t.Error("it ran"); return "", nil }
	for _, test := range []struct {
		operation operation.Operation
		want      fault.Code
	}{{lock, fault.Unavailable}, {reboot, fault.Unavailable}, {propose, fault.Internal}} {
		out := run(k, test.operation, handler)
		if out.Fault == nil || out.Fault.Code != test.want || out.Fault.Retryable != (test.want == fault.Unavailable) ||
			strings.Contains(out.Fault.Detail, "disk") {
			t.Errorf("%s: %+v", test.operation.Name, out.Fault)
		}
	}
}

func TestRun_CeilingOfReads(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{}), ReadsPerMinute: 3, Now: func() time.Time { return now }})
	var r operation.Registry
	operation.Define(&r, operation.Operation{Name: "list", Method: "GET", Path: "/assets", Needs: access.DevicesRead},
		func(context.Context, operation.Call, listing) (int, error) { return 0, nil })
	read := func(id string) *fault.Error {
		p := caller()
		p.ID = id
		return k.Run(t.Context(), r.All()[0], p, operation.Meta{}, &operation.Parts{}).Fault
	}
	for range 3 {
		if err := read("a"); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(59500 * time.Millisecond)
	err := read("a")
	if err == nil || err.Code != fault.RateLimited || !err.Retryable || operation.Seconds(err.RetryAfter) != 1 {
		t.Errorf("the fourth read: %+v", err)
	}
	if err := read("b"); err != nil {
		t.Errorf("another caller: %v", err)
	}
	now = now.Add(500 * time.Millisecond)
	if err := read("a"); err != nil {
		t.Errorf("in the next window: %v", err)
	}
	for i := range 30_000 { // more callers than are counted
		if err := read(fmt.Sprint("c", i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int{0: 1, -time.Second: 1, time.Millisecond: 1, time.Second: 1,
		1001 * time.Millisecond: 2, time.Minute: 60} {
		if got := operation.Seconds(d); got != want {
			t.Errorf("%s: %d, want %d", d, got, want)
		}
	}
}

// A call that wrote before its permit moved is not run again, so that what it wrote is not
// written twice. Who may not make it any more is told so.
func TestRun_MovedInPart(t *testing.T) {
	t.Parallel()
	may := access.Principal{ID: "k", Permissions: access.All, Settings: access.Settings{DeviceCommands: true}}
	mayNot := may
	mayNot.Permissions = access.DevicesRead
	for _, c := range []struct {
		now    access.Principal
		before int // how often it moves before anything is written
		want   fault.Code
	}{{may, 0, fault.Unavailable}, {mayNot, 0, fault.Forbidden}, {may, 1, fault.Unavailable}} {
		runs, writes := 0, 0
		o := define(reboot, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			if runs++; runs > c.before {
				writes++
				access.PermitOf(ctx).Wrote(0)
			}
			access.PermitOf(ctx).Refuse()
			return "", access.ErrMoved
		})
		k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{left: 9}), Now: time.Now})
		out := k.Run(t.Context(), o, may, operation.Meta{Again: func(context.Context) (access.Principal, error) { return c.now, nil }},
			operation.Flat(`{"assetId": "a", "text": "t"}`))
		if out.Fault == nil {
			t.Errorf("%+v: no fault, want %s", c, c.want)
			continue
		}
		expect.Equal(t, fmt.Sprintf("%+v", c), expect.Values{"code": {out.Fault.Code, c.want}, "reached": {out.Reached, true},
			"writes": {writes, 1}, "runs": {runs, c.before + 1}})
	}
}

// A call that failed because its caller had gone, and that recorded nothing, is as if it
// had not reached its handler: under its idempotency key it may be made again.
func TestRun_CallerGone(t *testing.T) {
	t.Parallel()
	may := access.Principal{ID: "k", Permissions: access.All, Settings: access.Settings{DeviceCommands: true}}
	for _, wrote := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		o := define(reboot, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			if wrote {
				access.PermitOf(ctx).Wrote(0)
			}
			cancel()
			return "", fmt.Errorf("cannot read: %w", ctx.Err())
		})
		k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{left: 9}), Now: time.Now,
			Stands: func(ctx context.Context) error { return ctx.Err() }})
		out := k.Run(ctx, o, may, operation.Meta{}, operation.Flat(`{"assetId": "a", "text": "t"}`))
		if out.Fault == nil || out.Reached != wrote {
			t.Errorf("wrote %v: %+v, reached %v", wrote, out.Fault, out.Reached)
		}
	}
}

// A call whose permit moves, and moves again while it is decided once more, is answered as
// one that may be sent again. It spent once.
func TestRun_MovedTwice(t *testing.T) {
	t.Parallel()
	for moves, want := range []fault.Code{"", "", fault.Unavailable} {
		runs, budget := 0, &counted{left: 9}
		o := define(reboot, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			if runs++; runs <= moves {
				access.PermitOf(ctx).Refuse()
				return "", access.ErrMoved
			}
			return "done", nil
		})
		p := access.Principal{ID: "k", Permissions: access.All, Settings: access.Settings{DeviceCommands: true}}
		k := operation.NewKernel(operation.Config{Budgets: budgets(budget), Now: time.Now})
		out := k.Run(t.Context(), o, p, operation.Meta{Again: func(context.Context) (access.Principal, error) { return p, nil }},
			operation.Flat(`{"assetId": "a", "text": "t"}`))
		if want == "" {
			if out.Fault != nil || out.Result != "done" || runs != moves+1 {
				t.Errorf("%d moves: %+v after %d runs", moves, out, runs)
			}
		} else {
			if out.Fault == nil || out.Fault.Code != want || !out.Fault.MayRetry() {
				t.Errorf("%d moves: %+v, want %s, which may be tried again", moves, out, want)
			}
			if out.Reached || runs != 2 {
				t.Errorf("%d moves: reached %t, %d runs; want 2 runs that reached nothing", moves, out.Reached, runs)
			}
		}
		if len(budget.spent) != 1 {
			t.Errorf("%d moves spent %v", moves, budget.spent)
		}
	}
}
