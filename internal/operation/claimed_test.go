package operation_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"": false, "k": true, "!~": true, "a b": false, " ": false, "a\x7f": false, "é": false,
		strings.Repeat("k", 255): true, strings.Repeat("k", 256): false} {
		wrong := operation.CheckKey("Idempotency-Key", key)
		if (wrong == nil) != want || wrong != nil && wrong.Fields[0].Field != "Idempotency-Key" {
			t.Errorf("%q: %v, want accepted: %t", key, wrong, want)
		}
	}
}

// A claim is made only for a change that has a key and would be let through.
func TestOnce_Claims(t *testing.T) {
	t.Parallel()
	const good = `{"assetId":"a","text":"b"}`
	for _, c := range []struct {
		name      string
		operation operation.Operation
		key, body string
		wrong     *fault.Error
		method    string
		want      fault.Code
	}{
		{"a change", reboot, "key", good, nil, "claim", ""},
		{"without a key", reboot, "", good, nil, "", ""},
		{"a read", read, "key", good, nil, "", ""},
		{"wrong arguments", reboot, "key", `{}`, nil, "", fault.InvalidArguments},
		{"a wrong header", reboot, "key", good, fault.InvalidField("reason", ""), "", fault.InvalidArguments},
	} {
		for _, kept := range []bool{true, false} {
			claims := &fakeClaims{held: operation.Holding{Attempt: 1}}
			once := operation.Once{Sealer: plainSealer{}, Kernel: newKernel()}
			if kept {
				once.Claims = claims
			} else {
				c.method = ""
			}
			o := define(c.operation, func(context.Context, operation.Call, target) (string, error) { return "", nil })
			out := once.Run(t.Context(), o, caller(), operation.Meta{Wrong: c.wrong}, operation.Flat(c.body), c.key)
			expect.Equal(t, c.name, expect.Values{"method": {claims.method, c.method}, "code": {fault.CodeOf(fromOutcome(out)), c.want}})
		}
	}
}

// A repetition counts against the ceiling of reads, a claim that cannot be made against nothing.
func TestOnce_Refused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		state operation.ClaimState
		err   error // of the claim
		reads int   // calls before that were counted, of one that is allowed
		want  fault.Code
		count int // calls that are counted then
	}{
		{"free", operation.Claimed, nil, 0, "", 0},
		{"free, above the ceiling", operation.Claimed, nil, 1, "", 1},
		{"a repetition", operation.Running, nil, 0, fault.InFlight, 1},
		{"a repetition above the ceiling", operation.Running, nil, 1, fault.RateLimited, 1},
		{"begun by a newer replica", operation.Claimed, fault.New(fault.InFlight, ""), 0, fault.InFlight, 0},
		{"the claim fails", operation.Claimed, errors.New("disk"), 0, fault.Unavailable, 0},
	} {
		k := operation.NewKernel(operation.Config{Budgets: budgets(nil), ReadsPerMinute: 1, Now: time.Now})
		for range c.reads {
			if err := k.Count(caller()); err != nil {
				t.Fatal(err)
			}
		}
		claims := &fakeClaims{held: operation.Holding{State: c.state, Attempt: 1}, err: c.err}
		o := define(reboot, func(context.Context, operation.Call, target) (string, error) { return "", nil })
		out := operation.Once{Claims: claims, Sealer: plainSealer{}, Kernel: k}.Run(t.Context(), o, caller(), operation.Meta{},
			operation.Flat(`{"assetId":"a","text":"b"}`), "key")
		count := 0
		if k.Count(caller()) != nil {
			count = 1
		}
		expect.Equal(t, c.name, expect.Values{"code": {fault.CodeOf(fromOutcome(out)), c.want}, "counted": {count, c.count}})
	}
}

// What failed before the handler ran is not kept, also where a repetition is not announced as safe.
func TestOnce_FailedBeforeItsHandler(t *testing.T) {
	t.Parallel()
	claims := &fakeClaims{held: operation.Holding{Attempt: 1}}
	o := define(propose, func(context.Context, operation.Call, target) (string, error) { t.Error("it ran"); return "", nil })
	k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{err: errors.New("disk")}), Now: time.Now})
	out := operation.Once{Claims: claims, Sealer: plainSealer{}, Kernel: k}.Run(t.Context(), o, caller(), operation.Meta{},
		operation.Flat(`{"assetId":"a","text":"b"}`), "key")
	if code := fault.CodeOf(fromOutcome(out)); code != fault.Internal || claims.end != "released" {
		t.Errorf("%s, the claim was %s, want %s and released", code, claims.end, fault.Internal)
	}
}

// A request is the same whatever the order and the spaces of the members of an object.
func TestOnce_ObjectsAreAlike(t *testing.T) {
	t.Parallel()
	o := reboot
	o.Path = "/do"
	claimed := func(object string) operation.Claim {
		var r operation.Registry
		operation.Define(&r, o, func(context.Context, operation.Call, carrier) (string, error) { return "", nil })
		c := &fakeClaims{}
		operation.Once{Claims: c, Sealer: plainSealer{}, Kernel: newKernel()}.Run(t.Context(), r.All()[0], caller(), operation.Meta{},
			operation.Flat(`{"arguments":`+object+`}`), "key")
		return c.lastClaim
	}
	first := claimed(`{"a":1,"b":2}`)
	for object, want := range map[string]bool{`{"b": 2, "a": 1}`: true, `{"a":1,"b":3}`: false, `{}`: false} {
		if got, err := claimed(object).Same(first.Fingerprint); got != want || err != nil {
			t.Errorf("%s is the same: %t, %v, want %t", object, got, err, want)
		}
	}
}

// leases fails to extend leases: until the call has ended, or at once.
type leases struct {
	fakeClaims
	blocks bool
	untils []time.Time
}

func (l *leases) ExtendClaim(ctx context.Context, _ operation.Holding, until time.Time) error {
	l.untils = append(l.untils, until)
	if l.blocks {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("disk")
}

// The lease of a call that runs is extended every five seconds. That this fails is noted while the call runs.
func TestOnce_Extends(t *testing.T) {
	for blocks, noted := range map[bool]int{false: 2, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			began, claims := time.Now(), &leases{blocks: blocks, fakeClaims: fakeClaims{held: operation.Holding{Attempt: 1}}}
			k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
			o := define(reboot, func(context.Context, operation.Call, target) (string, error) {
				time.Sleep(12 * time.Second)
				return "", nil
			})
			operation.Once{Claims: claims, Sealer: plainSealer{}, Kernel: k}.Run(t.Context(), o, caller(), operation.Meta{},
				operation.Flat(`{"assetId":"a","text":"b"}`), "key")
			if !claims.untils[0].Equal(began.Add(20 * time.Second)) {
				t.Errorf("the lease is extended until %s after the start, want 20s", claims.untils[0].Sub(began))
			}
			if got := strings.Count(log.String(), "cannot extend a lease"); got != noted {
				t.Errorf("blocked %t: noted %d times, want %d: %s", blocks, got, noted, &log)
			}
		})
	}
}
