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

// What no budget counts, a read or a refused call, is counted once against the ceiling of reads.
func TestRun_CountsOnce(t *testing.T) {
	t.Parallel()
	const good = `{"assetId":"a","text":"b"}`
	fewer := caller()
	fewer.Permissions = 0
	for _, c := range []struct {
		name      string
		operation operation.Operation
		p         access.Principal
		body      string
		left      int   // of the budget
		err       error // of the handler
		want      int   // how often it is counted
	}{
		{"a read", read, caller(), good, 0, nil, 1},
		{"a read that fails", read, caller(), good, 0, errors.New("disk"), 1},
		{"a read that is refused", read, fewer, good, 0, nil, 1},
		{"a command", reboot, caller(), good, 1, nil, 0},
		{"a command that fails", reboot, caller(), good, 1, errors.New("disk"), 0},
		{"a command that is refused", reboot, fewer, good, 1, nil, 1},
		{"a command with wrong arguments", reboot, caller(), `{}`, 1, nil, 1},
		{"a command beyond the budget", reboot, caller(), good, 0, nil, 0},
		{"a command without a caller", reboot, access.Principal{}, good, 1, nil, 0},
	} {
		k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{left: c.left}), ReadsPerMinute: 3, Now: time.Now})
		k.Run(t.Context(), define(c.operation, func(context.Context, operation.Call, target) (string, error) { return "", c.err }), c.p,
			operation.Meta{}, operation.Flat(c.body))
		counted := 3
		for counted > 0 && k.Count(c.p) == nil {
			counted--
		}
		if counted != c.want {
			t.Errorf("%s is counted %d times, want %d", c.name, counted, c.want)
		}
	}
}

// A look opens no window in which reads are counted.
func TestAssess_OpensNoWindow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := operation.NewKernel(operation.Config{Budgets: budgets(nil), ReadsPerMinute: 1, Now: func() time.Time { return now }})
	o := define(read, func(context.Context, operation.Call, target) (string, error) { return "", nil })
	assess := func() error {
		a, err := k.Assess(t.Context(), o, caller(), operation.Meta{}, operation.Flat(`{"assetId":"a","text":"b"}`))
		if err == nil && a.Fault != nil {
			return a.Fault
		}
		return err
	}
	first := assess()
	now = now.Add(30 * time.Second)
	counted := k.Count(caller())
	now = now.Add(time.Minute - 1)
	expect.Equal(t, "a window", expect.Values{"first look": {first, error(nil)}, "read": {counted, error(nil)},
		"look within the window": {fault.CodeOf(assess()), fault.RateLimited}})
	now = now.Add(1)
	expect.Equal(t, "the next window", expect.Values{"look": {assess(), error(nil)}})
}

// A window that was opened while the clock was ahead refuses nothing once the clock is right: it begins again.
func TestCount_AfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]fault.Code{30 * time.Second: fault.RateLimited, time.Hour: ""} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		k := operation.NewKernel(operation.Config{Budgets: budgets(nil), ReadsPerMinute: 1, Now: func() time.Time { return now }})
		first, second := k.Count(caller()), k.Count(caller())
		now = now.Add(-ahead)
		third, fourth := k.Count(caller()), k.Count(caller())
		expect.Equal(t, "a clock that was ahead by "+ahead.String(), expect.Values{"first read": {first, error(nil)},
			"second read": {fault.CodeOf(second), fault.RateLimited}, "first read after it": {fault.CodeOf(third), want},
			"second read after it": {fault.CodeOf(fourth), fault.RateLimited}})
	}
}

// usedUp makes a call of a caller whose budget is used up.
func usedUp(k *operation.Kernel, o *operation.Operation, id int) {
	p := caller()
	p.ID = fmt.Sprint(id)
	k.Run(context.Background(), o, p, operation.Meta{}, operation.Flat(`{"assetId":"a","text":"b"}`))
}

// known counts the callers whose budget is known to be used up.
func known(k *operation.Kernel, o *operation.Operation, from, to int) (n int) {
	p := caller()
	for id := from; id < to; id++ {
		if p.ID = fmt.Sprint(id); k.UsedUp(o, p) != nil {
			n++
		}
	}
	return n
}

// Ten thousand callers are known. One more takes the place of those whose window has closed, or else of a tenth.
func TestUsedUp_ManyCallers(t *testing.T) {
	t.Parallel()
	const half, most = 5_000, 10_000
	for _, c := range []struct {
		name           string
		between, after time.Duration // the halves, and the second half and one more
		want           int           // how many are known then
	}{
		{"all windows are open", 0, 30*time.Second - 1, most * 9 / 10},
		{"half of them have closed", 10 * time.Second, 20 * time.Second, half + 1},
	} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		k := operation.NewKernel(operation.Config{Budgets: budgets(&counted{}), Now: func() time.Time { return now }})
		o := define(reboot, func(context.Context, operation.Call, target) (string, error) { return "", nil })
		for id := range half {
			usedUp(k, o, id)
		}
		now = now.Add(c.between)
		for id := half; id < most; id++ {
			usedUp(k, o, id)
		}
		before := known(k, o, 0, most)
		now = now.Add(c.after)
		usedUp(k, o, most)
		expect.Equal(t, c.name, expect.Values{"known before": {before, most}, "known": {known(k, o, 0, most+1), c.want},
			"the one more": {known(k, o, most, most+1), 1}})
	}
}

// TestKernel_Explain compares the level of what is logged of a failure, and what the caller is told.
func TestKernel_Explain(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	cause := errors.New("dreadful cause")
	const internal = "an unexpected error occurred; its id is "
	for _, c := range []struct {
		name   string
		ctx    context.Context
		id     string
		err    error
		level  string // empty: nothing is logged
		detail string // what it begins with
	}{
		{"a refusal", t.Context(), "r1", fault.New(fault.Refused, "no"), "", "no"},
		{"a refusal with a cause", t.Context(), "r1", fault.New(fault.Refused, "no").Because(cause), "WARN", "no"},
		{"a refusal with a cause, of a caller who has gone", gone, "r1", fault.New(fault.Refused, "no").Because(cause), "WARN", "no"},
		{"an unexpected error", t.Context(), "r1", cause, "ERROR", internal + "r1"},
		{"an internal error without a cause", t.Context(), "r1", fault.New(fault.Internal, "no"), "ERROR", "no; its id is r1"},
		{"an unexpected error, of a caller who has gone", gone, "r1", cause, "INFO", internal + "r1"},
		{"an unexpected error without an id", t.Context(), "", cause, "ERROR", internal},
	} {
		var log bytes.Buffer
		k := operation.NewKernel(operation.Config{Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
		detail := k.Explain(c.ctx, &reboot, caller(), operation.Meta{RequestID: c.id}, c.err).Detail
		level, id := "", c.id
		if _, rest, logged := strings.Cut(log.String(), "level="); logged {
			level, _, _ = strings.Cut(rest, " ")
		}
		if c.id == "" {
			id = strings.TrimPrefix(detail, internal)
		}
		expect.Equal(t, c.name, expect.Values{"level": {level, c.level}, "detail": {strings.HasPrefix(detail, c.detail), true},
			"id": {id != "", true}, "id in the log": {strings.Contains(log.String(), "request_id="+id+" "), c.level != ""}})
	}
}
