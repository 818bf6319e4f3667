package operation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// A change that failed before it recorded anything is decided again if what its caller may do has changed.
func TestRun_Stands(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk")
	for _, c := range []struct {
		name         string
		operation    operation.Operation
		err          error // of the first run
		wrote, moved bool  // in it
		stands       error
		standsMoves  bool // while it is asked
		asked        bool
		runs         int
		want         fault.Code
	}{
		{"done", reboot, nil, false, false, nil, false, false, 1, ""},
		{"failed", reboot, disk, false, false, nil, false, true, 1, fault.Internal},
		{"failed, and the caller may do something else", reboot, disk, false, false, access.ErrMoved, true, true, 2, ""},
		{"failed, and it cannot be found out", reboot, fault.New(fault.Refused, ""), false, false, disk, false, true, 1, fault.Refused},
		{"failed after it wrote", reboot, disk, true, false, nil, false, false, 1, fault.Internal},
		{"refused, as the caller may do something else", reboot, access.ErrMoved, false, true, nil, false, false, 2, ""},
		{"a read that failed", read, disk, false, false, nil, false, false, 1, fault.Internal},
	} {
		runs, asked := 0, false
		o := define(c.operation, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			if runs++; runs > 1 {
				return "done", nil
			}
			if c.wrote {
				access.PermitOf(ctx).Wrote(0)
			}
			if c.moved {
				access.PermitOf(ctx).Refuse()
			}
			return "", c.err
		})
		k := operation.NewKernel(operation.Config{Budgets: budgets(nil), Now: time.Now, Stands: func(ctx context.Context) error {
			if asked = true; c.standsMoves {
				access.PermitOf(ctx).Refuse()
			}
			return c.stands
		}})
		again := func(context.Context) (access.Principal, error) { return caller(), nil }
		out := k.Run(t.Context(), o, caller(), operation.Meta{Again: again}, operation.Flat(`{"assetId":"a","text":"b"}`))
		expect.Equal(t, c.name, expect.Values{"asked": {asked, c.asked}, "runs": {runs, c.runs},
			"code": {fault.CodeOf(fromOutcome(out)), c.want}})
	}
}

// A call that is decided again ends as its caller's rights or its second run say.
func TestRun_DecidedAgain(t *testing.T) {
	t.Parallel()
	fewer := caller()
	fewer.Permissions = access.DevicesRead
	for _, c := range []struct {
		name   string
		now    access.Principal
		err    error // of asking who the caller is
		second error
		wrote  bool // in the second run, whose permit moved
		want   fault.Code
		runs   int
		detail string // a part of it
	}{
		{"done", caller(), nil, nil, false, "", 2, ""},
		{"not found", caller(), nil, fault.New(fault.NotFound, "none"), false, fault.NotFound, 2, "none"},
		{"fewer rights", fewer, nil, nil, false, fault.Forbidden, 1, ""},
		{"signed out", caller(), fault.New(fault.Unauthorized, "no"), nil, false, fault.Unauthorized, 1, "no"},
		{"it cannot be found out", caller(), errors.New("disk"), nil, false, fault.Unavailable, 1, "safe to retry"},
		{"done in part", caller(), nil, access.ErrMoved, true, fault.Unavailable, 2, "a part of it may be done"},
	} {
		runs := 0
		o := define(reboot, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			if runs++; runs == 2 && c.wrote {
				access.PermitOf(ctx).Wrote(0)
			}
			if runs == 1 || c.wrote {
				access.PermitOf(ctx).Refuse()
				return "", access.ErrMoved
			}
			return "", c.second
		})
		out := newKernel().Run(t.Context(), o, caller(), operation.Meta{Again: func(context.Context) (access.Principal, error) {
			return c.now, c.err
		}}, operation.Flat(`{"assetId":"a","text":"b"}`))
		detail := ""
		if out.Fault != nil {
			detail = out.Fault.Detail
		}
		expect.Equal(t, c.name, expect.Values{"code": {fault.CodeOf(fromOutcome(out)), c.want}, "runs": {runs, c.runs},
			"reached": {out.Reached, c.runs == 2}, c.detail + " in " + detail: {strings.Contains(detail, c.detail), true}})
	}
}

// A call is bound by the permit that it came with, else by one of its own. Nothing binds the service.
func TestRun_Permit(t *testing.T) {
	t.Parallel()
	service := caller()
	service.Kind = access.System
	given := access.NewPermit(caller(), nil)
	for _, c := range []struct {
		name string
		p    access.Principal
		ctx  context.Context
		want string
	}{
		{"a key", caller(), t.Context(), "its own"},
		{"a key with a permit", caller(), access.WithPermit(t.Context(), given), "given"},
		{"the service", service, t.Context(), "none"},
		{"the service with a permit", service, access.WithPermit(t.Context(), given), "given"},
	} {
		o := define(reboot, func(ctx context.Context, _ operation.Call, _ target) (string, error) {
			switch access.PermitOf(ctx) {
			case nil:
				return "none", nil
			case given:
				return "given", nil
			}
			return "its own", nil
		})
		out := newKernel().Run(c.ctx, o, c.p, operation.Meta{}, operation.Flat(`{"assetId":"a","text":"b"}`))
		expect.Equal(t, c.name, expect.Values{"permit": {out.Result, any(c.want)}, "fault": {fromOutcome(out), error(nil)}})
	}
}

// What a call writes is recorded with the call's note, or with one that was there before.
func TestRun_Note(t *testing.T) {
	t.Parallel()
	before, note := access.Note{Reason: "before"}, access.Note{Reason: "why", Ticket: "T-1"}
	for given, want := range map[access.Note]access.Note{note: note, {}: before} {
		o := define(reboot, func(ctx context.Context, c operation.Call, _ target) (string, error) {
			expect.Equal(t, given.Reason, expect.Values{"note": {access.OriginOf(ctx).Note, want}, "note of the call": {c.Note, given}})
			return "", nil
		})
		out := newKernel().Run(access.WithNote(t.Context(), before), o, caller(), operation.Meta{Note: given},
			operation.Flat(`{"assetId":"a","text":"b"}`))
		if out.Fault != nil {
			t.Error(out.Fault)
		}
	}
}
