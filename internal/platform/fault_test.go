package platform_test

import (
	"context"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
)

// Every row of the vendor's failures, for each method that an order may call
// (contract 7.1).
func TestOutcome_EveryFailureOfTheVendor(t *testing.T) {
	methods := []struct {
		name string
		send command.Type
	}{
		{"devices.issueCommand", command.Lock},
		{"devices.patch", command.ChangePolicy},
		{"devices.get", command.StatusReport},
	}
	faults := []struct {
		name  string
		fault emulator.Fault
		want  outcome.Code
	}{
		{"400", emulator.Fault{Status: 400, Reason: "INVALID_ARGUMENT"}, outcome.Refused},
		{"failed precondition", emulator.Fault{Status: 400, Reason: "FAILED_PRECONDITION"}, outcome.Refused},
		{"401", emulator.Fault{Status: 401, Reason: "UNAUTHENTICATED"}, outcome.Denied},
		{"403", emulator.Fault{Status: 403, Reason: "PERMISSION_DENIED"}, outcome.Denied},
		{"404", emulator.Fault{Status: 404, Reason: "NOT_FOUND"}, outcome.Gone},
		{"500 that means 404", emulator.Fault{Status: 500, Reason: "Requested entity was not found."}, outcome.Gone},
		{"409", emulator.Fault{Status: 409, Reason: "ABORTED"}, outcome.Conflict},
		{"429", emulator.Fault{Status: 429, Reason: "RESOURCE_EXHAUSTED"}, outcome.Throttled},
		{"500", emulator.Fault{Status: 500, Reason: "INTERNAL"}, outcome.Unknown},
		{"502", emulator.Fault{Status: 502}, outcome.Unknown},
		{"503", emulator.Fault{Status: 503, Reason: "UNAVAILABLE"}, outcome.Unknown},
		{"503 after the effect", emulator.Fault{Status: 503, Reason: "UNAVAILABLE", AfterEffect: true}, outcome.Unknown},
		{"504", emulator.Fault{Status: 504, Reason: "DEADLINE_EXCEEDED"}, outcome.Unknown},
		{"dropped before the effect", emulator.Fault{DropConnection: true}, outcome.Unknown},
		{"dropped after the effect", emulator.Fault{DropConnection: true, AfterEffect: true}, outcome.Unknown},
		{"truncated", emulator.Fault{Corrupt: "truncate", AfterEffect: true}, outcome.Unknown},
		{"HTML", emulator.Fault{Corrupt: "html"}, outcome.Unknown},
		{"HTML with 200", emulator.Fault{Corrupt: "html", Status: 200}, outcome.Unknown},
		{"too slow", emulator.Fault{DelayMS: 60_000}, outcome.Unknown},
		{"slow", emulator.Fault{DelayMS: 20_000}, ""},
	}
	connected(t, func(b *bench) {
		next := b.newPolicy("Kiosk", `{}`)
		b.pass(2 * time.Second) // pushed
		for _, m := range methods {
			a := b.device()
			var body any
			if m.send == command.ChangePolicy {
				body = command.ChangePolicyBody{Policy: b.saved(next.ID)}
			}
			for _, f := range faults {
				f.fault.Method = m.name
				b.fault(f.fault)
				before := b.calls(m.name)
				r := b.send(a, m.send, body)
				want := f.want
				if want == "" { // answered in the end
					want = outcome.Accepted
					if m.send == command.StatusReport {
						want = outcome.Done
					}
				}
				b.equal(m.name+" "+f.name, r.Code, want)
				b.equal(m.name+" "+f.name+": attempts", b.calls(m.name)-before, 1)
				b.emulator.ClearFaults()
			}
		}
	})
}

// What the vendor does not find is confirmed by asking once for the enterprise.
func TestOutcome_GoneOnlyIfTheEnterpriseExists(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		for _, c := range []struct {
			confirm int // status of enterprises.get; 0: it is there
			want    outcome.Code
		}{
			{0, outcome.Gone},
			{404, outcome.Denied},
			{403, outcome.Denied},
			{503, outcome.Missing},
			{429, outcome.Missing},
		} {
			b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 404, Reason: "NOT_FOUND"})
			if c.confirm != 0 {
				b.fault(emulator.Fault{Method: "enterprises.get", Status: c.confirm})
			}
			before := b.calls("get")
			r := b.send(a, command.Lock, nil)
			b.equal("outcome", r.Code, c.want)
			b.equal("asked for the enterprise", b.calls("get")-before, 1)
			b.emulator.ClearFaults()
		}
	})
}

// Through the domain: 409 marks the device as deleted (contract 3.4).
func TestOutcome_GoneDeviceIsMarkedDeleted(t *testing.T) {
	connected(t, func(b *bench) {
		settings := b.emulator.Settings()
		settings.Quirks.EntityNotFoundAs500 = true
		b.ok(b.emulator.SetSettings(settings))
		a := b.device()
		b.ok(b.emulator.Act(b.Context(), a.Device.Name, emulator.ActionFactoryReset, false))
		_, err := b.command(a, command.Lock, nil)
		if err == nil {
			b.Fatal("a device that is gone took a command")
		}
		b.equal("status", string(b.again(a).Status), "DELETED")
	})
}

// A device that is there in state DELETED counts as gone.
func TestOutcome_DeletedDeviceIsGone(t *testing.T) {
	t.Parallel()
	for _, kind := range []command.Type{command.StatusReport, command.ChangePolicy} {
		address := wire(t, answers(`{"name":"`+device+`","state":"DELETED"}`))
		var body any
		if kind == command.ChangePolicy {
			body = command.ChangePolicyBody{}
		}
		if r := at(t, address, nil).Send(t.Context(), order(kind, body)); r.Code != outcome.Gone {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// The time limit of a command holds although its caller has gone away, and the
// caller's own deadline counts as well.
func TestSend_KeepsItsTimeLimits(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		for _, c := range []struct {
			deadline, want time.Duration
		}{{0, platform.DefaultCallTimeout}, {3 * time.Second, 3 * time.Second}} {
			b.fault(emulator.Fault{Method: "devices.issueCommand", DelayMS: 120_000})
			ctx, cancel := context.WithCancel(b.Context())
			if c.deadline > 0 {
				ctx, cancel = context.WithTimeout(b.Context(), c.deadline)
			} else {
				cancel()
			}
			began := time.Now()
			r := b.platform.Send(ctx, b.order(a, command.Lock, nil))
			cancel()
			b.equal("outcome", r.Code, outcome.Unknown)
			b.equal("took", time.Since(began), c.want)
			b.emulator.ClearFaults()
		}
	})
}
